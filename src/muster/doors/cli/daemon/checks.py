"""What the machine itself can tell, without asking the server."""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from muster.client.address import SOCKET_NAME
from muster.doors.cli.daemon.port import Check, Level
from muster.doors.cli.screen.text import memory

LITTLE_MIB, VERY_LITTLE_MIB = 2_048, 256
WRITTEN_IN_2026 = 1_767_225_600
"""No right clock is behind the first year of this program."""


def machine_checks(home: Path, environ: Mapping[str, str]) -> Iterator[Check]:
    """All of them; each says what it found, and none raises."""
    if url := environ.get("MUSTER_URL"):
        yield _ok("server address", f"MUSTER_URL says {url}; what follows is about this machine")
    for check in HOME_CHECKS:
        yield _tried(check, home)
    for check in MACHINE_CHECKS:
        yield check()


def _tried(check: Callable[[Path], Check], home: Path) -> Check:
    try:
        return check(home)
    except OSError as error:
        advice = "run this as the user who ran muster up"
        return _warn("home", f"{home} cannot be looked into ({error.strerror})", advice)


def _home(home: Path) -> Check:
    try:
        found = home.stat()
    except FileNotFoundError:
        return _warn("home", f"{home} is not there yet", "muster up makes it")
    if found.st_uid == os.geteuid() and found.st_mode & stat.S_IWOTH:
        return _fail("home", f"every user may write in {home}", f"chmod o-w {home}")
    return _ok("home", f"{home}, {stat.filemode(found.st_mode)}")


def _socket(home: Path) -> Check:
    path = home / SOCKET_NAME
    try:
        is_socket = stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return _warn("socket", f"there is no {path}", "muster up")
    if not is_socket:
        return _fail("socket", f"{path} is no socket", f"remove {path}, then muster up")
    if not os.access(path, os.W_OK):
        return _fail("socket", f"you may not use {path}", "ask the user who started it")
    return _ok("socket", str(path))


def _disk(home: Path) -> Check:
    there = next(path for path in (home, *home.parents) if path.exists())
    free_mib = shutil.disk_usage(there).free // 1_048_576
    text = f"{memory(free_mib)} free at {there}"
    if free_mib < VERY_LITTLE_MIB:
        return _fail("disk", text, "make room: without it no job can be accepted")
    if free_mib < LITTLE_MIB:
        return _warn("disk", text, "make room soon")
    return _ok("disk", text)


def _cgroup(home: Path) -> Check:
    if home.exists() and home.stat().st_uid != os.geteuid():
        owner = home.owner()
        return _ok("cgroups", f"this Muster is {owner}'s, for whom muster doctor tells of limits")
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return _writable_cgroup(root, "v2")
    if (root / "memory").is_dir():
        return _writable_cgroup(root / "memory", "v1")
    text = "there are no cgroups: memory and CPU limits of jobs are not kept"
    return _warn("cgroups", text, "mount cgroups, or trust the jobs")


def _writable_cgroup(root: Path, version: str) -> Check:
    if os.access(root, os.W_OK):
        return _ok("cgroups", f"{version}, writable: limits of jobs are kept")
    text = f"{version}, but this user may not write there: limits of jobs may not be kept"
    return _warn("cgroups", text, "run muster up as root, or have a cgroup delegated to you")


def _nvml() -> Check:
    try:
        nvml = import_module("pynvml")
        nvml.nvmlInit()
        count, driver = nvml.nvmlDeviceGetCount(), nvml.nvmlSystemGetDriverVersion()
        nvml.nvmlShutdown()
    except Exception as error:  # noqa: BLE001  its own errors derive from Exception directly
        advice = "install the NVIDIA driver, or try things out with muster up --gpus 4xA100-40GB"
        return _warn("nvml", f"no GPUs can be seen ({error})", advice)
    return _ok("nvml", f"{count} GPUs, driver {driver}")


def _mps() -> Check:
    path = shutil.which("nvidia-cuda-mps-control")
    if path is not None:
        return _ok("mps", path)
    advice = "install the CUDA MPS tools if jobs shall share GPUs with --slice mps:..."
    return _warn("mps", "nvidia-cuda-mps-control is not there", advice)


def _clock() -> Check:
    now = time.time()
    text = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    if now < WRITTEN_IN_2026:
        return _fail("clock", f"it is set to {text}", "set it, best with NTP")
    return _ok("clock", text)


def _user() -> Check:
    import pwd  # noqa: PLC0415  only here

    number = os.geteuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        advice = f"add uid {number} to /etc/passwd or to your directory"
        return _fail("account", f"uid {number} has no name on this machine", advice)
    return _ok("account", f"{name} (uid {number})")


HOME_CHECKS: tuple[Callable[[Path], Check], ...] = (_home, _socket, _disk, _cgroup)
MACHINE_CHECKS: tuple[Callable[[], Check], ...] = (
    _nvml,
    _mps,
    _clock,
    _user,
)


def _ok(name: str, text: str) -> Check:
    return Check(name=name, level=Level.OK, text=text)


def _warn(name: str, text: str, advice: str) -> Check:
    return Check(name=name, level=Level.WARN, text=text, advice=advice)


def _fail(name: str, text: str, advice: str) -> Check:
    return Check(name=name, level=Level.FAIL, text=text, advice=advice)
