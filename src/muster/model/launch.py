"""What to run: the backends read this, the planner never does."""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.pod import PodGang, PodLaunch
from muster.model.value import Duration, Value, replace


class Runs(StrEnum):
    """Where the command is run: once for every task, or once, beside the first task.

    Or nowhere: the attempt holds its room for the steps that are started in it, until the program
    that asked for it ends.
    """

    EVERY_TASK = "every_task"
    FIRST_TASK = "first_task"
    STEPS_ONLY = "steps_only"


class Warn(Value, gc=False):
    """This signal is sent so long before the time limit, and first of all when it must make room.

    shell_only: only the job's first process gets it, not what that started.
    """

    signal: int
    lead: Duration
    shell_only: bool = False


class Checkpointing(Value, gc=False):
    """Where the job writes its checkpoints (a file, folder or pattern), and what makes it write."""

    path: str
    signal: int | None = None


class Terminal(Value, gc=False):
    """The job is interactive: its first task gets a terminal of this size."""

    rows: int = 24
    columns: int = 80


IMAGE_FILES = (".sif", ".sqsh", ".squashfs")
"""What names of files of container images end with."""


def is_image_file(image: str) -> bool:
    """Is it a file, rather than the name of an image in a registry?"""
    return image.removeprefix("file://").endswith(IMAGE_FILES)


class AdoptedPod(Value, gc=False):
    """A pod that somebody made on a cluster of their own, and that waits there for its node.

    container: the one whose log it is. gated: it may not be bound before its gate is taken away.
    """

    namespace: str
    name: str
    uid: str
    container: str = ""
    gated: bool = False


class Launch(Value):
    """A command or a script, and everything its processes find around them.

    argv: the command, or the arguments of the script when there is one.
    stdin, stdout, stderr may hold Slurm's patterns (`%j %A %a %x %N %u %t`); stderr of None goes
    where stdout goes; append keeps what earlier attempts wrote.
    submit_line: the command line that asked for it; script_line: the script's path with arguments.
    pod: containers that run instead; argv, image and env are then those of the first, for lists.
    gang: where each task is a pod of its own; pod is then the first of them.
    adopts: pods that are there already, in the order of ranks: they are given their nodes, and
    nothing else is begun.
    """

    argv: tuple[str, ...] = ()
    script: str | None = None
    image: str | None = None
    env: Mapping[str, str] = {}
    workdir: str | None = None
    runs: Runs = Runs.EVERY_TASK
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    append: bool = False
    umask: int | None = None
    warn: Warn | None = None
    checkpoint: Checkpointing | None = None
    terminal: Terminal | None = None
    submit_line: str | None = None
    script_line: str | None = None
    pod: PodLaunch | None = None
    gang: PodGang | None = None
    adopts: tuple[AdoptedPod, ...] = ()

    @property
    def pods(self) -> tuple[PodLaunch, ...]:
        """What runs in the tasks, in the order of ranks; nothing where it is no pod."""
        if self.gang is not None:
            return self.gang.pods
        return () if self.pod is None else (self.pod,)

    def for_others(self) -> "Launch":
        """What those may see who look after the job's queue: where it runs, and not what.

        Commands, scripts and variables hold passwords and keys: they are their user's own.
        """
        return replace(
            self,
            argv=(),
            script=None,
            env={},
            submit_line=None,
            script_line=None,
            pod=None,
            gang=None,
        )


NO_LAUNCH = Launch()
