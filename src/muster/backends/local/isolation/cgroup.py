"""Control groups, of both kinds: where attempts may have theirs, and one attempt's own.

Version 2 keeps every attempt's processes together (to freeze and to kill them) wherever it is
mounted; limits come from it where it has the controllers, else from version 1's hierarchies.
"""

import contextlib
import copy
import errno
import glob
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field

from muster.backends.local.isolation import bpf
from muster.backends.local.isolation.devices import DeviceWall, allow_lines, filter_program

_CONTROLLERS = ("memory", "cpu", "cpuset", "pids")
_V2 = "v2"
_FREEZER = "freezer"
_DEVICES = "devices"
_MAIN = "main"
_MIB = 1 << 20
_MADE_BY_US = "/muster-"
_PATIENCE_S = 10.0
_LIMIT_AND_PEAK = ("memory.limit_in_bytes", "memory.max_usage_in_bytes")


@dataclass(frozen=True, kw_only=True)
class CgroupRoots:
    """The folders in which attempts may have groups, by hierarchy; `unified` lists what v2 limits.

    own: the groups that we are in ourselves, where we may go back to them.
    problems: what cannot be kept here, in words.
    """

    folders: Mapping[str, str]
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    unified: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an attempt may have; zero or nothing means that it was not asked for.

    processes: how many at once, their threads included.
    """

    memory_mib: int = 0
    cpu_milli: int = 0
    cpus: tuple[int, ...] = ()
    processes: int = 0
    wall: DeviceWall | None = None


def roots(name: str, *, mounts: str | None = None, own: str | None = None) -> CgroupRoots:
    """Find, and make, the folders called `name` beneath our own group in every hierarchy."""
    mounted = _mounted(mounts if mounts is not None else _read("/proc/mounts"))
    paths = _paths(own if own is not None else _read("/proc/self/cgroup"))
    folders: dict[str, str] = {}
    unified: frozenset[str] = frozenset()
    if "" in mounted:
        found = _unified_ground(mounted[""], paths.get("", "/"), name)
        if found is not None:
            folders[_V2], unified = found
    wanted = [each for each in _CONTROLLERS if each not in unified]
    for controller in [*wanted, *([] if _V2 in folders else [_FREEZER]), _DEVICES]:
        folder = _ground(mounted.get(controller), paths.get(controller, "/"), name)
        if folder is not None:
            folders[controller] = folder
    if "cpuset" in folders:
        _copy_cpuset(folders["cpuset"])
    return CgroupRoots(
        folders=folders,
        unified=unified,
        own=_own_groups(folders, mounted, paths),
        problems=_problems(folders, unified),
    )


def why_no_wall(roots: CgroupRoots) -> str | None:
    """Why jobs cannot be kept from devices here, found out by trying; None where they can."""
    try:
        group = Group(roots, f"try-{os.getpid()}", Limits(wall=DeviceWall(majors=())))
    except OSError as error:
        return f"no control group keeps devices from jobs here ({error.strerror})"
    group.remove()
    return None


def give_up(roots: CgroupRoots) -> None:
    """Take the folders away in which no attempt has a group any more."""
    for folder in roots.folders.values():
        with contextlib.suppress(OSError):
            os.rmdir(folder)


@dataclass
class _Gone:
    """What is remembered of parts that are no more."""

    memory_kills: int = 0


class Group:
    """The group of one attempt, in as many hierarchies as its limits need."""

    def __init__(self, roots: CgroupRoots, key: str, limits: Limits) -> None:
        self._roots = roots
        self._key = key
        self._folders = {
            hierarchy: f"{folder}/{key}"
            for hierarchy, folder in roots.folders.items()
            if hierarchy in (_V2, _FREEZER) or _needs(limits, hierarchy)
        }
        for folder in self._folders.values():
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
        # Where its processes go, which is not where its limits are if it has parts.
        self._seats = self._folders
        self._gone = _Gone()
        try:
            self._limit(limits)
        except OSError:
            self.remove()
            raise

    def part(self, name: str, memory_mib: int) -> "Group":
        """The same group, for processes that have a limit of memory for themselves within it."""
        above = self._of("memory")
        if not memory_mib or above is None or not _has_parts(above):
            return self
        folder = f"{above}/{name}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        found = copy.copy(self)
        hierarchy = _V2 if "memory" in self._roots.unified else "memory"
        found._seats = {**self._folders, hierarchy: folder}
        self._limit_memory(folder, memory_mib * _MIB)
        return found

    def give_up_part(self) -> None:
        """Nothing of the part runs any more; what happened in it is remembered."""
        for hierarchy, folder in self._seats.items():
            if folder != self._folders[hierarchy] and os.path.basename(folder) != _MAIN:
                self._gone.memory_kills += self._kills_in(folder)
                for each in (*_below(folder), folder):
                    with contextlib.suppress(OSError):
                        os.rmdir(each)

    def seat(self) -> str | None:
        """Its path below the mount of its hierarchy: for tools that make a group within it.

        Such a tool makes its group at this path in every hierarchy, so that all limits are kept.
        """
        is_v2 = "memory" in self._roots.unified
        hierarchy = _V2 if is_v2 or "memory" not in self._seats else "memory"
        folder = self._seats.get(hierarchy)
        above = _mounted(_read("/proc/mounts")).get("" if hierarchy == _V2 else hierarchy)
        if folder is None or above is None:
            return None
        return folder.removesuffix(f"/{_MAIN}").removeprefix(above)

    def sweep(self, seat: str) -> None:
        """Take away what a tool left that made its group at this path in every hierarchy."""
        ours = set(self._roots.folders.values())
        for mount in sorted(set(_mounted(_read("/proc/mounts")).values())):
            path = seat.rstrip("/")
            while _MADE_BY_US in path and mount + path not in ours:
                for each in (*_below(mount + path), mount + path):
                    with contextlib.suppress(OSError):
                        os.rmdir(each)
                path = os.path.dirname(path)

    def join(self) -> None:
        """Move the calling process in; its children follow."""
        for folder in self._seats.values():
            _write(f"{folder}/cgroup.procs", "0")

    def can_be_left(self) -> bool:
        """May a process that joined go back to where it was?"""
        return all(hierarchy in self._roots.own for hierarchy in self._folders)

    @contextlib.contextmanager
    def joined(self) -> Generator[None]:
        """Be in the group for a moment: whatever is started meanwhile stays in it."""
        self.join()
        try:
            yield
        finally:
            for hierarchy in self._folders:
                _write(f"{self._roots.own[hierarchy]}/cgroup.procs", "0")

    def pins(self) -> bool:
        return self._of("cpuset") is not None

    def memory_kills(self) -> int:
        """How many processes were killed because the memory limit was reached."""
        folder = self._of("memory")
        if folder is None:
            return 0
        if "memory" in self._roots.unified:
            # What happens in a part is counted above it too.
            return self._kills_in(folder)
        return self._gone.memory_kills + sum(map(self._kills_in, [folder, *_below(folder)]))

    def _kills_in(self, folder: str) -> int:
        name = "memory.events" if "memory" in self._roots.unified else "memory.oom_control"
        return _counter(_read(f"{folder}/{name}"), "oom_kill")

    def has_hit_limit(self) -> bool:
        """Did its own processes, or those of a group within it, want more memory than it has?

        Version 1 counts who is killed in the group of the victim, which may be gone by now.
        """
        folder = self._seats.get(_V2 if "memory" in self._roots.unified else "memory")
        if folder is None:
            return False
        if "memory" in self._roots.unified:
            return self._kills_in(folder) > 0
        limit, peak = (_read(f"{folder}/{name}").strip() for name in _LIMIT_AND_PEAK)
        return limit.isdecimal() and peak.isdecimal() and int(peak) >= int(limit)

    def peak_memory_mib(self) -> int | None:
        """The most memory that was held at once, file cache included; None where not counted."""
        folder = self._of("memory")
        if folder is None:
            return None
        is_v2 = "memory" in self._roots.unified
        text = _read(f"{folder}/{'memory.peak' if is_v2 else 'memory.max_usage_in_bytes'}")
        return int(text) // _MIB if text.strip().isdecimal() else None

    def members(self) -> list[int]:
        """Every process in the group."""
        for folder in self._folders.values():
            return sorted(members([folder]))
        return []

    def freeze(self) -> bool:
        """Let every process of the group stand still; False where the machine cannot."""
        if _V2 in self._folders:
            folder = self._folders[_V2]
            _write(f"{folder}/cgroup.freeze", "1")
            return _await(lambda: _counter(_read(f"{folder}/cgroup.events"), "frozen") == 1)
        if _FREEZER in self._folders:
            state = f"{self._folders[_FREEZER]}/freezer.state"
            _write(state, "FROZEN")
            return _await(lambda: _read(state).strip() == "FROZEN")
        return False

    def thaw(self) -> None:
        if _V2 in self._folders:
            _write(f"{self._folders[_V2]}/cgroup.freeze", "0")
        elif _FREEZER in self._folders:
            _write(f"{self._folders[_FREEZER]}/freezer.state", "THAWED")

    def kill(self) -> None:
        """Kill every process in the group, those included that are being forked."""
        if _V2 in self._folders:
            with contextlib.suppress(OSError):
                _write(f"{self._folders[_V2]}/cgroup.kill", "1")
                return
        # Also those that are not below us: a session of ssh that was moved in.
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """Take the group away; a process that is still on its way out is waited for."""
        for folder in self._folders.values():
            _await(lambda folder=folder: _is_removed(folder))

    def _of(self, controller: str) -> str | None:
        is_v2 = controller in self._roots.unified
        return self._folders.get(_V2 if is_v2 else controller)

    def _limit(self, limits: Limits) -> None:
        if (folder := self._of("memory")) is not None:
            if limits.memory_mib:
                self._limit_memory(folder, limits.memory_mib * _MIB)
            if "memory" in self._roots.unified:
                # Also without a limit: a tool may make groups of containers beside.
                self._open_for_parts(folder)
        if limits.cpu_milli and (folder := self._of("cpu")) is not None:
            self._weigh_cpu(folder, limits.cpu_milli)
        if limits.cpus and (folder := self._of("cpuset")) is not None:
            _write(f"{folder}/cpuset.cpus", ",".join(str(cpu) for cpu in sorted(limits.cpus)))
            _copy_mems(folder)
        if limits.processes and (folder := self._of("pids")) is not None:
            _write(f"{folder}/pids.max", str(limits.processes))
        if limits.wall is not None:
            self._build(limits.wall)

    def _build(self, wall: DeviceWall) -> None:
        """OSError where it cannot be built: what should be walled off must not start without."""
        if _DEVICES in self._folders:
            folder = self._folders[_DEVICES]
            inherited = _read(f"{os.path.dirname(folder)}/devices.list")
            _write(f"{folder}/devices.deny", "a")
            for line in allow_lines(wall, inherited=inherited, devices=_read("/proc/devices")):
                _write(f"{folder}/devices.allow", line)
        elif _V2 in self._folders:
            bpf.tie_filter(filter_program(wall), self._folders[_V2])
        else:
            raise OSError(errno.ENOTSUP, "no devices controller and no unified hierarchy")

    def _open_for_parts(self, folder: str) -> None:
        """In version 2 a group with parts has no processes beside them: the others are one too."""
        try:
            _write(f"{folder}/cgroup.subtree_control", "+memory")
            os.mkdir(f"{folder}/{_MAIN}")
        except FileExistsError:
            pass
        except OSError:
            return
        self._seats = {**self._folders, _V2: f"{folder}/{_MAIN}"}

    def _limit_memory(self, folder: str, limit: int) -> None:
        # Swap is part of the limit, or the limit would only make a job slow.
        if "memory" in self._roots.unified:
            _write(f"{folder}/memory.max", str(limit))
            with contextlib.suppress(OSError):
                _write(f"{folder}/memory.swap.max", "0")
            return
        _write(f"{folder}/memory.limit_in_bytes", str(limit))
        with contextlib.suppress(OSError):
            _write(f"{folder}/memory.memsw.limit_in_bytes", str(limit))

    def _weigh_cpu(self, folder: str, cpu_milli: int) -> None:
        # A weight, not a ceiling: the job may have what other jobs do not use.
        if "cpu" in self._roots.unified:
            _write(f"{folder}/cpu.weight", str(min(10_000, max(1, cpu_milli // 10))))
            return
        _write(f"{folder}/cpu.shares", str(min(262_144, max(2, cpu_milli * 1024 // 1000))))


def existing(roots: CgroupRoots, key: str) -> list[str]:
    """The folders that an attempt's group has now."""
    beneath = (f"{folder}/{key}" for folder in roots.folders.values())
    return [folder for folder in beneath if os.path.isdir(folder)]


