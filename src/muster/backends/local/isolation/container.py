"""Container images: the command line that runs a task's command inside one.

Nothing here starts a process. A task in an image is an ordinary command with a container tool in
front of it, so that all tasks are run in one way. Promises of the wrapped
command: it stays in the foreground, passes signals on, ends with the exit code of the command
(125: the tool itself failed), and leaves no container behind.
"""

import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.launch.images import reference
from muster.model.launch import IMAGE_FILES, is_image_file
from muster.model.value import Value

TOOL_FAILED = 125
"""The exit code by which podman and docker say that the command was never begun."""


class ContainerSettings(Value, kw_only=True):
    """What a container gets of the machine around it.

    name: of the container; no other on this machine may have it.
    workdir, home: mounted where they are outside; home may be None. An empty workdir: the image's.
    opened: where the tool finds those of them that the user opened for it.
    env: names to pass on from the environment in which the tool is run. See `carried`.
    env_file: a file that `carried` gave the text of, in place of `env` when as_root.
    secrets: by their names, variables whose values the tool keeps (see `keep_argv`).
    gpus: real ones, as CUDA_VISIBLE_DEVICES names them. Pretend ones are only in the environment.
    memory_mib, cpus, processes: None where `cgroup_parent` has the limits already.
    uid, gid, groups: who the command is inside.
    mounts: `outside:inside` or `outside:inside:ro`. When as_root, the caller makes sure that
        the user can reach every outside path without the tool's help, and has opened the others.
    shared_memory: what is behind /dev/shm, as `shared_memory` names it; None: the machine's own.
        Where it is the job's, the tool is in the job's namespaces.
    terminal: the tool's stdin is a terminal, and the command gets one too.
    cgroup_parent: a cgroup below which the container's own is made: a path for podman; for
        docker a path or a `.slice`, as its daemon is set up. Not used by apptainer, whose
        processes stay in the cgroup of the process that starts it.
    as_root: the tool is run by root on behalf of `uid` (see `runs_as_root`). Then the tool must
        be given Muster's own environment, never the job's: LD_PRELOAD or CONTAINERS_CONF would
        make the user root.
    keeps_entrypoint: the command is what the image's own entrypoint is given.
    stays: the container is not removed when it is over; somebody else does that.
    init: the tool has a first process to put into containers (see `has_init`). Without one the
        command is process 1 itself, and a signal it does not expect is lost on it.
    options: the administrator's own, as `options_of` reads them.
    """

    name: str
    workdir: str
    home: str | None = None
    opened: Mapping[str, str] = {}
    env: tuple[str, ...] = ()
    env_file: str | None = None
    secrets: Mapping[str, str] = {}
    gpus: tuple[str, ...] = ()
    memory_mib: int | None = None
    cpus: int | None = None
    processes: int | None = None
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    mounts: tuple[str, ...] = ()
    shared_memory: str | None = None
    terminal: bool = False
    cgroup_parent: str | None = None
    as_root: bool = False
    keeps_entrypoint: bool = False
    stays: bool = False
    init: bool = True
    options: tuple[str, ...] = ()


class Carried(Value):
    """A job's environment, made ready for a container.

    names: for `ContainerSettings.env`. text: the same for `env_file`; keep that file from others.
    left_out: names whose values such a file cannot hold (line breaks, or very long);
        podman can keep those that are text as secrets.
    """

    names: tuple[str, ...]
    text: str
    left_out: tuple[str, ...]


def is_reference(image: str) -> bool:
    """Does it name an image of a registry, and no file, folder or store of this machine?

    Run by root, podman would read an archive that only somebody else may read.
    """
    name = reference(image)
    return name.partition(":")[0] not in _TRANSPORTS and _REFERENCE.fullmatch(name) is not None


def tool_for(image: str) -> str | None:
    """The path of a tool on this machine that can run the image; None when there is none."""
    wanted = ("apptainer", "singularity") if is_image_file(image) else _TOOLS
    found = (shutil.which(tool) for tool in wanted if _is_up(tool))
    return next((path for path in found if path), None)


def tools_found() -> dict[str, bool]:
    """The tools that are installed, by their paths, and whether each can be used now."""
    found = {tool: shutil.which(tool) for tool in _TOOLS}
    return {path: _is_up(tool) for tool, path in found.items() if path is not None}


def can_run() -> tuple[bool, bool]:
    """Whether images of a registry, and files of images, can be run on this machine now."""
    return tool_for("image") is not None, tool_for(f"image{IMAGE_FILES[0]}") is not None


def can_run_pods() -> tuple[bool, bool]:
    """Whether pods can be run here now, and paths of the machine be mounted in them.

    Without a tool they can: on the machine itself, in queues that allow it.
    """
    tool = tool_for("image")
    if tool is None:
        return True, True
    return runs_pods(tool), os.geteuid() != 0 or sees_our_mounts(tool)


