"""How the tasks of an attempt are set going, and what they are together once they run."""

import contextlib
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from muster.backends.local.attempt import process, processes, spool
from muster.backends.local.attempt.terminal import TerminalRelay
from muster.backends.local.isolation import private_tmp
from muster.backends.local.isolation.cgroup import CgroupRoots, Group, Limits
from muster.backends.local.isolation.devices import DeviceWall
from muster.backends.local.isolation.namespaces import Namespaces
from muster.backends.local.isolation.private_tmp import PrivateTmp
from muster.backends.local.isolation.users import (
    LaunchError,
    LocalUser,
    NoToolError,
    acting_as,
    local_user,
    start_folder,
    surroundings,
)
from muster.backends.timeline import StopRules

if TYPE_CHECKING:
    from muster.backends.local.isolation.images import Containers, Images

_PORTS_TRIED = 100


@dataclass(kw_only=True)
class RunningTasks:
    """The tasks that run. Every process of theirs is below the process that started them.

    around: the groups in which root's tool makes those of its containers, if it runs them.
    """

    pids: list[int]
    folder: str
    user: LocalUser
    group: Group | None
    relay: TerminalRelay | None
    images: "Images | None" = None
    containers: "Containers | None" = None
    around: list[Group] = field(default_factory=list[Group])
    private_tmp: PrivateTmp | None = None
    problems: list[str] = field(default_factory=list[str])
    step_memory_kills: int = 0
    _is_frozen: bool = False

    def everyone(self) -> list[int]:
        """The processes that get signals; a container's tool passes them on to what runs inside."""
        return self.pids if self.containers is not None else processes.descendants(os.getpid())

    def suspend(self) -> None:
        if self.containers is not None:
            _carry_out(self.containers.pause)
            return
        self._is_frozen = self.group is not None and self.group.freeze()
        if not self._is_frozen:
            processes.send(self.everyone(), signal.SIGSTOP)

    def resume(self) -> None:
        if self.containers is not None:
            _carry_out(self.containers.unpause)
            return
        if self._is_frozen and self.group is not None:
            self.group.thaw()
            self._is_frozen = False
            return
        processes.send(self.everyone(), signal.SIGCONT)

    def kill(self) -> None:
        """One round; what is just being forked may need another."""
        self._remove_containers()
        if self.group is not None:
            self.group.kill()
        processes.send(processes.descendants(os.getpid()), signal.SIGKILL)

    @property
    def inside(self) -> Namespaces | None:
        """What its processes enter, where they do not see what the machine has."""
        return None if self.private_tmp is None else self.private_tmp.of_job

    @property
    def tools_inside(self) -> Namespaces | None:
        """The same for tools of root's that run its containers."""
        return None if self.private_tmp is None else self.private_tmp.of_tools

    @property
    def memory(self) -> str | None:
        """Where such a tool sees what the job shares in memory; None: what the machine has."""
        return None if self.private_tmp is None else self.private_tmp.memory

    def memory_kills(self) -> int:
        """How many were killed for their memory, without those that a step answered for."""
        found = 0 if self.group is None else self.group.memory_kills()
        return found - self.step_memory_kills

    def is_full(self) -> bool:
        """Did a container want more memory than it has? Its own group may be gone by now."""
        return any(each.has_hit_limit() for each in self.around)

    def take_memory_kills(self) -> bool:
        """Whether some were killed since: a step answers for them, and the job goes on."""
        kills = self.memory_kills()
        self.step_memory_kills += kills
        return kills > 0

    def max_memory_mib(self, largest_kib: int) -> int:
        """The largest process, unless all of them together were seen to hold less."""
        largest_mib = largest_kib // 1_024
        peak = None if self.group is None else self.group.peak_memory_mib()
        return largest_mib if peak is None else min(largest_mib, peak)

    def close(self, statuses: Mapping[int, int]) -> None:
        """Nothing runs any more: take away what only the running needed."""
        if self.relay is not None:
            self.relay.end(_code(statuses[self.pids[0]]))
        self._remove_containers()
        if self.group is not None:
            # A session of ssh that was moved in is not below us, and ends with the job too.
            self.group.kill()
            seats = {each.seat() for each in self.around}
            self.group.remove()
            for seat in sorted(filter(None, seats)):
                self.group.sweep(seat)

    def remove_tmp(self) -> None:
        """This may take a while, whatever the job left there."""
        if self.private_tmp is not None:
            self.private_tmp.close()
            self.private_tmp = None

    def _remove_containers(self) -> None:
        if self.containers is not None:
            _carry_out(self.containers.remove)
            self.containers = None


