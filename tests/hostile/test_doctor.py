"""`muster doctor` says which walls there are, and which are missing."""

import os

import pytest

from muster.app.doctor import container_check, doctor_report
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
