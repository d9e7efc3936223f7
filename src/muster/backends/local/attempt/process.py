"""Starting one process of a job: from the fork to the exec, as the job's user."""

import contextlib
import errno
import fcntl
import os
import select
import shutil
import signal
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass

from muster.backends.local.attempt import processes
from muster.backends.local.isolation import namespaces
from muster.backends.local.isolation.cgroup import Group
from muster.backends.local.isolation.namespaces import Namespaces
from muster.backends.local.isolation.users import LaunchError, LocalUser, acting_as, become

_MOST_TEXT = 4_096
# Where a job that has mounts of its own does not see what the machine has.
_HIDDEN = ("/tmp/", "/dev/shm/")  # noqa: S108 -- the places themselves, not files in them
_FOLDER_COMES_WITHIN_S = 2.0
# The first access to a shared file system may take long; a broken one takes for ever.
_STARTS_WITHIN_MS = 60_000
# Python ignores these two, and what is ignored stays so after exec.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True, kw_only=True)
class Bind:
    """A folder or file that the user opens, and the place that only root can change to find it at.

    below: of ours, from where `path` is looked for; the user need not be able to come there.
    """

    path: str
    target: str
    below: str = "/"


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """How a process of an attempt begins.

    as_root: only its files are opened with the user's rights; a container tool keeps our own.
    pid_name: the variable that tells the process its own number.
    binds: with as_root, what the user opens and where it is to be found, by it alone.
    bound: CPUs that it alone is bound to, of those. remark: what it says on its stderr first, with
    a place for its number.
    inside: what it enters; its files are opened before, unless it is a tool of root's.
    """

    argv: tuple[str, ...]
    user: LocalUser
    group: Group | None
    folder: str
    umask: int | None
    cpus: tuple[int, ...]
    as_root: bool = False
    pid_name: str | None = None
    bound: tuple[int, ...] = ()
    remark: str = ""
    binds: tuple[Bind, ...] = ()
    inside: Namespaces | None = None
    new_privileges: bool = True


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Where one process reads and writes; `fresh` files begin empty.

    terminal: the end of a terminal that takes the place of the files.
    given: open files that take their place. beside: one more, which keeps its number.
    """

    stdin: str | None
    stdout: str
    stderr: str | None
    fresh: frozenset[str] = frozenset()
    terminal: int | None = None
    given: tuple[int, int, int] | None = None
    beside: int | None = None

    @property
    def are_named(self) -> bool:
        """Are they files that must be opened?"""
        return self.given is None and self.terminal is None


def begin(way: Invocation, env: Mapping[str, str], streams: Streams) -> int:
    """Start a process and return its number once it runs the command; LaunchError if it cannot."""
    if _can_be_spawned(way, streams):
        return _spawned(way, env, streams)
    return _forked(way, env, streams)


def _can_be_spawned(way: Invocation, streams: Streams) -> bool:
    """Nothing has to be done between fork and exec, except what we can do to ourselves before."""
    is_plain = not (way.user.changes or way.as_root or way.cpus or way.umask is not None)
    is_plain = is_plain and way.pid_name is None and not way.bound
    can_return = way.group is None or way.group.can_be_left()
    return is_plain and can_return and streams.terminal is None


def _spawned(way: Invocation, env: Mapping[str, str], streams: Streams) -> int:
    """Without copying ourselves first, which costs more than all the rest."""
    back = os.open(".", os.O_PATH | os.O_DIRECTORY)
    opened: list[int] = []
    try:
        _go_to(way.folder)
        opened.extend(_opened_streams(streams))
        actions = [(os.POSIX_SPAWN_DUP2, each, number) for number, each in enumerate(opened)]
        with way.group.joined() if way.group is not None else contextlib.nullcontext():
            return os.posix_spawn(
                _found(way.argv[0], env),
                way.argv,
                env,
                file_actions=actions,
                setsid=True,
                setsigdef=_IGNORED,
            )
    except OSError as error:
        raise _refusal(way, error) from None
    finally:
        os.fchdir(back)
        for number in {back, *opened}:
            os.close(number)


def _found(command: str, env: Mapping[str, str]) -> str:
    """Where the command is, by the PATH of the job and not by ours."""
    found = command if "/" in command else shutil.which(command, path=env.get("PATH", ""))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, command)
    return found


def _forked(way: Invocation, env: Mapping[str, str], streams: Streams) -> int:
    hears, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        _turn_into(way, env, streams, tells)
    os.close(tells)
    try:
        text = _heard(hears)
    finally:
        os.close(hears)
    if text is None:
        processes.send([pid], signal.SIGKILL)
        raise LaunchError(f"cannot start {way.argv[0]}: its files did not answer", errno.ETIMEDOUT)
    if text:
        os.waitpid(pid, 0)
        number, _, words = text.decode(errors="replace").partition(" ")
        raise LaunchError(words, int(number))
    return pid


def _heard(hears: int) -> bytes | None:
    """What a process says before it becomes the command; None: it hangs at the user's files."""
    waiting = select.poll()
    waiting.register(hears, select.POLLIN)
    if not waiting.poll(_STARTS_WITHIN_MS):
        return None
    return os.read(hears, _MOST_TEXT)


