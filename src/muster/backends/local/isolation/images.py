"""Tasks in container images: what is started in place of the command, and how it is ended.

Imported only for jobs that name an image, since it brings more than a supervisor should carry.
"""

import os
from dataclasses import dataclass

from muster.backends.local.attempt import spool
from muster.backends.local.attempt.process import Bind
from muster.backends.local.isolation import container
from muster.backends.local.isolation.cgroup import Group
from muster.backends.local.isolation.users import LaunchError, LocalUser, NoToolError, acting_as


@dataclass(frozen=True, kw_only=True)
class Containers:
    """The containers of one attempt, by what ends, stops and continues each."""

    remove: tuple[tuple[str, ...], ...]
    pause: tuple[tuple[str, ...], ...]
    unpause: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Wrapping:
    """A task's command with a container tool in front of it, and the tool's environment.

    binds: folders of the user, and where the tool is to find them: the user may put a link in the
    place of a folder before root's tool mounts it, so the process that becomes the tool opens it
    as the user, and has it at a place that only root can change.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    as_root: bool
    binds: tuple[Bind, ...] = ()


class Images:
    """The image of one attempt, and the tool that runs it here."""

    def __init__(
        self, launch: spool.LaunchFile, user: LocalUser, folder: str, memory: str | None = None
    ) -> None:
        """`memory`: see `RunningTasks.memory`."""
        self._launch = launch
        self._image = launch["image"] or ""
        self._user = user
        self._folder = folder
        self._tool = _tool(self._image)
        self._as_root = os.geteuid() == 0 and container.runs_as_root(self._tool)
        self._options = container.options_of(self._tool, os.environ)
        self._shared = container.shared_memory(self._tool, memory, launch["marker"])
        self._opened: dict[str, str] = {}
        if self._as_root:
            if not container.is_reference(self._image):
                raise LaunchError(_NO_REFERENCE.format(self._image))
            _check_reach(user, folder)
        if self._as_root and container.sees_our_mounts(self._tool):
            self._opened[folder] = _mount_point(0)
            if self._reaches_home():
                self._opened.setdefault(user.home, _mount_point(1))

    def wrapped(
        self, argv: tuple[str, ...], rank: int, env: dict[str, str], group: Group | None = None
    ) -> Wrapping:
        """What to start for the task of this rank. group: where root's tool makes its own."""
        carried = container.carried(env)
        file = os.path.abspath(f"environment-{rank}")
        if self._as_root:
            spool.write_text(file, carried.text)
        seat = self._seat(group)
        memory_mib, cpu_milli = self._launch["memory_mib"], self._launch["cpu_milli"]
        processes = self._launch["processes"]
        if seat is not None:
            # The group has these limits.
            memory_mib = cpu_milli = processes = 0
        around = container.ContainerSettings(
            name=self._name(rank),
            workdir=self._folder,
            home=self._user.home if self._reaches_home() else None,
            opened=self._opened,
            env=() if self._as_root else carried.names,
            env_file=file if self._as_root else None,
            gpus=tuple(self._launch["tasks"][rank]["gpus"]),
            memory_mib=memory_mib or None,
            cpus=max(1, cpu_milli // 1_000) if cpu_milli else None,
            processes=processes or None,
            uid=self._user.uid,
            gid=self._user.gid,
            groups=tuple(os.getgrouplist(self._user.name, self._user.gid)),
            mounts=self._mounts(),
            shared_memory=self._shared,
            terminal=self._launch["terminal"] is not None and rank == 0,
            cgroup_parent=seat,
            as_root=self._as_root,
            init=container.has_init(self._tool),
            options=self._options,
        )
        return Wrapping(
            argv=container.wrapped(argv, self._image, self._tool, around),
            # Run by root, the tool must see nothing that the job chose.
            env=dict(os.environ) if self._as_root else env,
            as_root=self._as_root,
            binds=tuple(Bind(path=path, target=at) for path, at in self._opened.items()),
        )

    def containers(self) -> Containers | None:
        """How to get at them from outside; None where they are processes like any others."""
        names = [self._name(rank) for rank in range(len(self._launch["tasks"]))]
        if not container.stop_argv(self._tool, names[0]):
            return None
        return Containers(
            remove=(
                *(container.remove_argv(self._tool, name, self._options) for name in names),
                *container.free_argvs(self._tool, self._shared, self._options),
            ),
            pause=tuple(container.pause_argv(self._tool, name, self._options) for name in names),
            unpause=tuple(
                container.unpause_argv(self._tool, name, self._options) for name in names
            ),
        )

    def _seat(self, group: Group | None) -> str | None:
        """Where root's tool makes the groups of containers, if they can be within the job's."""
        if group is None or not self._as_root or not container.takes_paths(self._tool):
            return None
        return group.seat()

    def _mounts(self) -> tuple[str, ...]:
        script, mps = os.path.abspath(spool.SCRIPT), self._launch["mps"]
        return (
            *((f"{script}:{script}:ro",) if self._launch["script"] else ()),
            *(() if mps is None else (mps,)),
        )

    def _reaches_home(self) -> bool:
        with acting_as(self._user):
            return os.path.isdir(os.path.join(self._user.home, "."))

    def _name(self, rank: int) -> str:
        return f"muster-{self._launch['marker'].replace('.', '-')}-{rank}"


def _tool(image: str) -> str:
    tool = container.tool_for(image)
    if tool is None:
        raise NoToolError(
            "no podman, docker or apptainer on this machine; install one, "
            "or ask your administrator to allow images_on_host for your queue"
        )
    return tool


def _check_reach(user: LocalUser, folder: str) -> None:
    """Root's tool would mount any folder; the user may have only what they can enter."""
    try:
        with acting_as(user):
            os.stat(os.path.join(folder, "."))
    except OSError as error:
        raise LaunchError(
            f"cannot enter the working directory {folder}: {error.strerror}"
        ) from None


def _mount_point(number: int) -> str:
    """An empty folder of root's beside the attempt's files."""
    path = os.path.abspath(spool.mount_point(number))
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


_NO_REFERENCE = (
    "{} is not the name of an image in a registry; images in files and folders cannot be run by "
    "root's podman or docker: push the image to a registry"
)