def begin(launch: spool.LaunchFile, roots: CgroupRoots) -> RunningTasks:
    """Start every task, or none: LaunchError says in words for the user why it cannot be."""
    user = local_user(launch["user"])
    folder = start_folder(launch["workdir"], user)
    argv = _command(launch, user)
    _write_hosts(launch, user)
    group, problems = _group(launch, roots)
    relay = TerminalRelay(spool.TERMINAL_SOCKET, launch["terminal"]) if launch["terminal"] else None
    if relay is not None:
        _keep_output(relay, launch, user, folder)
    way = process.Invocation(
        argv=argv,
        user=user,
        group=group,
        folder=folder,
        umask=launch["umask"],
        cpus=tuple(launch["cpus"]),
        new_privileges=launch["new_privileges"],
    )
    running = RunningTasks(
        pids=[], folder=folder, user=user, group=group, relay=relay, problems=problems
    )
    try:
        running.private_tmp = _private_tmp(launch, user, folder)
        if launch.get("pod") is None:
            _prepare_image(running, launch, user)
        _start_all(running, replace(way, inside=running.inside), launch)
    except LaunchError:
        _undo(running)
        raise
    if relay is not None:
        relay.started()
    return running


def _private_tmp(launch: spool.LaunchFile, user: LocalUser, folder: str) -> PrivateTmp | None:
    """Only root can make one, and for itself it would be no wall."""
    if not launch["private_tmp"] or not user.changes:
        return None
    ours = os.path.dirname(os.path.dirname(os.getcwd()))
    # The daemon through which it uses a GPU meets it there.
    shares_memory = launch["mps"] is not None
    found = private_tmp.made(user, (folder, user.home, ours), shares_memory=shares_memory)
    # For the process that has to clear up if this one dies.
    spool.write(spool.PRIVATE_TMP, {"folder": found.folder})
    return found


def add_to_errors(running: RunningTasks, launch: spool.LaunchFile, line: str) -> None:
    """A last line in the first task's stderr, if that is still a plain file of the user's own."""
    first = launch["tasks"][0]
    path = os.path.join(running.folder, first["stderr"] or first["stdout"])
    # The job had time to put a link or a pipe in its place.
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    with contextlib.suppress(OSError), acting_as(running.user):
        opened = os.open(path, flags)
        try:
            found = os.fstat(opened)
            if stat.S_ISREG(found.st_mode) and found.st_uid == running.user.uid:
                os.write(opened, f"{line}\n".encode())
        finally:
            os.close(opened)


def stop_rules_of(launch: spool.LaunchFile) -> StopRules:
    """How the attempt wants to be ended."""
    warning, checkpoint = launch["warn"], launch["checkpoint"]
    return StopRules(
        grace_ms=launch["grace_ms"],
        warn_lead_ms=None if warning is None else warning["lead_ms"],
        asks_checkpoint=checkpoint is not None and checkpoint["signal"] is not None,
    )


def _command(launch: spool.LaunchFile, user: LocalUser) -> tuple[str, ...]:
    script = launch["script"]
    if launch["steps_only"] or launch.get("pod") is not None:
        return ()
    if script is None:
        if not launch["argv"]:
            raise LaunchError("there is no command to run; give one, or a script")
        return tuple(launch["argv"])
    if not script.startswith("#!"):
        raise LaunchError(
            "the script does not begin with #! and the path of its interpreter; "
            "make its first line, for instance, #!/bin/sh"
        )
    return (_given(spool.SCRIPT, script, user, 0o700), *launch["argv"])


def _write_hosts(launch: spool.LaunchFile, user: LocalUser) -> None:
    """The host file, and the variables that name it."""
    hosts = launch["hosts"]
    if hosts is None:
        return
    path = _given(spool.HOSTS, hosts["text"], user, 0o600)
    launch["env"] |= dict.fromkeys(hosts["variables"], path)


def _given(name: str, text: str, user: LocalUser, mode: int) -> str:
    """A file of the user's own in the attempt's folder; its path."""
    path = os.path.abspath(name)
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.write(opened, text.encode())
        if user.changes:
            os.fchown(opened, user.uid, user.gid)
    finally:
        os.close(opened)
    return path


def _keep_output(
    relay: TerminalRelay, launch: spool.LaunchFile, user: LocalUser, folder: str
) -> None:
    """Into the first task's output file, where the user can write one."""
    path = os.path.join(folder, launch["tasks"][0]["stdout"])
    begins_empty = 0 if launch["append"] else os.O_TRUNC
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | begins_empty
    with contextlib.suppress(OSError), acting_as(user):
        relay.keep_in(os.open(path, flags, 0o666))


