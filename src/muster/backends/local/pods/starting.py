"""Starting the processes of a pod: in containers, or on the machine where that is allowed."""

import contextlib
import os
import stat
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from muster.backends.local.attempt import process, spool
from muster.backends.local.attempt.tasks import RunningTasks
from muster.backends.local.isolation import container
from muster.backends.local.isolation.cgroup import Group
from muster.backends.local.isolation.namespaces import Namespaces
from muster.backends.local.isolation.users import LaunchError, surroundings
from muster.backends.local.pods import places
from muster.backends.local.pods.visits import VISIT_VARIABLE, Command
from muster.backends.local.pods.volumes import VolumePlace, Volumes
from muster.launch.pods.variables import MissingError, NodeFacts, Sources, command, environment
from muster.model.pod import Container, HostFolder, Mount, PodLaunch

MESSAGES = "messages"
LONGEST_MESSAGE = 4_096
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""Where the user may have put something else: no link is followed, and nothing is waited for."""
_GIVEN = ("MUSTER_", "CUDA_", "NVIDIA_", "MASTER_")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_RUNTIMES = ("runc:", "runc", "crun", "conmon")
"""What the process of a container is called until it becomes the command."""

_NO_LINE = (
    "the values of {} cannot be given to a container by {}, because they have several lines or are "
    "very long: mount them as files, or have podman installed"
)
_NO_TEXT = "the value of {} is no text: mount it as a file"
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
        self.as_root = tool is not None and os.geteuid() == 0 and container.runs_as_root(tool)
        # Only root's tool finds what its user cannot enter.
        self._owner = None if self.as_root else running.user
        self.folder = places.made_folder(places.home_of(Path.cwd()), launch["key"], self._owner)
        with places.as_owner(self._owner):
            (self.folder / MESSAGES).mkdir(mode=0o700, exist_ok=True)
        place = VolumePlace(
            folder=self.folder,
            user=running.user,
            group=pod.volume_group if running.user.uid == 0 else None,
            owner=self._owner,
            note=self._note_memory,
        )
        self.volumes = Volumes(place, pod.volumes)
        self.options = () if tool is None else container.options_of(tool, os.environ)
        self._shared_memory = (
            None
            if tool is None
            else container.shared_memory(tool, running.memory, launch["marker"])
        )
        # By the names of containers.
        self._secrets: dict[str, tuple[str, ...]] = {}

    def container_name(self, name: str, run: int) -> str:
        """What the tool calls it."""
        task = f"{self._launch['rank']}-" if "rank" in self._launch else ""
        return f"muster-{self._launch['marker'].replace('.', '-')}-{task}{name}-{run}"

    def image_id(self, image: str) -> str | None:
        """By which the tool knows it; None: it is not on this machine. Looking takes no time."""
        if self.tool is None:
            return ""
        argv = container.exists_argv(self.tool, image, self.options)
        done = _run(argv)
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
        return process.begin(_as_tool(way) if self.as_root else way, env, _given(files))

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
        return [
            *(list(container.remove_argv(self.tool, each, self.options)) for each in names),
            *(list(self._forget_argv(each)) for each in self._secrets),
            *map(list, container.free_argvs(self.tool, self._shared_memory, self.options)),
        ]

    def forget_secrets(self, name: str, run: int) -> None:
        """The tool keeps none of a container that is gone."""
        called = self.container_name(name, run)
        if called in self._secrets:
            _run(self._forget_argv(called))
            del self._secrets[called]

    def _forget_argv(self, called: str) -> tuple[str, ...]:
        return container.forget_argv(str(self.tool), self._secrets[called], self.options)

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
        with places.as_owner(self._owner):
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | _AS_IT_IS, 0o600)
            # Whoever the container's processes are, they may write their last words.
            os.fchmod(opened, 0o666)
        if self._running.user.changes:
            os.fchown(opened, self._running.user.uid, self._running.user.gid)
        os.close(opened)
        return path

    def last_words(self, prepared: Prepared) -> str:
        """What a container wrote as its last words."""
        with contextlib.suppress(OSError), places.as_owner(self._owner):
            opened = os.open(prepared.message, os.O_RDONLY | _AS_IT_IS)
            try:
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    return os.read(opened, LONGEST_MESSAGE).decode(errors="replace")
            finally:
                os.close(opened)
        return ""

    def _note_memory(self, folder: Path) -> None:
        """For the process that has to clear up if this one dies."""
        spool.write(places.name_of(spool.POD_MEMORY, self._launch), {"folder": str(folder)})

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
        # Whoever wrote the pod means the container, also by PATH.
        carried = container.carried(env, without=frozenset())
        # A tool of the person's own has variables from its environment, where it reads its own.
        of_tool = {name: text for name, text in env.items() if name in container.OF_IMAGE}
        in_file = carried if self.as_root else container.carried(of_tool, without=frozenset())
        file = self.folder / MESSAGES / f"{spec.name}.{run}.env"
        with places.as_owner(self._owner):
            spool.write_text(file, in_file.text)
        pid_file = self.folder / MESSAGES / f"{spec.name}.{run}.pid"
        mounts, binds = self._mounts(spec, env, sources, node)
        mps = () if self._launch["mps"] is None else (self._launch["mps"],)
        uid, gid, groups = self._who(spec)
        settings = container.ContainerSettings(
            name=self.container_name(spec.name, run),
            workdir="",
            env=() if self.as_root else container.carried(env).names,
            env_file=str(file),
            secrets=self._kept(spec, run, carried.left_out, env) if self.as_root else {},
            gpus=tuple(self._launch["tasks"][0]["gpus"]),
            uid=uid,
            gid=gid,
            groups=groups,
            mounts=(*mounts, *mps, f"{message}:{spec.message_path}"),
            shared_memory=self._shared_memory,
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
            way=_as_tool(way, binds, self._running.tools_inside) if self.as_root else way,
            # Run by root, the tool must see nothing that the job chose.
            env=dict(os.environ)
            if self.as_root
            else {**self._environ(), **{name: env[name] for name in settings.env}},
            name=spec.name,
            message=message,
            pid_file=pid_file,
            part=part,
        )

    def _kept(
        self, spec: Container, run: int, names: tuple[str, ...], env: dict[str, str]
    ) -> dict[str, str]:
        """The tool keeps what no file of variables can hold, under names of our own."""
        tool, called = str(self.tool), self.container_name(spec.name, run)
        if not names:
            return {}
        if not container.keeps_secrets(tool):
            raise MissingError(_NO_LINE.format(", ".join(names), Path(tool).name))
        # Those of a try that came to nothing.
        self.forget_secrets(spec.name, run)
        secrets = {name: f"{called}-{number}" for number, name in enumerate(names)}
        self._secrets[called] = tuple(secrets.values())
        for name, secret in secrets.items():
            self._keep(name, secret, env[name])
        return secrets

    def _keep(self, name: str, secret: str, value: str) -> None:
        file = self.folder / MESSAGES / f"{secret}.value"
        try:
            value.encode()
        except UnicodeEncodeError:
            raise MissingError(_NO_TEXT.format(name)) from None
        spool.write_text(file, value)
        try:
            done = _run(container.keep_argv(str(self.tool), secret, str(file), self.options))
        finally:
            file.unlink()
        if done.returncode:
            raise MissingError(f"the value of {name} cannot be kept: {done.stderr.strip()}")

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
    ) -> tuple[list[str], tuple[process.Bind, ...]]:
        """What the tool mounts, and what the user must open for it first.

        Where the user could put a link in the place of a folder, the folder is opened with their
        rights, and the tool finds it at a place that only root can change.
        """
        mounts: list[str] = []
        binds: list[process.Bind] = []
        for number, mount in enumerate(spec.mounts):
            begins = self.volumes.prepared(mount, sources, node)
            inside = self.volumes.inside(mount, begins, env)
            is_fixed = mount.read_only or self.volumes.is_written_by_us(mount)
            if self.as_root and (mount.part or self.volumes.is_host_path(mount)):
                point = self._mount_point(f"{spec.name}-{number}", inside)
                binds.append(self._bind(mount, begins, inside, point))
                inside = point
            mounts.append(f"{inside}:{mount.path}{':ro' if is_fixed else ''}")
        return mounts, tuple(binds)

    def _bind(self, mount: Mount, begins: str, inside: str, point: str) -> process.Bind:
        if self.volumes.is_host_path(mount):
            return process.Bind(path=inside, target=point)
        return process.Bind(below=begins, path=os.path.relpath(inside, begins), target=point)

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
            inside=self._running.inside,
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
        return self._begun(_as_tool(way) if self.as_root else way, env, tells)

    def _begun(self, way: process.Invocation, env: dict[str, str], tells: int) -> int:
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            return process.begin(way, env, _given((null, tells, tells)))
        finally:
            os.close(null)


def demand_tool(tool: str, pod: PodLaunch, *, is_root: bool) -> None:
    """LaunchError where the tool cannot run this pod: of what it lacks, it would say nothing."""
    if not container.runs_pods(tool):
        raise LaunchError(f"{tool} runs no pods: install podman or docker")
    if not is_root or container.sees_our_mounts(tool):
        return
    # What users could swap is opened as them, in mounts that only our processes see.
    if any(isinstance(each.source, HostFolder) for each in pod.volumes):
        raise LaunchError(_UNSEEN.format(tool, "hostPath"))
    if any(mount.part for each in pod.containers for mount in each.mounts):
        raise LaunchError(_UNSEEN.format(tool, "subPath"))


_UNSEEN = (
    "the daemon of {0} does not see what Muster opens for a {1}: leave it out, or install podman"
)


def _run(argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Of the tool, what takes no time."""
    return subprocess.run(  # noqa: S603 -- made by us
        argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def _as_tool(
    way: process.Invocation,
    binds: tuple[process.Bind, ...] = (),
    inside: Namespaces | None = None,
) -> process.Invocation:
    return replace(way, as_root=True, binds=binds, inside=inside, cpus=())


def _given(files: tuple[int, ...]) -> process.Streams:
    """Three open files, or one terminal."""
    if len(files) == 1:
        return process.Streams(stdin=None, stdout="", stderr=None, terminal=files[0])
    first, second, third = files
    return process.Streams(stdin=None, stdout="", stderr=None, given=(first, second, third))


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
