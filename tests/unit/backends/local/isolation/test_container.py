import os
import socket
from itertools import pairwise
from pathlib import Path

import pytest

from muster.backends.local.isolation.container import (
    DOCKER_SOCKET,
    ContainerSettings,
    can_run,
    can_run_pods,
    carried,
    free_argvs,
    has_init,
    options_of,
    pause_argv,
    remove_argv,
    runs_as_root,
    shared_memory,
    stop_argv,
    tool_for,
    tools_found,
    unpause_argv,
    wrapped,
)
from muster.model.value import replace

AROUND = ContainerSettings(
    name="muster-7-1-0", workdir="/data/run", uid=1000, gid=100, as_root=True
)


def test_the_command_comes_last_and_unchanged_behind_its_image() -> None:
    argv = wrapped(("python", "train.py", "--name", "x"), "local/torch:1", "podman", AROUND)

    assert argv[:2] == ("podman", "run")
    assert argv[-6:] == ("--", "local/torch:1", "python", "train.py", "--name", "x")
    assert follows(argv, "--entrypoint") == [""]


def test_without_a_command_the_image_runs_its_own() -> None:
    argv = wrapped((), "local/torch:1", "docker", AROUND)

    assert argv[-2:] == ("--", "local/torch:1")
    assert "--entrypoint" not in argv


def test_an_image_cannot_pass_for_an_option() -> None:
    argv = wrapped(("true",), "--privileged", "podman", AROUND)

    assert argv.index("--") < argv.index("--privileged")


@pytest.mark.parametrize(
    ("image", "podman", "apptainer"),
    [
        ("repo/name:tag", "repo/name:tag", "docker://repo/name:tag"),
        ("docker://repo/name:tag", "repo/name:tag", "docker://repo/name:tag"),
        (
            "reg.example#repo/name:tag",
            "reg.example/repo/name:tag",
            "docker://reg.example/repo/name:tag",
        ),
        (
            "docker://me@reg.example:5000#name",
            "reg.example:5000/name",
            "docker://reg.example:5000/name",
        ),
        ("name@sha256:abc", "name@sha256:abc", "docker://name@sha256:abc"),
        ("/images/torch.sif", None, "/images/torch.sif"),
        ("/images/torch.sqsh", None, "/images/torch.sqsh"),
        ("file:///images/torch.sif", None, "/images/torch.sif"),
    ],
)
def test_each_way_to_name_an_image_becomes_the_tools_own(
    image: str, podman: str | None, apptainer: str
) -> None:
    if podman is not None:
        assert wrapped(("true",), image, "podman", AROUND)[-2] == podman
    assert wrapped(("true",), image, "apptainer", AROUND)[-2] == apptainer


def test_work_folder_and_home_are_where_they_are_outside() -> None:
    argv = wrapped(("true",), "i", "podman", replace(AROUND, home="/home/ann"))

    assert follows(argv, "--mount") == [
        "type=bind,source=/home/ann,target=/home/ann",
        "type=bind,source=/data/run,target=/data/run",
    ]
    assert follows(argv, "--workdir") == ["/data/run"]


def test_a_work_folder_below_home_is_mounted_once() -> None:
    around = replace(AROUND, home="/home/ann", workdir="/home/ann/run")

    argv = wrapped(("true",), "i", "podman", around)

    assert follows(argv, "--mount") == ["type=bind,source=/home/ann,target=/home/ann"]


def test_the_root_folder_stays_the_images_own() -> None:
    argv = wrapped(("true",), "i", "podman", replace(AROUND, workdir="/"))

    assert follows(argv, "--mount") == []
    assert follows(argv, "--workdir") == ["/"]


def test_further_mounts_may_be_read_only_and_elsewhere() -> None:
    around = replace(AROUND, mounts=("/data/sets:/sets:ro", "/scratch"))

    podman = wrapped(("true",), "i", "podman", around)
    apptainer = wrapped(("true",), "i", "apptainer", around)

    assert follows(podman, "--mount")[1:] == [
        "type=bind,source=/data/sets,target=/sets,readonly",
        "type=bind,source=/scratch,target=/scratch",
    ]
    assert follows(apptainer, "--bind")[1:] == ["/data/sets:/sets:ro", "/scratch:/scratch"]


def test_containers_of_a_job_share_its_memory_and_no_others() -> None:
    podman = replace(AROUND, shared_memory=shared_memory("podman", "/run/memory", "7.1.x"))
    docker = replace(AROUND, shared_memory=shared_memory("docker", "/run/memory", "7.1.x"))

    behind_podman = wrapped(("true",), "i", "podman", podman)
    behind_docker = wrapped(("true",), "i", "docker", docker)

    assert follows(behind_podman, "--mount")[0] == "type=bind,source=/run/memory,target=/dev/shm"
    # What podman's own process shares is the job's.
    assert follows(behind_podman, "--ipc") == ["host"]
    assert follows(behind_docker, "--mount")[0] == (
        "type=volume,source=muster-7-1-x-memory,target=/dev/shm,volume-nocopy,volume-driver=local,"
        'volume-opt=type=tmpfs,volume-opt=device=tmpfs,"volume-opt=o=mode=1777,nosuid,nodev"'
    )
    assert follows(behind_docker, "--ipc") == ["private"]