def found_roots(name: str) -> CgroupRoots:
    """The folders called `name` that are there, wherever above us they were made."""
    mounted = _mounted(_read("/proc/mounts"))
    names = {_V2: "", **{each: each for each in (*_CONTROLLERS, _FREEZER, _DEVICES)}}
    folders: dict[str, str] = {}
    for hierarchy, mount in names.items():
        if mount not in mounted:
            continue
        # Another process made them, in whichever group it was in.
        found = glob.glob(f"{glob.escape(mounted[mount])}/**/{glob.escape(name)}", recursive=True)
        if found:
            folders[hierarchy] = min(found)
    return CgroupRoots(folders=folders)


def move(pid: int, folders: Iterable[str]) -> None:
    """Put a process into groups; what it starts from then on is in them too."""
    for folder in folders:
        main = f"{folder}/{_MAIN}"
        _write(f"{main if os.path.isdir(main) else folder}/cgroup.procs", str(pid))


def members(folders: Iterable[str]) -> set[int]:
    """Every process in these groups, and in the parts that they have."""
    everywhere = [each for folder in folders for each in (folder, *_below(folder))]
    return {int(pid) for folder in everywhere for pid in _read(f"{folder}/cgroup.procs").split()}


def wake(folders: Iterable[str]) -> None:
    """Let frozen groups go on: what stands still cannot be killed."""
    for folder in folders:
        for name, word in (("cgroup.freeze", "0"), ("freezer.state", "THAWED")):
            with contextlib.suppress(OSError):
                _write(f"{folder}/{name}", word)