def _turn_into(way: Invocation, env: Mapping[str, str], streams: Streams, tells: int) -> None:
    """Never returns: this process becomes the command, or says why not and ends."""
    try:
        _forget_handlers()
        os.setsid()
        _enter(way)
        if way.umask is not None:
            os.umask(way.umask)
        if way.as_root:
            _enter_as_tool(way)
        with acting_as(way.user):
            if way.as_root or way.inside is None or streams.are_named:
                _go_to(way.folder)
            _connect(streams)
        if not way.as_root:
            _become_user(way)
        # Changing the user takes this back, so it comes after.
        processes.die_with_parent()
        if way.remark:
            os.write(2, way.remark.replace("%d", str(os.getpid())).encode())
        _execute(way, {**env, way.pid_name: str(os.getpid())} if way.pid_name else env)
    except LaunchError as error:
        os.write(tells, f"{error.number} {error}".encode()[:_MOST_TEXT])
    except Exception as error:  # noqa: BLE001 -- whatever it is, it becomes the reason that the user reads
        os.write(tells, f"1 cannot start: {error}".encode()[:_MOST_TEXT])
    finally:
        os._exit(127)


def _forget_handlers() -> None:
    signal.set_wakeup_fd(-1)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)


def _enter(way: Invocation) -> None:
    if way.group is not None:
        way.group.join()
    if way.cpus and not (way.group is not None and way.group.pins()):
        os.sched_setaffinity(0, way.cpus)
    if way.bound:
        os.sched_setaffinity(0, way.bound)


def _go_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise LaunchError(
            f"cannot enter the working directory {folder}: {error.strerror}"
        ) from None


def _become_user(way: Invocation) -> None:
    """From here on everything is done with the user's rights, in the job's own namespaces."""
    if way.inside is not None:
        namespaces.enter(way.inside)
    become(way.user)
    if way.inside is not None:
        # The folder that we were in belongs to the mounts of before.
        _go_to(way.folder)
    if way.user.changes and not way.new_privileges:
        processes.give_up_new_privileges()


def _enter_as_tool(way: Invocation) -> None:
    """What the tool mounts is seen by it alone."""
    if way.inside is not None:
        namespaces.enter(way.inside)
    if way.inside is not None or way.binds:
        namespaces.own_mounts()
    for bind in way.binds:
        try:
            opened = _opened_by_user(bind, way.user)
        except OSError as error:
            raise LaunchError(f"cannot enter {bind.path}: {error.strerror}") from None
        namespaces.bind(f"/proc/self/fd/{opened}", bind.target)
        os.close(opened)


def _opened_by_user(bind: Bind, user: LocalUser) -> int:
    below = os.open(bind.below, os.O_PATH | os.O_DIRECTORY)
    try:
        with acting_as(user):
            opened = os.open(bind.path, os.O_PATH, dir_fd=below)
            # To have it open is not yet to be allowed into it.
            if os.path.isdir(bind.target):
                os.stat(".", dir_fd=opened)
            elif not os.access(f"/proc/self/fd/{opened}", os.R_OK, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return opened
    finally:
        os.close(below)


def _connect(streams: Streams) -> None:
    if streams.beside is not None:
        os.set_inheritable(streams.beside, True)  # noqa: FBT003 -- its only form
    if streams.terminal is not None:
        fcntl.ioctl(streams.terminal, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2):
            os.dup2(streams.terminal, number)
        return
    for number, opened in enumerate(_opened_streams(streams)):
        os.dup2(opened, number)


def _opened_streams(streams: Streams) -> list[int]:
    """Stdin, stdout, stderr; the last two may be the same."""
    if streams.given is not None:
        return [os.dup(number) for number in streams.given]
    reads = _opened(streams.stdin or os.devnull, os.O_RDONLY)
    writes = _opened_for_writing(streams.stdout, streams)
    if streams.stderr is None or streams.stderr == streams.stdout:
        return [reads, writes, writes]
    return [reads, writes, _opened_for_writing(streams.stderr, streams)]


def _opened_for_writing(path: str, streams: Streams) -> int:
    begins_empty = os.O_TRUNC if path in streams.fresh else 0
    return _opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | begins_empty)


def _opened(path: str, flags: int) -> int:
    try:
        # Opening a pipe that has no reader would block.
        opened = _awaited(path, flags | os.O_NONBLOCK)
    except OSError as error:
        raise LaunchError(f"cannot open {path}: {error.strerror}") from None
    os.set_blocking(opened, True)
    return opened


def _awaited(path: str, flags: int) -> int:
    """Some clients make the folder that bears the job's id only when they have learnt the id."""
    deadline = time.monotonic() + _FOLDER_COMES_WITHIN_S
    while flags & os.O_CREAT and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags, 0o666)
        time.sleep(0.02)
    return os.open(path, flags, 0o666)


def _execute(way: Invocation, env: Mapping[str, str]) -> None:
    try:
        os.execvpe(way.argv[0], way.argv, env)  # noqa: S606 -- the user's own command
    except OSError as error:
        raise _refusal(way, error) from None


def _refusal(way: Invocation, error: OSError) -> LaunchError:
    command = way.argv[0]
    if isinstance(error, FileNotFoundError):
        is_hidden = way.inside is not None and command.startswith(_HIDDEN)
        why = "; a job has a /tmp and a /dev/shm of its own, put it elsewhere" if is_hidden else ""
        return LaunchError(f"cannot run {command}: there is no such command{why}", errno.ENOENT)
    return LaunchError(f"cannot run {command}: {error.strerror}", error.errno or 1)