def test_a_volume_in_memory_is_removed_after_the_job() -> None:
    name = shared_memory("docker", "/run/memory", "7.1.x")

    assert free_argvs("docker", name) == (("docker", "volume", "rm", "--force", name),)
    assert free_argvs("podman", "/run/memory") == free_argvs("docker", None) == ()


@pytest.mark.parametrize("tool", ["podman", "docker"])
def test_without_memory_of_its_own_a_container_has_the_machines(tool: str) -> None:
    argv = wrapped(("true",), "i", tool, AROUND)

    assert follows(argv, "--ipc") == ["host"]
    assert shared_memory(tool, None, "7.1.x") is None


def test_a_folder_with_a_comma_in_its_name_is_one_folder() -> None:
    argv = wrapped(("true",), "i", "docker", replace(AROUND, workdir='/a,b"c'))

    assert follows(argv, "--mount") == ['type=bind,"source=/a,b""c","target=/a,b""c"']


def test_run_by_root_the_command_is_the_user_and_cannot_become_more() -> None:
    argv = wrapped(("true",), "i", "podman", replace(AROUND, groups=(5, 6)))

    assert follows(argv, "--user") == ["1000:100"]
    assert follows(argv, "--group-add") == ["5", "6"]
    assert follows(argv, "--cap-drop") == ["all"]
    assert "no-new-privileges" in follows(argv, "--security-opt")


def test_run_by_the_user_podman_keeps_who_they_are() -> None:
    argv = wrapped(("true",), "i", "podman", replace(AROUND, as_root=False))

    assert follows(argv, "--userns") == ["keep-id"]
    assert "--user" not in argv


def test_apptainer_is_always_run_by_the_user() -> None:
    assert [runs_as_root(tool) for tool in ("podman", "/usr/bin/docker", "apptainer")] == [
        True,
        True,
        False,
    ]


def test_values_of_the_environment_are_not_in_the_command_line() -> None:
    argv = wrapped(("true",), "i", "podman", replace(AROUND, env=("HF_TOKEN", "RANK")))

    assert follows(argv, "--env") == ["HF_TOKEN", "RANK"]


def test_each_tool_has_its_own_way_to_give_gpus() -> None:
    around = replace(AROUND, gpus=("GPU-aa", "MIG-bb"))

    docker = wrapped(("true",), "i", "docker", around)
    podman = wrapped(("true",), "i", "podman", around)
    apptainer = wrapped(("true",), "i", "apptainer", around)

    assert follows(docker, "--gpus") == ['"device=GPU-aa,MIG-bb"']
    assert follows(podman, "--device") == ["nvidia.com/gpu=GPU-aa", "nvidia.com/gpu=MIG-bb"]
    assert "--nv" in apptainer


def test_gpus_given_by_number_are_counted_from_zero_inside() -> None:
    around = replace(AROUND, gpus=("2", "5"), env=("CUDA_VISIBLE_DEVICES",))

    argv = wrapped(("true",), "i", "docker", around)

    assert follows(argv, "--env")[-1] == "CUDA_VISIBLE_DEVICES=0,1"


@pytest.mark.parametrize("tool", ["podman", "docker", "apptainer"])
def test_pretend_gpus_ask_nothing_of_the_tool(tool: str) -> None:
    argv = wrapped(("true",), "i", tool, replace(AROUND, env=("CUDA_VISIBLE_DEVICES",)))

    assert not {"--gpus", "--device", "--nv"} & set(argv)


def test_limits_are_the_tools_or_those_of_a_cgroup_that_exists() -> None:
    by_tool = wrapped(("true",), "i", "podman", replace(AROUND, memory_mib=512, cpus=2))
    by_cgroup = wrapped(("true",), "i", "podman", replace(AROUND, cgroup_parent="/muster/7"))

    assert follows(by_tool, "--memory") == follows(by_tool, "--memory-swap") == ["512m"]
    assert follows(by_tool, "--cpus") == ["2"]
    assert follows(by_cgroup, "--cgroup-parent") == ["/muster/7"]
    assert "--memory" not in by_cgroup


def test_a_terminal_is_asked_for_and_cannot_be_left_by_accident() -> None:
    around = replace(AROUND, terminal=True)

    assert "--tty" in wrapped(("sh",), "i", "docker", around)
    assert follows(wrapped(("sh",), "i", "podman", around), "--detach-keys") == [""]
    assert "--tty" not in wrapped(("sh",), "i", "podman", AROUND)