def remove(folders: Iterable[str]) -> None:
    for folder in folders:
        _await(lambda folder=folder: _is_removed(folder))


def _mounted(mounts: str) -> dict[str, str]:
    """Where each controller is mounted; the unified hierarchy goes by the empty name."""
    found: dict[str, str] = {}
    for line in mounts.splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found.setdefault("", folder)
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, folder)
    return found


def _paths(own: str) -> dict[str, str]:
    """Our own group in each hierarchy."""
    found: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _own_groups(
    folders: Mapping[str, str], mounted: Mapping[str, str], paths: Mapping[str, str]
) -> dict[str, str]:
    """Our own groups, as far as we could move into them now."""
    found: dict[str, str] = {}
    for hierarchy in folders:
        name = "" if hierarchy == _V2 else hierarchy
        group = mounted[name] + paths.get(name, "/").rstrip("/")
        with contextlib.suppress(OSError):
            _write(f"{group}/cgroup.procs", "0")
            found[hierarchy] = group
    return found


def _unified_ground(mount: str, path: str, name: str) -> tuple[str, frozenset[str]] | None:
    """The nearest group above us whose groups get limits; without one, the nearest we may use.

    Version 2 gives limits only to groups whose parent runs nothing itself, so it is seldom ours.
    """
    without: str | None = None
    for above in _upwards(mount, path):
        # A group that runs something and hands out CPU could have no groups with processes.
        if above == mount or not _read(f"{above}/cgroup.procs").split():
            _enable(above)
        given = frozenset(_read(f"{above}/cgroup.subtree_control").split())
        if not given and without is not None:
            continue
        folder = _made(f"{above}/{name}")
        if folder is None or not _takes_processes(folder):
            continue
        if given.intersection(_CONTROLLERS):
            _enable(folder)
            kept = frozenset(_read(f"{folder}/cgroup.subtree_control").split())
            return folder, kept.intersection(_CONTROLLERS)
        without = folder
    return None if without is None else (without, frozenset())


