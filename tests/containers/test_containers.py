import os
import pty
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from containers.images import (
    FRESH,
    IMAGE,
    ONLY_IN_THE_IMAGE,
    PATIENCE_S,
    Podman,
    finished,
    wait_until,
)
from muster.backends.local.isolation.container import (
    carried,
    has_init,
    pause_argv,
    remove_argv,
    stop_argv,
    unpause_argv,
    wrapped,
)
from muster.model.value import replace

pytestmark = pytest.mark.slow

EATS_MEMORY = "a=x; while true; do a=$a$a; done"
TRAPS = """
trap 'echo warned' USR1
trap 'echo leaving; exit 3' TERM
echo ready
while true; do sleep 0.05; done
"""


def test_the_command_runs_in_the_image(podman: Podman, tmp_path: Path) -> None:
    assert not Path(ONLY_IN_THE_IMAGE).exists()

    done = podman.runs(podman.around("reads", tmp_path), "cat", ONLY_IN_THE_IMAGE)

    assert done.stdout == "only the image has this\n"
    assert done.returncode == 0


def test_its_exit_code_is_the_commands(podman: Podman, tmp_path: Path) -> None:
    done = podman.runs(podman.around("exits", tmp_path), "sh", "-c", "exit 42")

    assert done.returncode == 42


def test_a_command_that_the_image_lacks_is_said_to_be_missing(
    podman: Podman, tmp_path: Path
) -> None:
    around = podman.around("lacks", tmp_path)

    done = podman.runs(around, "no-such-program")
    as_process_1 = podman.runs(replace(around, init=False), "no-such-program")

    assert done.returncode != 0
    assert "No such file" in done.stderr
    assert as_process_1.returncode == 127


def test_the_environment_arrives_and_the_image_keeps_its_path(
    podman: Podman, tmp_path: Path
) -> None:
    ready = carried({"MUSTER_JOB_ID": "7", "NOTE": 'it\'s a "b" = $c', "PATH": "/nowhere"})
    file = tmp_path / "env"
    file.write_text(ready.text)
    around = replace(podman.around("env", tmp_path), env_file=str(file))

    seen = podman.runs(around, "env").stdout.splitlines()

    assert "MUSTER_JOB_ID=7" in seen
    assert 'NOTE=it\'s a "b" = $c' in seen
    assert not any("/nowhere" in line for line in seen)


def test_a_secret_passed_by_name_is_in_no_command_line(podman: Podman, tmp_path: Path) -> None:
    around = replace(podman.around("secret", tmp_path), env=("HF_TOKEN",))

    env = {**FRESH, "HF_TOKEN": "hidden"}
    with podman.starts(around, "sh", "-c", "echo $HF_TOKEN; sleep 100", env=env) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        line = Path(f"/proc/{process.pid}/cmdline").read_text()
        finished(stop_argv(podman.tool, around.name, podman.options))

    assert said == "hidden\n"
    assert "hidden" not in line


def test_the_work_folder_is_the_one_outside_and_files_are_the_users(
    podman: Podman, tmp_path: Path
) -> None:
    folder = tmp_path / "a, b:c"
    folder.mkdir()
    os.chown(folder, 4321, 4321)

    done = podman.runs(podman.around("folder", folder), "sh", "-c", "pwd; touch made; id -u; id -g")

    assert done.stdout.splitlines() == [str(folder), "4321", "4321"]
    assert (folder / "made").stat().st_uid == 4321


def test_a_read_only_mount_cannot_be_written(podman: Podman, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o777)
    data.chmod(0o777)
    around = replace(podman.around("mounts", tmp_path), mounts=(f"{data}:/data:ro",))

    done = podman.runs(around, "touch", "/data/made")

    assert done.returncode != 0
    assert list(data.iterdir()) == []


def test_the_user_has_no_way_to_become_root(podman: Podman, tmp_path: Path) -> None:
    done = podman.runs(podman.around("caps", tmp_path), "cat", "/proc/self/status")

    status = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) == 0


def test_an_image_has_root_run_nothing_again_and_again(podman: Podman, tmp_path: Path) -> None:
    """A check of health is run by the tool itself, as root and outside of what the job may use."""
    podman.has_checked("local/checked:1")
    around = podman.around("checked", tmp_path)
    asked = "{{json .Config.Healthcheck}}"
    known = podman.asks("image", "inspect", "--format", "{{json .HealthCheck}}", "local/checked:1")

    argv = wrapped(("sh", "-c", "echo ready; sleep 100"), "local/checked:1", podman.tool, around)
    with podman.begins(argv) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        found = podman.asks("inspect", "--format", asked, around.name)
        finished(stop_argv(podman.tool, around.name, podman.options))

    assert "checked" in known
    assert "checked" not in found


def test_more_memory_than_allowed_ends_it(podman: Podman, tmp_path: Path) -> None:
    around = replace(podman.around("eats", tmp_path), memory_mib=32)

    done = podman.runs(around, "sh", "-c", EATS_MEMORY)

    assert done.returncode == 128 + signal.SIGKILL