def _group(launch: spool.LaunchFile, roots: CgroupRoots) -> tuple[Group | None, list[str]]:
    limits = Limits(
        memory_mib=launch["memory_mib"],
        cpu_milli=launch["cpu_milli"],
        cpus=tuple(launch["cpus"]),
        processes=launch["processes"],
        wall=_wall(launch),
    )
    if not roots.folders and limits.wall is None:
        return None, list(roots.problems)
    try:
        return Group(roots, launch["key"], limits), list(roots.problems)
    except OSError as error:
        if limits.wall is not None:
            raise LaunchError(f"the GPUs of others cannot be kept from it: {error}") from None
        return None, [f"no limits are kept: {error}"]


def _wall(launch: spool.LaunchFile) -> DeviceWall | None:
    written = launch["wall"]
    if written is None:
        return None
    given = tuple((major, minor) for major, minor in written["given"])
    return DeviceWall(majors=tuple(written["majors"]), given=given)


def _start_all(running: RunningTasks, way: process.Invocation, launch: spool.LaunchFile) -> None:
    facts = launch["env"]
    facts |= {"SLURM_JOB_UID": str(way.user.uid), "SLURM_JOB_GID": str(way.user.gid)}
    facts["MASTER_PORT"] = str(_free_port(launch["master_port"]))
    if launch["limit_ms"] is not None:
        facts["MUSTER_ENDS_AT"] = str(int(time.time()) + launch["limit_ms"] // 1_000)
    everywhere = surroundings(way.user) | facts
    used: set[str] = set()
    if launch.get("pod") is not None:
        return
    for rank, task in enumerate(launch["tasks"]):
        terminal = running.relay.task_end if running.relay is not None and rank == 0 else None
        streams = _streams(task, launch, used, terminal)
        env = everywhere | task["env"]
        own = way
        if way.group is not None and launch["memory_mib"]:
            own = replace(way, group=way.group.part(f"task-{rank}", task["memory_mib"]))
        if running.images is None:
            running.pids.append(process.begin(own, env, streams))
            continue
        inner = running.images.wrapped(way.argv, rank, env, own.group)
        outer = replace(own, argv=inner.argv, as_root=inner.as_root, binds=inner.binds)
        if inner.as_root:
            # A container has a /tmp of its own; what the tool needs is not the job's to pay for.
            outer = replace(outer, inside=running.tools_inside, group=None)
            if own.group is not None:
                running.around.append(own.group)
        running.pids.append(process.begin(outer, inner.env, streams))


def _streams(
    task: spool.TaskFile, launch: spool.LaunchFile, used: set[str], terminal: int | None
) -> process.Streams:
    """Tasks that write to one file all add to it; the first one to open it makes it empty."""
    names = {name for name in (task["stdout"], task["stderr"]) if name is not None}
    fresh = frozenset[str]() if launch["append"] else frozenset(names - used)
    used |= names
    return process.Streams(
        stdin=task["stdin"],
        stdout=task["stdout"],
        stderr=task["stderr"],
        fresh=fresh,
        terminal=terminal,
    )


def _prepare_image(running: RunningTasks, launch: spool.LaunchFile, user: LocalUser) -> None:
    if launch["image"] is None:
        return
    from muster.backends.local.isolation.images import Images  # noqa: PLC0415 -- few jobs need it

    try:
        running.images = Images(launch, user, running.folder, running.memory)
    except NoToolError:
        if not launch["images_on_host"]:
            raise
        running.problems.append("the command runs without its image, as the administrator allows")
        return
    running.containers = running.images.containers()
    if running.containers is not None:
        # For the process that has to clear up if this one dies.
        spool.write(spool.CONTAINERS, {"remove": running.containers.remove})


def _code(status: int) -> int:
    """As a shell would put it."""
    return (
        128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    )


def _carry_out(commands: Sequence[Sequence[str]]) -> None:
    """Tell the container tool; what is gone already needs nothing done to it."""
    for argv in commands:
        subprocess.run(  # noqa: S603 -- made by us
            argv, check=False, capture_output=True, stdin=subprocess.DEVNULL
        )


def _undo(running: RunningTasks) -> None:
    for pid in running.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while running.everyone():
        running.kill()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
    if running.relay is not None:
        running.relay.started()
        running.relay.end(1)
    running.remove_tmp()
    if running.group is not None:
        running.group.remove()


def _free_port(wanted: int) -> int:
    """The wanted port of this machine, or the next that is free."""
    for port in range(wanted, wanted + _PORTS_TRIED):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    return wanted
