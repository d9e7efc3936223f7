"""`muster doctor` says which walls there are, and which are missing."""

import os
from pathlib import Path

import pytest

from muster.app.doctor import container_check, doctor_report
from muster.backends.local.isolation import container
from muster.doors.cli.daemon.port import DoctorOptions, Level


@pytest.mark.skipif(os.getuid() != 0, reason="without root there are no walls")
def test_doctor_says_what_the_kernel_keeps(tmp_path_factory: pytest.TempPathFactory) -> None:
    report = doctor_report(DoctorOptions(home=tmp_path_factory.mktemp("home")))

    found = {check.text: check.level for check in report.checks if check.name == "walls"}

    assert found == {
        "the kernel keeps each job to the GPUs that it was given": Level.OK,
        "the kernel keeps the limits of memory, CPUs and processes": Level.OK,
    }


@pytest.mark.parametrize(
    ("found", "is_root", "level"),
    [
        ({"/usr/bin/docker": True}, True, Level.WARN),
        ({"/usr/bin/docker": True, "/usr/bin/apptainer": True}, True, Level.WARN),
        ({"/usr/bin/docker": True}, False, Level.OK),
        ({"/usr/bin/podman": True, "/usr/bin/docker": True}, True, Level.OK),
        ({"/usr/bin/podman": True}, True, Level.OK),
    ],
)
def test_doctor_warns_of_a_tool_that_mounts_by_path(
    found: dict[str, bool], is_root: bool, level: Level
) -> None:
    check = container_check(found, is_root=is_root)

    assert check.level is level
    assert ("by their path" in check.text) is (level is Level.WARN)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("/usr/bin/apptainer", "; pods of the Kubernetes API take podman or docker"),
        ("/usr/bin/docker", "; pods with a hostPath or subPath are refused"),
        ("/usr/bin/podman", ""),
    ],
)
def test_doctor_says_which_pods_a_tool_does_not_run(tool: str, said: str) -> None:
    assert container_check({tool: True}, is_root=True).text.partition(";")[2] == said[1:]


@pytest.mark.parametrize(
    ("found", "instead"),
    [
        ({"/usr/bin/docker": False}, "jobs with --image are refused"),
        (
            {"/usr/bin/docker": False, "/usr/bin/apptainer": True},
            "jobs use /usr/bin/apptainer",
        ),
    ],
)
def test_doctor_finds_a_docker_whose_daemon_is_dead(found: dict[str, bool], instead: str) -> None:
    check = container_check(found, is_root=True)

    assert check.level is Level.WARN
    assert "its daemon does not answer at /var/run/docker.sock" in check.text
    assert check.text.endswith(instead)
    assert "systemctl start docker" in check.advice


def test_a_docker_that_answers_nobody_runs_no_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    if Path(container.DOCKER_SOCKET).exists():
        pytest.skip("a docker daemon answers on this machine")

    found = container.tools_found()

    assert found == {str(docker): False}
    assert container.tool_for("busybox") is None
    assert container_check(found, is_root=True).level is Level.WARN
