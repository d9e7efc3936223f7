"""What a thin command sends, what it gets back, and what a command may ask of the service."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muster.controller.messages import Caller
from muster.controller.queries.queries import Queries
from muster.controller.use_cases.service import Service
from muster.doors.slurm.cache import Cache
from muster.doors.slurm.traffic import Traffic
from muster.doors.slurm.words.errors import failed
from muster.model.value import Instant, Value

FORM = 1
"""Of calls and replies: a command that was installed for another version says so."""

VERSION = "slurm-wlm 22.05.8"
"""The Slurm whose commands these are: clients read it to know what they can use."""


class Script(Value):
    """A batch script as the command read it; no name when it came from stdin."""

    text: str
    name: str | None = None


class Call(Value):
    """One use of a command: its words and what it finds around it.

    env: SLURM_*, SBATCH_* and the like; of commands that submit, all of it.
    memo: what the reply before this one asked to be given back.
    """

    form: int = 0
    argv: tuple[str, ...] = ()
    cwd: str = "/"
    env: Mapping[str, str] = {}
    script: Script | None = None
    umask: int = 0o022
    tty: bool = False
    host: str = "localhost"
    memo: Mapping[str, str] = {}

    @property
    def zone(self) -> tzinfo | None:
        """The user's time zone; None is the server's own."""
        return _zone(self.env.get("TZ", ""))

    @property
    def zone_name(self) -> str:
        """What that zone is called, for what must be kept by its calendar."""
        link = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
        names = (self.env.get("TZ", ""), os.environ.get("TZ", ""), link)
        zones = (zone for name in names if (zone := _zone(name)) is not None)
        return next(zones, ZoneInfo("UTC")).key


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name.lstrip(":")) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


class ReadScript(Value, tag="read"):
    """Read this file, or stdin if it is None, and call again with what is in it.

    otherwise: what to say when it cannot be read.
    """

    file: str | None = None
    otherwise: str | None = None


class Again(Value, tag="again"):
    """Call again after so long, with this memo."""

    memo: Mapping[str, str]
    after_ms: int = 0


class StepOutput(Value):
    """Where a step reads and writes: None, `none`, a rank, or a name with patterns.

    unbuffered: what several tasks write may be mixed within a line.
    """

    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    append: bool = False
    label: bool = False
    unbuffered: bool = False
    pty: bool = False


class Conduct(Value):
    """How srun behaves while its step runs.

    immediate_s: wait no longer for room. wait_s: nor, after the first task, for the others.
    """

    immediate_s: int | None = None
    wait_s: int = 0
    kill_on_bad_exit: bool = False
    quit_on_interrupt: bool = False
    shows_status: bool = True
    quiet: bool = False
    verbose: int = 0
    prolog: str | None = None
    epilog: str | None = None


class CpuBind(Value):
    """How tasks are bound to CPUs: as --cpu-bind calls it, with the numbers of its list."""

    kind: str = ""
    values: tuple[int, ...] = ()
    verbose: bool = False


class Program(Value):
    """What a step runs in one component of its job.

    argvs: one command for all tasks, or one for each. keep: variables that are passed on, or all.
    before, after: programs that run before and after each task.
    """

    wish: Mapping[str, int | bool | str | tuple[str, ...] | None]
    name: str
    argvs: tuple[tuple[str, ...], ...]
    cwd: str
    keep: tuple[str, ...] | None = None
    env: Mapping[str, str] = {}
    output: StepOutput = StepOutput()
    before: str = ""
    after: str = ""
    bind: CpuBind | None = None


class RunStep(Value, tag="step"):
    """Run a step of a job, asked for at `address`, and end as it does.

    owns: the job is there for this step alone, and ends with it. pmi: its tasks speak MPI.
    names: what the patterns in names of files stand for, without the step's own.
    programs: one for each component in which it runs; their tasks are numbered through.
    """

    job: int
    address: str
    names: Mapping[str, str]
    programs: tuple[Program, ...]
    limit_ms: int | None = None
    owns: bool = False
    pmi: bool = False
    conduct: Conduct = Conduct()


class HoldJob(Value, tag="hold"):
    """Hold a job while a command runs here, or keep it without one; then let go of it."""

    job: int
    address: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    keeps: bool = False
    bell: bool = False
    quiet: bool = False
    kill_signal: int | None = None


class Prompt(Value, tag="prompt"):
    """Ask for a line, then call again: the memo that comes back has it as `typed`.

    At the end of the input the memo comes back without it. seconds: how long a user at a terminal
    may think about it, if not for ever; after that the memo has `late`.
    echo: show what came from a script.
    """

    text: str
    memo: Mapping[str, str]
    seconds: int = 0
    echo: bool = True


class WriteFile(Value, tag="write"):
    """Write a file with the caller's rights, then call again with the memo."""

    file: str
    text: str
    memo: Mapping[str, str]


class Copy(Value, tag="copy"):
    """Copy a file here; `node` is named in what is said of errors."""

    source: str
    target: str
    node: str
    force: bool = False
    preserve: bool = False


Then = ReadScript | Again | RunStep | HoldJob | Prompt | WriteFile | Copy


class Reply(Value):
    """What the command prints, and how it ends or goes on."""

    out: str = ""
    err: str = ""
    code: int = 0
    then: Then | None = None


@dataclass(frozen=True, kw_only=True)
class Door:
    """Whom a command asks, for whom, and when. traffic: how often commands were used."""

    service: Service
    caller: Caller
    now: Instant
    cache: Cache = field(default_factory=Cache)
    traffic: Traffic = field(default_factory=Traffic)

    @property
    def queries(self) -> Queries:
        """What looks at things."""
        return self.service.queries


def lines(texts: list[str]) -> str:
    """Lines of output, each with its end."""
    return "\n".join([*texts, ""]) if texts else ""


def version() -> Reply:
    return Reply(out=f"{VERSION}\n")


def unsupported(command: str, option: str) -> Exception:
    """An option that means something we cannot do, and that must not be passed over."""
    return failed(command, f"--{option} is not supported by Muster")


def warning(command: str, option: str) -> str:
    """Said on stderr of what is accepted and has no effect."""
    return f"{command}: warning: --{option} is ignored by Muster\n"