def _upwards(mount: str, path: str) -> list[str]:
    parts = [part for part in path.split("/") if part]
    folders = ["/".join([mount, *parts[:count]]) for count in range(len(parts), -1, -1)]
    return [folder for folder in folders if os.path.isdir(folder)]


def _enable(folder: str) -> None:
    offered = _read(f"{folder}/cgroup.controllers").split()
    for controller in _CONTROLLERS:
        if controller in offered:
            with contextlib.suppress(OSError):
                _write(f"{folder}/cgroup.subtree_control", f"+{controller}")


def _ground(mount: str | None, path: str, name: str) -> str | None:
    if mount is None:
        return None
    beneath = next(iter(_upwards(mount, path)), mount)
    return _made(f"{beneath}/{name}")


def _made(folder: str) -> str | None:
    try:
        os.mkdir(folder, 0o755)
    except FileExistsError:
        return folder if os.access(folder, os.W_OK) else None
    except OSError:
        return None
    return folder


def _takes_processes(folder: str) -> bool:
    """A group below one for threads is of no use; it is taken away again."""
    if _read(f"{folder}/cgroup.type").strip() in {"", "domain"}:
        return True
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return False


def _copy_cpuset(folder: str) -> None:
    """A cpuset of version 1 is empty at first, and nothing may run in it."""
    above = os.path.dirname(folder)
    if not _read(f"{folder}/cpuset.cpus").strip():
        with contextlib.suppress(OSError):
            _write(f"{folder}/cpuset.cpus", _read(f"{above}/cpuset.cpus").strip())
    _copy_mems(folder)