def test_the_limit_of_a_cgroup_around_it_ends_it_too(podman: Podman, tmp_path: Path) -> None:
    memory = Path("/sys/fs/cgroup/memory")
    if not memory.is_dir():
        pytest.skip("this machine has no cgroups of version 1")
    parent = memory / f"muster-test-{os.getpid()}"
    parent.mkdir()
    around = replace(podman.around("within", tmp_path), cgroup_parent=f"/{parent.name}")
    try:
        (parent / "memory.limit_in_bytes").write_text(str(32 << 20))

        done = podman.runs(around, "sh", "-c", EATS_MEMORY)

        assert done.returncode == 128 + signal.SIGKILL
        assert int((parent / "memory.failcnt").read_text()) > 0
    finally:
        remove_cgroups(parent.name)


@contextmanager
def asking_again(process: subprocess.Popen[str], number: signal.Signals) -> Generator[None]:
    """Send the signal until somebody answered: podman may print before it passes signals on."""
    answered = Event()

    def ask() -> None:
        while process.poll() is None:
            process.send_signal(number)
            if answered.wait(1.0):
                return

    asking = Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        answered.set()
        asking.join()


def test_signals_reach_the_command_and_its_answer_comes_back(
    podman: Podman, tmp_path: Path
) -> None:
    with podman.starts(podman.around("signals", tmp_path), "sh", "-c", TRAPS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        with asking_again(process, signal.SIGUSR1):
            assert process.stdout.readline() == "warned\n"
        process.send_signal(signal.SIGTERM)
        answer = process.stdout.readline()
        while answer == "warned\n":
            answer = process.stdout.readline()

        assert answer == "leaving\n"
        assert process.wait() == 3


def test_a_command_that_expects_no_signal_ends_by_it(podman: Podman, tmp_path: Path) -> None:
    if not has_init(podman.tool):
        pytest.skip("podman has no init here: run tests/containers/install.sh as root")
    around = podman.around("ends", tmp_path)
    listens = "trap 'trap \"\" USR1; echo heard; exec sleep 100' USR1; echo ready"
    waits = "while true; do sleep 0.05; done"
    with podman.starts(around, "sh", "-c", f"{listens}; {waits}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with asking_again(process, signal.SIGUSR1):
            assert process.stdout.readline() == "heard\n"

        process.send_signal(signal.SIGTERM)

        assert process.wait() == 128 + signal.SIGTERM


def test_stopped_by_name_it_ends_and_leaves_nothing(podman: Podman, tmp_path: Path) -> None:
    around = podman.around("stopped", tmp_path)
    with podman.starts(around, "sh", "-c", "trap '' TERM; echo ready; sleep 100") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        stopped = finished(stop_argv(podman.tool, around.name, podman.options))

        assert stopped.returncode == 0
        assert process.wait() == 128 + signal.SIGKILL
    wait_until(lambda: not is_there(podman, around.name), "the container is removed")
    assert finished(stop_argv(podman.tool, around.name, podman.options)).returncode == 0


def test_a_container_whose_tool_was_killed_is_removed_by_name(
    podman: Podman, tmp_path: Path
) -> None:
    around = podman.around("orphan", tmp_path)
    with podman.starts(around, "sh", "-c", "echo ready; sleep 100") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        process.kill()
        process.wait()
        assert is_there(podman, around.name)
        removed = finished(remove_argv(podman.tool, around.name, podman.options))

    assert removed.returncode == 0
    assert not is_there(podman, around.name)


def test_a_paused_container_stands_still_until_it_is_let_go(podman: Podman, tmp_path: Path) -> None:
    around = podman.around("paused", tmp_path)
    with podman.starts(around, "sh", "-c", "echo ready; sleep 100") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        finished(pause_argv(podman.tool, around.name, podman.options))
        paused = state_of(podman, around.name)
        finished(unpause_argv(podman.tool, around.name, podman.options))
        again = state_of(podman, around.name)
        finished(stop_argv(podman.tool, around.name, podman.options))

    assert (paused, again) == ("paused", "running")


def test_with_a_terminal_the_command_sits_at_one(podman: Podman, tmp_path: Path) -> None:
    around = replace(podman.around("terminal", tmp_path), terminal=True)
    argv = wrapped(("sh", "-c", "tty; exit 4"), IMAGE, podman.tool, around)

    said, code = at_a_terminal(argv)

    assert said.startswith("/dev/pts/")
    assert code == 4


def at_a_terminal(argv: tuple[str, ...]) -> tuple[str, int]:
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(  # noqa: S603 -- a command of our own making
            argv, env=FRESH, stdin=theirs, stdout=theirs, stderr=theirs
        )
        code = process.wait(timeout=PATIENCE_S)
        return os.read(ours, 4096).decode(), code
    finally:
        os.close(ours)
        os.close(theirs)


def is_there(podman: Podman, name: str) -> bool:
    return name in podman.asks("ps", "--all", "--format", "{{.Names}}").split()


def state_of(podman: Podman, name: str) -> str:
    return podman.asks("inspect", "--format", "{{.State.Status}}", name)


def remove_cgroups(name: str) -> None:
    """Whatever podman made below it in every controller, deepest first."""
    for top in Path("/sys/fs/cgroup").glob(f"*/{name}"):
        for folder, _, _ in os.walk(top, topdown=False):
            Path(folder).rmdir()
