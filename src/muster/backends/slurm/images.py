"""How jobs run in container images on a Slurm cluster, by pyxis or by apptainer. Pure."""

import posixpath
import shlex
from collections.abc import Iterator, Sequence
from enum import StrEnum

from muster.backends.base import Run
from muster.launch.images import for_pyxis, is_path, reference
from muster.launch.prepare import PreparedAttempt


class Containers(StrEnum):
    """What runs images on the cluster's nodes."""

    NONE = "none"
    PYXIS = "pyxis"
    APPTAINER = "apptainer"


_SEPARATORS = frozenset(",:")
_SHELL = "#!/bin/sh"
_ONCE_READ = 'exec 3<"$0" && rm -f "$0" && exec {} /proc/self/fd/3 "$@"'
"""A script may go once it is open; whatever reads it opens it once more, from its beginning."""


def options(run: Run, prepared: PreparedAttempt, containers: Containers) -> tuple[str, ...]:
    """What sbatch, or srun, is told where pyxis runs the image; nothing anywhere else."""
    image = run.launch.image
    if image is None or containers is not Containers.PYXIS:
        return ()
    mounts = ",".join(f"{each}:{each}" for each in sorted(_folders(run, prepared)))
    workdir = run.launch.workdir
    return (
        f"--container-image={for_pyxis(image)}",
        *((f"--container-mounts={mounts}",) if mounts else ()),
        *((f"--container-workdir={workdir}",) if workdir else ()),
    )


def command(run: Run, containers: Containers) -> tuple[str, ...]:
    """The job's command, in its image where apptainer runs it."""
    image = run.launch.image
    if image is None or containers is not Containers.APPTAINER:
        return run.launch.argv
    return (*_apptainer(run, image), *run.launch.argv)


def script(run: Run, own: str, containers: Containers) -> tuple[str, tuple[str, ...]]:
    """A script that runs the job's own in its image where apptainer does that, else the own one."""
    image = run.launch.image
    if image is None or containers is not Containers.APPTAINER:
        return own, run.launch.argv
    # apptainer shows /tmp to what it runs, and not the folder where Slurm puts scripts.
    written = (
        f"{_SHELL}\n"
        "script=$(mktemp /tmp/script.XXXXXX) || exit\n"
        f"printf '%s' {shlex.quote(own)} > \"$script\" || exit\n"
        f"exec {shlex.join(_apptainer(run, image))} "
        f'/bin/sh -c {shlex.quote(_ONCE_READ.format(_interpreter(own)))} "$script" "$@"\n'
    )
    return written, run.launch.argv


def _apptainer(run: Run, image: str) -> Sequence[str]:
    """What stands before a command. The user's home, /tmp and the work folder are there anyhow."""
    is_elsewhere = is_path(image) or ("://" in image and not image.startswith("docker://"))
    named = image.removeprefix("file://") if is_elsewhere else f"docker://{reference(image)}"
    gpus = any(each.devices for each in run.allocation.placements)
    return ("apptainer", "exec", *(("--nv",) if gpus else ()), "--", named)


def _folders(run: Run, prepared: PreparedAttempt) -> Iterator[str]:
    """Those of the nodes that a job must find inside: where it works, and where its tasks write."""
    workdir = run.launch.workdir or "/"
    places = [workdir]
    for task in prepared.tasks if len(prepared.tasks) > 1 else ():
        written = (path for path in (task.stdout, task.stderr) if path and posixpath.isabs(path))
        places += [each for each in map(posixpath.dirname, written) if each != "/dev"]
    for place in dict.fromkeys(places):
        if place != "/" and not _SEPARATORS & set(place):
            yield place


def _interpreter(own: str) -> str:
    """What its first line names, as the kernel would take that: a program, and one word for it."""
    first = own.partition("\n")[0]
    if not first.startswith("#!"):
        return _SHELL.removeprefix("#!")
    return shlex.join(first.removeprefix("#!").strip().split(maxsplit=1)) or _SHELL.removeprefix(
        "#!"
    )
