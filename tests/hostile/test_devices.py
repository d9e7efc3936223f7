"""A job can open the devices that it was given, and no others, whatever it does."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.here import Here, Plain, Wanted
from muster.backends.local.isolation.cgroup import (
    CgroupRoots,
    Group,
    Limits,
    give_up,
    roots,
    why_no_wall,
)
from muster.backends.local.isolation.devices import DeviceWall
from muster.model.event import JobEnded
from muster.model.job import Exited
from muster.model.placement import Allocation

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root may make nodes and groups")

GPU_MAJOR = 195
WALL = DeviceWall(majors=(GPU_MAJOR,), given=((GPU_MAJOR, 1), (GPU_MAJOR, 255)))
# No driver is behind these nodes: one that may be opened answers that, and no more.
MAY_OPEN, IS_WALLED_OFF = errno.ENXIO, errno.EPERM


class Walled(Plain):
    """A machine that wants its GPUs walled off from every job; jobs are given GPU 1."""

    def wall(self, allocation: Allocation) -> DeviceWall | None:
        del allocation
        return WALL


@pytest.fixture
def gpus(home: Path) -> Path:
    """Nodes that everybody may open, as the driver makes them: the wall is all there is."""
    folder = home / "dev"
    folder.mkdir()
    for minor in (0, 1, 2, 255):
        path = folder / f"gpu{minor}"
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(GPU_MAJOR, minor))
        path.chmod(0o666)
    return folder


def opening(path: Path) -> str:
    """A program that ends with the number of the error that opening gives."""
    return (
        "import os, sys\n"
        "try:\n"
        f"    os.open({str(path)!r}, os.O_RDWR)\n"
        "except OSError as error:\n"
        "    sys.exit(error.errno)\n"
    )


@pytest.fixture
def walled(home: Path) -> Iterator[Here]:
    here = Here(home, Walled())
    here.adopts()
    yield here
    here.leaves()


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize(
    ("gpu", "answer"),
    [("gpu0", IS_WALLED_OFF), ("gpu1", MAY_OPEN), ("gpu2", IS_WALLED_OFF), ("gpu255", MAY_OPEN)],
)
def test_a_job_opens_its_own_gpu_and_no_other(
    walled: Here, gpus: Path, user: str, gpu: str, answer: int
) -> None:
    walled.work.chmod(0o777)
    walled.python(opening(gpus / gpu), Wanted(user=user))

    assert walled.ends().why == Exited(code=answer)


def test_what_a_job_changes_in_its_environment_changes_nothing(walled: Here, gpus: Path) -> None:
    walled.work.chmod(0o777)
    (walled.work / "try.py").write_text(opening(gpus / "gpu0"), encoding="utf-8")

    walled.shell(
        "unset CUDA_VISIBLE_DEVICES; CUDA_VISIBLE_DEVICES=0 setsid env -i "
        "$(command -v python3) try.py",
        Wanted(user="nobody"),
    )

    assert walled.ends().why == Exited(code=IS_WALLED_OFF)


def test_a_job_of_root_cannot_make_itself_a_node(walled: Here) -> None:
    walled.python(
        "import os, stat, sys\n"
        "try:\n"
        f"    os.mknod('node', stat.S_IFCHR | 0o666, os.makedev({GPU_MAJOR}, 0))\n"
        "except OSError as error:\n"
        "    sys.exit(error.errno)\n"
    )

    assert walled.ends().why == Exited(code=IS_WALLED_OFF)


def test_every_other_device_works_as_before(walled: Here) -> None:
    walled.shell("head -c 1 /dev/zero > /dev/null && head -c 1 /dev/urandom > /dev/null && echo ok")

    ended = walled.ends()

    assert isinstance(ended, JobEnded)
    assert ended.why == Exited(code=0)


def hierarchies() -> list[str]:
    """Each of the ways in which this machine can keep devices from jobs."""
    lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    kinds = {"v1": " cgroup rw,relatime,devices", "v2": " cgroup2 "}
    return [name for name, mark in kinds.items() if any(mark in line for line in lines)]


@pytest.fixture(params=hierarchies())
def only(request: pytest.FixtureRequest) -> Iterator[CgroupRoots]:
    """The machine as if it had only this kind of control groups."""
    kind = "cgroup2" if request.param == "v2" else "cgroup"
    lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    found = roots(
        f"muster-walls-{os.getpid()}", mounts="\n".join(x for x in lines if x.split()[2] == kind)
    )
    yield found
    give_up(found)


def answer_inside(group: Group, path: Path) -> int:
    """The error that a process gets which joins the group and opens the device."""
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            group.join()
            os.open(path, os.O_RDWR)
        except OSError as error:
            code = error.errno or 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_both_versions_of_control_groups_build_the_same_wall(only: CgroupRoots, gpus: Path) -> None:
    group = Group(only, "1.1", Limits(wall=WALL))
    try:
        answers = [answer_inside(group, gpus / f"gpu{minor}") for minor in (0, 1, 2, 255)]
        usual = [answer_inside(group, Path(path)) for path in ("/dev/null", "/dev/zero")]
    finally:
        group.remove()

    assert answers == [IS_WALLED_OFF, MAY_OPEN, IS_WALLED_OFF, MAY_OPEN]
    assert usual == [0, 0]


def test_whether_a_wall_can_be_built_is_found_out_by_building_one(only: CgroupRoots) -> None:
    assert why_no_wall(only) is None
    assert why_no_wall(CgroupRoots(folders={})) is not None


def test_a_job_without_gpus_has_not_even_the_control_nodes(only: CgroupRoots, gpus: Path) -> None:
    group = Group(only, "1.1", Limits(wall=DeviceWall(majors=(GPU_MAJOR,))))
    try:
        answers = {answer_inside(group, path) for path in gpus.iterdir()}
    finally:
        group.remove()

    assert answers == {IS_WALLED_OFF}