def test_the_administrators_options_stand_before_the_image() -> None:
    environ = {"MUSTER_PODMAN_OPTIONS": "--runtime runc --ulimit 'nproc=1024:1024'"}
    options = options_of("/usr/bin/podman", environ)

    argv = wrapped(("true",), "i", "podman", replace(AROUND, options=options))

    assert options == ("--runtime", "runc", "--ulimit", "nproc=1024:1024")
    assert argv[argv.index("--ulimit") + 1] == "nproc=1024:1024"
    assert options_of("docker", environ) == ()


def test_a_container_is_found_again_where_the_administrator_keeps_them() -> None:
    options = ("--root", "/c/root", "--ulimit", "nofile=9:9", "--runroot=/c/run")

    assert stop_argv("podman", "n", options) == (
        *("podman", "--root", "/c/root", "--runroot=/c/run"),
        *("stop", "-t", "0", "--ignore", "n"),
    )
    assert remove_argv("podman", "n")[-3:] == ("0", "--ignore", "n")
    assert remove_argv("docker", "n", ("--runtime", "runc")) == (
        *("docker", "rm", "--force", "--volumes", "n"),
    )
    assert pause_argv("docker", "n") == ("docker", "pause", "n")
    assert unpause_argv("podman", "n") == ("podman", "unpause", "n")


def test_there_is_no_container_of_apptainer_to_stop() -> None:
    assert stop_argv("singularity", "n") == remove_argv("apptainer", "n") == ()


def test_an_environment_is_carried_without_what_the_image_knows_better() -> None:
    env = {"RANK": "0", "PATH": "/usr/bin", "NOTE": "a = 'b'", "BASH_FUNC_x%%": "() { :; }"}

    ready = carried(env)

    assert ready.names == ("NOTE", "RANK")
    assert ready.text == "NOTE=a = 'b'\nRANK=0\n"
    assert ready.left_out == ()


def test_what_no_line_can_hold_is_left_out_by_name() -> None:
    env = {"A": "one\ntwo", "B": "x" * 70_000, "C": os.fsdecode(b"\xff"), "D": "fine"}

    ready = carried(env)

    assert ready.left_out == ("A", "B", "C")
    assert ready.text == "D=fine\n"
    assert ready.names == ("A", "B", "C", "D")


def test_the_first_tool_found_is_taken(path: Path) -> None:
    program(path / "apptainer")
    program(path / "podman")

    assert tool_for("repo/name") == str(path / "podman")
    assert tool_for("/images/torch.sif") == str(path / "apptainer")


def test_singularity_is_apptainer_by_its_old_name(path: Path) -> None:
    program(path / "singularity")

    tool = tool_for("/images/torch.sqsh")

    assert tool is not None
    assert tool == str(path / "singularity")
    assert wrapped(("true",), "/images/torch.sqsh", tool, AROUND)[:2] == (tool, "exec")
    assert wrapped((), "/images/torch.sqsh", tool, AROUND)[:2] == (tool, "run")


def test_docker_counts_only_where_there_is_a_daemon_to_ask(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path / "docker")

    without = tool_for("repo/name")
    monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere.sock")

    with socket.socket(socket.AF_UNIX) as asking:
        answers = asking.connect_ex(DOCKER_SOCKET) == 0
    assert without == (str(path / "docker") if answers else None)
    assert tool_for("repo/name") == str(path / "docker")


def test_what_is_installed_is_told_with_whether_it_can_be_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path / "docker")
    program(path / "apptainer")
    monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere.sock")

    assert tools_found() == {str(path / "docker"): True, str(path / "apptainer"): True}
    assert can_run() == (True, True)


@pytest.mark.parametrize(
    ("tool", "as_root", "as_person"),
    [
        ("podman", (True, True), (True, True)),
        ("docker", (True, False), (True, True)),
        ("apptainer", (False, False), (False, True)),
    ],
)
def test_a_tool_says_which_pods_it_can_run(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    as_root: tuple[bool, bool],
    as_person: tuple[bool, bool],
) -> None:
    program(path / tool)
    monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere.sock")

    assert can_run_pods() == (as_person if os.geteuid() else as_root)


@pytest.mark.usefixtures("path")
def test_without_a_tool_pods_run_where_their_queue_lets_them() -> None:
    assert can_run_pods() == (True, True)


@pytest.mark.usefixtures("path")
def test_without_a_tool_there_is_none() -> None:
    assert tool_for("repo/name") is None
    assert can_run() == (False, False)
    assert has_init("docker")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return tmp_path


def program(path: Path) -> None:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def follows(argv: tuple[str, ...], flag: str) -> list[str]:
    """What stands behind each use of a flag."""
    return [value for name, value in pairwise(argv) if name == flag]