def _copy_mems(folder: str) -> None:
    above = os.path.dirname(folder)
    mems = f"{folder}/cpuset.mems"
    if os.path.exists(mems) and not _read(mems).strip():
        with contextlib.suppress(OSError):
            _write(mems, _read(f"{above}/cpuset.mems").strip())


def _problems(folders: Mapping[str, str], unified: frozenset[str]) -> tuple[str, ...]:
    lacking = {
        "memory": "memory limits are not kept",
        "cpu": "CPU weights are not kept",
        "cpuset": "CPU pinning is left to the job",
        "pids": "the number of processes has no limit",
    }
    missing = [text for name, text in lacking.items() if name not in unified | folders.keys()]
    return tuple(f"{text}: no writable cgroup for it" for text in missing)


def _needs(limits: Limits, hierarchy: str) -> bool:
    asked = {
        "memory": limits.memory_mib,
        "cpu": limits.cpu_milli,
        "cpuset": limits.cpus,
        "pids": limits.processes,
        _DEVICES: limits.wall,
    }
    return bool(asked.get(hierarchy))


def _counter(text: str, name: str) -> int:
    for line in text.splitlines():
        word, _, count = line.partition(" ")
        if word == name:
            return int(count)
    return 0


def _below(folder: str) -> list[str]:
    """Every group below it, those first that have none below them."""
    found = [path for path, _, _ in os.walk(folder, topdown=False)]
    return [path for path in found if path != folder]


def _has_parts(folder: str) -> bool:
    """Does what is used in groups below this one count in it? In old kernels it need not."""
    return _read(f"{folder}/memory.use_hierarchy").strip() in {"", "1"}


def _is_removed(folder: str) -> bool:
    try:
        for part in _below(folder):
            os.rmdir(part)
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _await(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    opened = os.open(path, os.O_WRONLY)
    try:
        os.write(opened, text.encode())
    finally:
        os.close(opened)
