"""Starting the processes of a pod: in containers, or on the machine where that is allowed."""

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from muster.backends.local.attempt import process, spool
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.isolation import container
from muster.backends.local.isolation.cgroup import Group
from muster.backends.local.isolation.users import LaunchError, surroundings
from muster.backends.local.pods import places
from muster.backends.local.pods.visits import VISIT_VARIABLE, Command
from muster.backends.local.pods.volumes import Volumes
from muster.launch.pods.variables import MissingError, NodeFacts, Sources, command, environment
from muster.model.pod import Container, PodLaunch

MESSAGES = "messages"
LONGEST_MESSAGE = 4_096
_GIVEN = ("MUSTER_", "CUDA_", "NVIDIA_", "MASTER_")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_RUNTIMES = ("runc:", "runc", "crun", "conmon")
"""What the process of a container is called until it becomes the command."""

_ON_HOST = (
    "{} does not exist on this machine, where the pod runs without its image: "
    "mount the volume at a folder that is there"
)


class NoCommandError(LaunchError):
    """On the machine itself, a container must say what it runs."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One run of a container, ready to be started. message: the file of its last words."""

    way: process.Invocation
    env: dict[str, str]
    name: str
    message: Path
    pid_file: Path | None
    part: Group | None


class Starter:
    """Knows how the containers of one pod are started here. tool: None on the machine itself."""

    def __init__(
        self, launch: spool.LaunchFile, pod: PodLaunch, running: RunningTasks, tool: str | None
    ) -> None:
        self._launch = launch
        self._pod = pod
        self._running = running
        self.tool = tool
        self.folder = places.make(places.folder_of(places.home_of(Path.cwd()), launch["key"]))
        places.make(self.folder / MESSAGES)
        self.volumes = Volumes(
            self.folder,
            running.user,
            pod.volumes,
            group=pod.volume_group if running.user.uid == 0 else None,
        )
        self.as_root = tool is not None and os.geteuid() == 0 and container.runs_as_root(tool)
        self.options = () if tool is None else container.options_of(tool, os.environ)

    def container_name(self, name: str, run: int) -> str:
        """What the tool calls it."""
        task = f"{self._launch['rank']}-" if "rank" in self._launch else ""
        return f"muster-{self._launch['marker'].replace('.', '-')}-{task}{name}-{run}"

    def image_id(self, image: str) -> str | None:
        """By which the tool knows it; None: it is not on this machine. Looking takes no time."""
        if self.tool is None:
            return ""
        argv = container.exists_argv(self.tool, image, self.options)
        done = subprocess.run(  # noqa: S603 -- made by us
            argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            return None
        return f"sha256:{done.stdout.strip().removeprefix('sha256:')}"

    def pulling(self, image: str, tells: int) -> int:
        """The number of the process that fetches it, and writes why it cannot."""
        if self.tool is None or (self.as_root and not container.is_reference(image)):
            raise LaunchError(f'Failed to pull image "{image}": invalid reference')
        return self._beside(container.pull_argv(self.tool, image, self.options), tells)

    def asking(self, name: str, run: int, argv: tuple[str, ...], tells: int) -> int:
        """The number of a process that runs a command beside the container's own."""
        if self.tool is not None:
            inside = self.container_name(name, run)
            return self._beside(container.exec_argv(self.tool, inside, argv, self.options), tells)
        way = self._way(argv, self._running.group, self._running.folder)
        return self._begun(way, self._environ(), tells)

    def visiting(self, command: Command, run: int, prepared: Prepared) -> int:
        """The number of a process that runs a visitor's command in a container."""
        files, mark = command.files, {VISIT_VARIABLE: command.id}
        if self.tool is None:
            way = self._way(command.argv, prepared.part or self._running.group, "/")
            return process.begin(way, {**prepared.env, **mark}, _given(files))
        flags = [flag for name, id in mark.items() for flag in ("--env", f"{name}={id}")]
        flags += ["--interactive"] if command.has_input else []
        flags += container.terminal_flags(self.tool) if command.has_terminal else []
        inside = self.container_name(command.container, run)
        argv = container.exec_argv(self.tool, inside, command.argv, self.options, tuple(flags))
        way = self._way(argv, None, "/")
        env = dict(os.environ) if self.as_root else self._environ()
        return process.begin(_as_tool(way, ()) if self.as_root else way, env, _given(files))

    def removing(self, name: str, run: int, tells: int) -> int | None:
        """The number of the process that takes away what a container left."""
        if self.tool is None:
            return None
        called = self.container_name(name, run)
        return self._beside(container.remove_argv(self.tool, called, self.options), tells)

    def remove_commands(self, runs: dict[str, int]) -> list[list[str]]:
        """For the process that has to clear up if this one dies."""
        if self.tool is None:
            return []
        names = [self.container_name(name, run) for name, run in runs.items()]
        return [list(container.remove_argv(self.tool, each, self.options)) for each in names]

    def prepared(self, spec: Container, run: int, sources: Sources, node: NodeFacts) -> Prepared:
        """Everything for one run; MissingError or LaunchError when it cannot be."""
        if spec.not_root and self._who(spec)[0] == 0:
            why = "container has runAsNonRoot and image will run as root"
            pod = f"{self._pod.name}_{self._pod.namespace}({self._pod.uid})"
            raise MissingError(f'{why} (pod: "{pod}", container: {spec.name})')
        env = environment(spec, sources, node, self._given(spec))
        part = self._part(spec, run)
        message = self._message(spec, run)
        if self.tool is None:
            return self._on_host(spec, env, part, message)
        return self._in_container(spec, run, (env, sources, node), part, message)

    def _part(self, spec: Container, run: int) -> Group | None:
        group = self._running.group
        if group is None:
            return None
        wanted = spec.memory_mib or self._launch["memory_mib"]
        task = f"{self._launch['rank']}-" if "rank" in self._launch else ""
        return group.part(f"ctr-{task}{spec.name}-{run}", wanted)

    def _message(self, spec: Container, run: int) -> Path:
        path = self.folder / MESSAGES / f"{spec.name}.{run}"
        path.touch()
        # Whoever the container's processes are, they may write their last words.
        path.chmod(0o666)
        if self._running.user.changes:
            os.chown(path, self._running.user.uid, self._running.user.gid)
        return path

    def _given(self, spec: Container) -> dict[str, str]:
        """What every process of an attempt has, as far as it is no other container's."""
        task = self._launch["tasks"][0]["env"]
        every = {**self._launch["env"], **task}
        others = {variable.name for each in self._pod.containers for variable in each.env}
        own = {variable.name for variable in spec.env}
        found = {
            name: text
            for name, text in every.items()
            if name.startswith(_GIVEN) and name not in others - own
        }
        if every.get(_VISIBLE):
            found["NVIDIA_VISIBLE_DEVICES"] = every[_VISIBLE]
        found[spool.MARKER_VARIABLE] = self._launch["marker"]
        return found

    def _on_host(
        self, spec: Container, env: dict[str, str], part: Group | None, message: Path
    ) -> Prepared:
        entrypoint, args = command(spec, env)
        argv = (*entrypoint, *args)
        if not entrypoint:
            raise NoCommandError(
                "the pod runs without its image, so that it must say what to run: set `command`"
            )
        for mount in spec.mounts:
            # The API's own token is for containers; on the machine, its user has one already.
            if not os.path.exists(mount.path) and "serviceaccount" not in mount.path:
                raise MissingError(_ON_HOST.format(mount.path))
        everything = {**surroundings(self._running.user), "HOSTNAME": self._pod.hostname, **env}
        folder = spec.workdir or self._running.folder
        return Prepared(
            way=self._way(argv, part or self._running.group, folder),
            env={**everything, "TERMINATION_LOG": str(message)},
            name=spec.name,
            message=message,
            pid_file=None,
            part=part,
        )

    def _in_container(
        self,
        spec: Container,
        run: int,
        found: tuple[dict[str, str], Sources, NodeFacts],
        part: Group | None,
        message: Path,
    ) -> Prepared:
        env, sources, node = found
        entrypoint, args = command(spec, env)
        carried = container.carried(env)
        file = self.folder / MESSAGES / f"{spec.name}.{run}.env"
        if self.as_root:
            spool.write_text(file, carried.text)
        pid_file = self.folder / MESSAGES / f"{spec.name}.{run}.pid"
        mounts, binds = self._mounts(spec, env, sources, node)
        uid, gid, groups = self._who(spec)
        settings = container.ContainerSettings(
            name=self.container_name(spec.name, run),
            workdir="",
            env=() if self.as_root else carried.names,
            env_file=str(file) if self.as_root else None,
            gpus=tuple(self._launch["tasks"][0]["gpus"]),
            uid=uid,
            gid=gid,
            groups=groups,
            mounts=(*mounts, f"{message}:{spec.message_path}"),
            cgroup_parent=None if part is None else part.seat(),
            as_root=self.as_root,
            keeps_entrypoint=not entrypoint,
            stays=True,
            terminal=spec.tty,
            init=False,
            options=(*self.options, *self._flags(spec, pid_file)),
        )
        argv = container.wrapped((*entrypoint, *args), spec.image, str(self.tool), settings)
        way = self._way(argv, None, "/")
        return Prepared(
            way=_as_tool(way, binds) if self.as_root else way,
            # Run by root, the tool must see nothing that the job chose.
            env=dict(os.environ) if self.as_root else {**self._environ(), **env},
            name=spec.name,
            message=message,
            pid_file=pid_file,
            part=part,
        )

    def _who(self, spec: Container) -> tuple[int, int, tuple[int, ...]]:
        """User, group and further groups of a container: the person's, unless that is root."""
        user = self._running.user
        own = tuple(os.getgrouplist(user.name, user.gid))
        if user.uid:
            return user.uid, user.gid, own
        more = self._pod.groups
        if self._pod.volume_group is not None:
            more = (*more, self._pod.volume_group)
        uid = user.uid if spec.user is None else spec.user
        gid = user.gid if spec.group is None else spec.group
        return uid, gid, more if uid or more else own

    def _flags(self, spec: Container, pid_file: Path) -> tuple[str, ...]:
        flags = ["--hostname", self._pod.hostname, "--pidfile", str(pid_file), "--pull", "never"]
        for name, address in self._pod.aliases:
            flags += ["--add-host", f"{name}:{address}"]
        if spec.workdir:
            flags += ["--workdir", spec.workdir]
        if spec.read_only:
            flags.append("--read-only")
        if spec.cpu_milli:
            flags += ["--cpus", f"{spec.cpu_milli / 1_000:.3f}"]
        return tuple(flags)

    def _mounts(
        self, spec: Container, env: dict[str, str], sources: Sources, node: NodeFacts
    ) -> tuple[list[str], tuple[tuple[str, str], ...]]:
        """What the tool mounts, and what the user must open for it first.

        Where the user could put a link in the place of a folder, the folder is opened with their
        rights, and the tool finds it at a place that only root can change.
        """
        mounts: list[str] = []
        binds: list[tuple[str, str]] = []
        for number, mount in enumerate(spec.mounts):
            begins = self.volumes.prepared(mount, sources, node)
            inside = self.volumes.inside(mount, begins, env)
            if self.as_root and (mount.part or self.volumes.is_host_path(mount)):
                point = self._mount_point(f"{spec.name}-{number}", inside)
                binds.append((inside, point))
                inside = point
            mounts.append(f"{inside}:{mount.path}{':ro' if mount.read_only else ''}")
        return mounts, tuple(binds)

    def _mount_point(self, name: str, inside: str) -> str:
        point = self.folder / "mounts" / name
        point.parent.mkdir(mode=0o700, exist_ok=True)
        if os.path.isdir(inside):
            point.mkdir(exist_ok=True)
        else:
            point.touch()
        return str(point)

    def _way(self, argv: tuple[str, ...], group: Group | None, folder: str) -> process.Invocation:
        return process.Invocation(
            argv=argv,
            user=self._running.user,
            group=group,
            folder=folder,
            umask=None,
            cpus=tuple(self._launch["cpus"]),
            mounts=self._running.mounts,
            new_privileges=self._launch["new_privileges"],
        )

    def _environ(self) -> dict[str, str]:
        return {
            **surroundings(self._running.user),
            spool.MARKER_VARIABLE: self._launch["marker"],
        }

    def _beside(self, argv: tuple[str, ...], tells: int) -> int:
        """The tool itself, with its own rights and environment."""
        way = self._way(argv, None, "/")
        env = dict(os.environ) if self.as_root else self._environ()
        return self._begun(_as_tool(way, ()) if self.as_root else way, env, tells)

    def _begun(self, way: process.Invocation, env: dict[str, str], tells: int) -> int:
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            return process.begin(way, env, _given((null, tells, tells)))
        finally:
            os.close(null)


def _as_tool(way: process.Invocation, binds: tuple[tuple[str, str], ...]) -> process.Invocation:
    return replace(way, as_root=True, binds=binds, mounts=None, cpus=())


def _given(files: tuple[int, ...]) -> process.Streams:
    """Three open files, or one terminal."""
    if len(files) == 1:
        return process.Streams(stdin=None, stdout="", stderr=None, terminal=files[0])
    first, second, third = files
    return process.Streams(stdin=None, stdout="", stderr=None, given=(first, second, third))


def last_words(path: Path) -> str:
    """What a container wrote as its last words."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_MESSAGE).decode(errors="replace")
    except OSError:
        return ""


def has_begun(pid_file: Path) -> bool:
    """Does the container run its command, or has it run it? Its process is made before that."""
    try:
        pid = pid_file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return False
    if not pid:
        return False
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return not name.startswith(_RUNTIMES)
