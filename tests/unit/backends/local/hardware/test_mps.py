import time
from pathlib import Path

import pytest

from muster.backends.local.hardware.mps import Mps, client_limits, daemon_name, share_memory_mib
from muster.model.errors import BackendDownError
from muster.model.gpu import MpsShare
from muster.model.value import DeviceId

A = DeviceId("GPU-aaaaaaaa-1111-2222-3333-444444444444")
B = DeviceId("GPU-bbbbbbbb-1111-2222-3333-444444444444")

# Stands in for NVIDIA's program: a file in place of a daemon, the same words and exit statuses.
CONTROL = """#!/bin/sh
pipe="$CUDA_MPS_PIPE_DIRECTORY"
if [ "$1" = "-d" ]; then
    if [ -e "$pipe/../../../refuse" ]; then echo "cannot set up" >&2; exit 1; fi
    echo "$CUDA_VISIBLE_DEVICES" > "$pipe/daemon"
    # As the real one may: what lives on keeps our output open.
    sleep 5 &
    exit 0
fi
if [ ! -e "$pipe/daemon" ]; then
    echo "Cannot find MPS control daemon process" >&2
    exit 1
fi
read -r word server
case "$word" in
    get_server_list) [ -e "$pipe/clients" ] && echo 100; exit 0 ;;
    get_client_list) cat "$pipe/clients" ;;
    quit) rm "$pipe/daemon"; echo gone >> "$pipe/../../../quits" ;;
esac
"""


@pytest.fixture
def binary(tmp_path: Path) -> str:
    path = tmp_path / "nvidia-cuda-mps-control"
    path.write_text(CONTROL, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_share_limits_threads_and_memory() -> None:
    env = client_limits([(MpsShare(milli=250, memory_mib=2_048), 40_960)])

    assert env == {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=2048M",
    }


def test_a_share_that_says_no_memory_has_its_part_of_it() -> None:
    assert share_memory_mib(MpsShare(milli=125), 40_960) == 5_120
    assert client_limits([(MpsShare(milli=125), 40_960)]) == {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "12.5",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=5120M",
    }


def test_shares_of_several_gpus_are_limited_one_by_one() -> None:
    env = client_limits([(MpsShare(milli=500), 1_000), (MpsShare(milli=250), 1_000)])

    assert env == {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=500M,1=250M",
    }


def test_daemons_have_short_names_of_their_own() -> None:
    assert daemon_name((A,)) == "aaaaaaaa-1111"
    assert daemon_name((A, B)) == daemon_name((B, A))
    assert len({daemon_name((A,)), daemon_name((B,)), daemon_name((A, B))}) == 3


def test_the_first_share_starts_a_daemon_that_sees_only_its_gpu(
    tmp_path: Path, binary: str
) -> None:
    env = Mps(tmp_path / "mps", binary).join((A,))

    pipe = Path(env["CUDA_MPS_PIPE_DIRECTORY"])
    assert pipe == tmp_path / "mps" / "aaaaaaaa-1111" / "pipe"
    assert Path(env["CUDA_MPS_LOG_DIRECTORY"]).is_dir()
    assert (pipe / "daemon").read_text(encoding="utf-8").strip() == A


def test_nobody_waits_for_the_daemons_output_to_end(tmp_path: Path, binary: str) -> None:
    begun_at = time.monotonic()

    Mps(tmp_path / "mps", binary).join((A,))

    assert time.monotonic() - begun_at < 5


def test_the_daemon_ends_with_the_last_share(tmp_path: Path, binary: str) -> None:
    mps = Mps(tmp_path / "mps", binary)
    mps.join((A,))
    mps.join((A,))

    mps.leave((A,))
    between = running(tmp_path)
    mps.leave((A,))

    assert between == ["aaaaaaaa-1111"]
    assert running(tmp_path) == []


def test_a_daemon_with_somebody_connected_is_not_ended(tmp_path: Path, binary: str) -> None:
    mps = Mps(tmp_path / "mps", binary)
    pipe = Path(mps.join((A,))["CUDA_MPS_PIPE_DIRECTORY"])
    (pipe / "clients").write_text("4711\n", encoding="utf-8")

    mps.leave((A,))

    assert running(tmp_path) == ["aaaaaaaa-1111"]


def test_after_a_restart_the_daemon_that_runs_is_used(tmp_path: Path, binary: str) -> None:
    pipe = Path(Mps(tmp_path / "mps", binary).join((A,))["CUDA_MPS_PIPE_DIRECTORY"])
    (pipe / "daemon").write_text("the old one", encoding="utf-8")

    again = Mps(tmp_path / "mps", binary)
    again.adopt([(A,)])
    again.join((A,))
    again.leave((A,))

    assert (pipe / "daemon").read_text(encoding="utf-8") == "the old one"
    again.leave((A,))
    assert running(tmp_path) == []


def test_after_a_restart_daemons_that_nobody_needs_are_ended(tmp_path: Path, binary: str) -> None:
    mps = Mps(tmp_path / "mps", binary)
    mps.join((A,))
    mps.join((B,))

    Mps(tmp_path / "mps", binary).adopt([(B,)])

    assert running(tmp_path) == ["bbbbbbbb-1111"]
    assert (tmp_path / "quits").read_text(encoding="utf-8") == "gone\n"


def test_a_daemon_that_died_is_started_again(tmp_path: Path, binary: str) -> None:
    mps = Mps(tmp_path / "mps", binary)
    pipe = Path(mps.join((A,))["CUDA_MPS_PIPE_DIRECTORY"])
    (pipe / "daemon").unlink()

    mps.join((A,))

    assert running(tmp_path) == ["aaaaaaaa-1111"]


def test_a_daemon_that_does_not_start_says_why(tmp_path: Path, binary: str) -> None:
    (tmp_path / "refuse").touch()

    with pytest.raises(BackendDownError, match="cannot set up"):
        Mps(tmp_path / "mps", binary).join((A,))


def test_without_the_program_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(BackendDownError, match="nvidia-cuda-mps-control is not"):
        Mps(tmp_path / "mps", None).join((A,))


def running(home: Path) -> list[str]:
    return sorted(path.parent.parent.name for path in (home / "mps").glob("*/pipe/daemon"))