def runs_pods(tool: str) -> bool:
    """Whether it keeps containers that are looked at from outside; apptainer has but processes."""
    return _kind(tool) != "apptainer"


def runs_as_root(tool: str) -> bool:
    """Whether a Muster of root runs this tool as root; apptainer is always run by the user."""
    return _kind(tool) != "apptainer"


def sees_our_mounts(tool: str) -> bool:
    """Whether it mounts what its own process sees; docker's daemon sees what the machine has."""
    return _kind(tool) == "podman"


def takes_paths(tool: str) -> bool:
    """Whether it makes a container's group where a path says; docker's daemon may want a slice."""
    return _kind(tool) == "podman"


def has_init(tool: str) -> bool:
    """Whether `--init` will work: docker brings its own, Debian's podman only recommends it."""
    if _kind(tool) != "podman":
        return True
    return any(Path(folder, "catatonit").exists() for folder in _INIT_FOLDERS)


def options_of(tool: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What the administrator adds to each use: MUSTER_PODMAN_OPTIONS, MUSTER_DOCKER_OPTIONS ..."""
    return tuple(shlex.split(environ.get(f"MUSTER_{_kind(tool).upper()}_OPTIONS", "")))


OF_IMAGE = frozenset(
    "HOSTNAME LD_LIBRARY_PATH LD_PRELOAD OLDPWD PATH PWD PYTHONHOME SHELL SHLVL TMPDIR _".split()
)
"""Variables that say where things are on the machine, and mean nothing in an image."""


def carried(env: Mapping[str, str], without: frozenset[str] = OF_IMAGE) -> Carried:
    """What of a job's environment goes into a container."""
    names = tuple(name for name in sorted(env) if _NAME.fullmatch(name) and name not in without)
    fitting = tuple(name for name in names if _fits_on_a_line(env[name]))
    return Carried(
        names=names,
        text="".join(f"{name}={env[name]}\n" for name in fitting),
        left_out=tuple(name for name in names if name not in fitting),
    )


def keeps_secrets(tool: str) -> bool:
    """Can it keep values of variables that no file of variables can hold?"""
    return _kind(tool) == "podman"


def keep_argv(tool: str, secret: str, file: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Has it keep what is in a file, under a name, for `ContainerSettings.secrets`."""
    return (tool, *_choosing(tool, options), "secret", "create", secret, file)


def forget_argv(
    tool: str, secrets: tuple[str, ...], options: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """It keeps them no more; commands are run in a container only as long as it does."""
    return (tool, *_choosing(tool, options), "secret", "rm", *secrets)


def shared_memory(tool: str, folder: str | None, mark: str) -> str | None:
    """For `ContainerSettings.shared_memory`: where the tool's process sees it.

    docker's daemon does not, and makes a volume, in memory as long as a container of the job runs.
    """
    if folder is None or _kind(tool) != "docker":
        return folder
    return f"muster-{mark.replace('.', '-')}-memory"


def free_argvs(
    tool: str, shared_memory: str | None, options: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], ...]:
    """What is left of a job's shared memory when its containers are gone is removed."""
    if shared_memory is None or _kind(tool) != "docker":
        return ()
    return ((tool, *_choosing(tool, options), "volume", "rm", "--force", shared_memory),)


def wrapped(
    argv: tuple[str, ...], image: str, tool: str, around: ContainerSettings
) -> tuple[str, ...]:
    """The command line that runs `argv` in the image; with no argv, what the image itself runs."""
    if _kind(tool) == "apptainer":
        verb = "exec" if argv else "run"
        return (tool, verb, *_apptainer(around), *around.options, "--", _to_fetch(image), *argv)
    # A command is run as it stands: an image's entrypoint would put words in front of it.
    entrypoint = ("--entrypoint", "") if argv and not around.keeps_entrypoint else ()
    flags = tuple(flag for part in _PARTS for flag in part(_kind(tool), around))
    # After `--` nothing is an option, whatever an image is called.
    return (tool, "run", *flags, *around.options, *entrypoint, "--", reference(image), *argv)


def stop_argv(tool: str, name: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Ends the container at once, with all that runs in it. Twice, or too late: no harm.

    Empty for apptainer, here and below: its processes are children like any others.
    """
    return _on_container(tool, ("stop", "-t", "0"), name, options)


def remove_argv(tool: str, name: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Ends it, and removes what a tool that was itself killed may have left."""
    at_once = ("-t", "0") if _kind(tool) == "podman" else ()
    return _on_container(tool, ("rm", "--force", "--volumes", *at_once), name, options)


def exists_argv(tool: str, image: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Ends with 0 where the machine has the image already, and prints its id."""
    shows = ("--format", "{{.Id}}")
    return (tool, *_choosing(tool, options), "image", "inspect", *shows, reference(image))


def pull_argv(tool: str, image: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Fetches an image."""
    return (tool, *_choosing(tool, options), "pull", "--quiet", reference(image))


def exec_argv(
    tool: str,
    name: str,
    argv: tuple[str, ...],
    options: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Runs a command in a container that runs. flags: of `exec`, such as `-i` and `-t`."""
    return (tool, *_choosing(tool, options), "exec", *flags, name, *argv)


def terminal_flags(tool: str) -> tuple[str, ...]:
    """Gives a command a terminal; no keys leave it, or the command would seem to have ended."""
    return ("--tty", "--detach-keys", "") if _kind(tool) == "podman" else ("--tty",)


def pause_argv(tool: str, name: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Stops all that runs in the container in place; SIGSTOP to the tool would not reach it."""
    return _on_container(tool, ("pause",), name, options)


def unpause_argv(tool: str, name: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Lets a paused container go on."""
    return _on_container(tool, ("unpause",), name, options)


DOCKER_SOCKET = "/var/run/docker.sock"
_TOOLS = ("podman", "docker", "apptainer", "singularity")
_TRANSPORTS = frozenset(
    "atomic containers-storage dir docker docker-archive docker-daemon oci oci-archive ostree sif"
    " tarball".split()
)
_REFERENCE = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[A-Za-z0-9]+:[0-9a-fA-F]{32,128})?"
)
_NAME = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")
_INIT_FOLDERS = ("/usr/libexec/podman", "/usr/lib/podman", "/usr/local/libexec/podman")
# The tools read such files line by line, and give up on lines of 64 KiB.
_LONGEST_LINE = 60_000
_SHM = "/dev/shm"  # noqa: S108 -- the place itself, not a file in it
# Made on first use, and as large as the kernel makes it: half of the machine's memory.
_VOLUME = (
    "volume,{},volume-nocopy,volume-driver=local,volume-opt=type=tmpfs,volume-opt=device=tmpfs,"
    '"volume-opt=o=mode=1777,nosuid,nodev"'
)
# Options that choose which containers the tool sees: they belong to every use, not only to `run`.
_CHOOSING = frozenset(
    "--cgroup-manager --connection --conmon --context --host --root --runroot --runtime"
    " --storage-driver --storage-opt --tmpdir --url".split()
)
_OF_DOCKERS_RUN = frozenset({"--runtime"})


def _is_up(tool: str) -> bool:
    """Docker's command may be there without the daemon that does the work."""
    if tool != "docker" or "DOCKER_HOST" in os.environ:
        return True
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(DOCKER_SOCKET)
        except OSError:
            return False
    return True


def _kind(tool: str) -> str:
    name = Path(tool).name
    return "apptainer" if name == "singularity" else name


def _fits_on_a_line(value: str) -> bool:
    try:
        line = value.encode()
    except UnicodeEncodeError:
        # Bytes that are no text: the tools refuse a file with such.
        return False
    return len(line) <= _LONGEST_LINE and not any(each in line for each in (b"\n", b"\r", b"\0"))


def _to_fetch(image: str) -> str:
    return image.removeprefix("file://") if is_image_file(image) else f"docker://{reference(image)}"


def _apptainer(around: ContainerSettings) -> Iterator[str]:
    """Its processes are children in our cgroup, with our user and environment: little to say."""
    if around.workdir:
        yield from ("--pwd", around.workdir)
    for outside, inside, how in _mounts(around):
        yield from ("--bind", ":".join(part for part in (outside, inside, how) if part))
    if around.gpus:
        yield "--nv"


def _foreground(kind: str, around: ContainerSettings) -> Iterator[str]:
    yield from ("--name", around.name, "--interactive")
    if not around.stays:
        yield "--rm"
    # What the command writes is in the job's own files already.
    yield from ("--log-driver", "none")
    # An image may ask for one in each millisecond, of the tool itself.
    yield "--no-healthcheck"
    if around.init:
        yield "--init"
    if around.terminal:
        yield from terminal_flags(kind)


def _sharing(kind: str, around: ContainerSettings) -> Iterator[str]:
    """The network is the machine's own, and a job's containers share memory: NCCL needs both."""
    yield from ("--network", "host")
    # podman's host is what its process sees: the job's, where the tool is in its namespaces.
    is_docker = kind == "docker" and around.shared_memory is not None
    yield from ("--ipc", "private" if is_docker else "host")
    is_mounted = any(os.path.normpath(inside) == _SHM for _, inside, _ in _mounts(around))
    if around.shared_memory is None or is_mounted:
        return
    behind = f"source={around.shared_memory},target={_SHM}"
    yield from ("--mount", f"type={_VOLUME.format(behind)}" if is_docker else f"type=bind,{behind}")


def _user(kind: str, around: ContainerSettings) -> Iterator[str]:
    # A set-uid program of the image must not make its user root over the mounted folders.
    yield from ("--security-opt", "no-new-privileges")
    # Home folders are not labelled for containers, and relabelling them would be worse.
    yield from ("--security-opt", "label=disable")
    if kind == "podman" and not around.as_root:
        yield from ("--userns", "keep-id")
        return
    yield from ("--user", f"{around.uid}:{around.gid}")
    for group in around.groups:
        yield from ("--group-add", str(group))
    if around.uid:
        yield from ("--cap-drop", "all")


def _places(_kind: str, around: ContainerSettings) -> Iterator[str]:
    for outside, inside, how in _mounts(around):
        parts = [
            "type=bind",
            f"source={outside}",
            f"target={inside}",
            *(["readonly"] if how else []),
        ]
        yield from ("--mount", ",".join(_quoted(part) for part in parts))
    if around.workdir:
        yield from ("--workdir", around.workdir)


def _mounts(around: ContainerSettings) -> Iterator[tuple[str, str, str]]:
    """Outside, inside, and `ro` or nothing. What lies below a mounted home comes with it."""
    if around.home is not None:
        yield around.opened.get(around.home, around.home), around.home, ""
    # A way below the home can lead out of it again, by a link.
    is_opened = around.workdir in around.opened
    if around.workdir not in {"", "/"} and (
        is_opened or not _is_below(around.workdir, around.home)
    ):
        yield around.opened.get(around.workdir, around.workdir), around.workdir, ""
    for mount in around.mounts:
        outside, _, rest = mount.partition(":")
        inside, _, how = rest.partition(":")
        yield outside, inside or outside, "ro" if how == "ro" else ""


def _is_below(path: str, folder: str | None) -> bool:
    return folder is not None and Path(path).is_relative_to(folder)


def _quoted(part: str) -> str:
    """One field of comma-separated values."""
    if not any(each in part for each in ',"'):
        return part
    return '"' + part.replace('"', '""') + '"'


def _environment(_kind: str, around: ContainerSettings) -> Iterator[str]:
    """By name or in a file: what stands in a command line can be read by everybody."""
    if around.env_file is not None:
        yield from ("--env-file", around.env_file)
    for name, secret in around.secrets.items():
        yield from ("--secret", f"{secret},type=env,target={name}")
    for name in around.env:
        yield from ("--env", name)
    if any(gpu.isdecimal() for gpu in around.gpus):
        # Inside, the devices given are counted from zero: the numbers of outside would be wrong.
        every = ",".join(str(number) for number in range(len(around.gpus)))
        yield from ("--env", f"CUDA_VISIBLE_DEVICES={every}")


def _limits(kind: str, around: ContainerSettings) -> Iterator[str]:
    if around.cgroup_parent is not None:
        yield from ("--cgroup-parent", around.cgroup_parent)
    if around.cgroup_parent is not None and kind == "podman":
        # A path is given, and what podman keeps beside a container is not the job's to pay for.
        yield from ("--cgroup-manager", "cgroupfs", "--cgroups", "no-conmon")
    yield from ("--pids-limit", str(around.processes or -1))
    if around.memory_mib is not None:
        # Swap counts too: an error that names the limit is better than a slow job.
        yield from ("--memory", f"{around.memory_mib}m", "--memory-swap", f"{around.memory_mib}m")
    if around.cpus is not None:
        yield from ("--cpus", str(around.cpus))


def _gpus(kind: str, around: ContainerSettings) -> Iterator[str]:
    if not around.gpus:
        return
    if kind == "docker":
        # Docker takes this apart at commas first, so the quotes are meant for it.
        yield from ("--gpus", f'"device={",".join(around.gpus)}"')
        return
    for gpu in around.gpus:
        yield from ("--device", f"nvidia.com/gpu={gpu}")


_PARTS = (_foreground, _sharing, _user, _places, _environment, _limits, _gpus)


def _on_container(
    tool: str, verb: tuple[str, ...], name: str, options: tuple[str, ...]
) -> tuple[str, ...]:
    if _kind(tool) == "apptainer":
        return ()
    may_be_gone = ("--ignore",) if _kind(tool) == "podman" and verb[0] in ("stop", "rm") else ()
    return (tool, *_choosing(tool, options), *verb, *may_be_gone, name)


def _choosing(tool: str, options: tuple[str, ...]) -> Iterator[str]:
    """Of the administrator's options, those that are not for `run` alone."""
    wanted = _CHOOSING - _OF_DOCKERS_RUN if _kind(tool) == "docker" else _CHOOSING
    for number, option in enumerate(options):
        flag, joined, _ = option.partition("=")
        if flag in wanted:
            yield from (option,) if joined else options[number : number + 2]
