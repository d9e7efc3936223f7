"""Everything that a job can ask for: one table, in which a field is a row.

From a row follow the field of the REST API, the keyword of the Python client, the key of a job
file, the option of `muster submit`, of `#MUSTER` lines and of `sbatch --muster`, the reference
pages and the schemas. To add a request, write its row here and read it in `doors/request/parse.py`.
"""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from muster.model.value import Value


class Row(Value):
    """What is to be known of a field beside its type.

    into: where it goes, as a path below `JobSpec`, or several with spaces between them; one that
    begins with `groups.` goes into every group. Empty for what is not kept in the spec.
    option: the names on the command line; none where it says nothing.
    example: a value as people write it in a job file or after the option.
    reads: the kind of text that it is, where its type does not say that: `memory`, `time` ...
    """

    section: str
    help: str
    into: str = ""
    option: str | None = ""
    example: str = ""
    reads: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()


def row(  # noqa: PLR0913  a row has its columns
    section: str,
    help: str,
    *,
    into: str = "",
    option: str | None = "",
    example: str = "",
    reads: str = "",
    metavar: str | None = None,
    choices: tuple[str, ...] = (),
) -> Meta:
    """A row as the annotation of its field; schemas take the help from there."""
    described = Row(
        section=section,
        help=help,
        into=into,
        option=option,
        example=example,
        reads=reads,
        metavar=metavar,
        choices=choices,
    )
    return Meta(
        description=help,
        extra={"row": described},
        extra_json_schema={"enum": list(choices)} if choices else None,
    )


NEEDS = "What each task needs"
PLACE = "Where it may run"
QUEUE = "Who pays and who goes first"
WHEN = "When it starts and ends"
AGAIN = "Failures and preemption"
RUNS = "What runs"
FILES = "Files and mail"

LABELS = "LABEL=VALUE"


class TaskRequest(Value):
    """What one task needs, and where it may land.

    memory: MiB, or text with a unit (`16G`).
    slice: `mig:1g.5gb`, `mps:25%`, `mps:25%:8G`, `time:4`.
    together: a topology level; `rack?` prefers it.
    require, prefer: node labels, each `value`, `a|b` (one of them), `*` (any value), and with `!`
    before it the opposite: `!a|b`, `!*` (no such label).
    near, apart: labels of other jobs, `app=db` on one node, `app=db@rack` in one rack.
    tolerate: `key`, `key=value`, `*` for every taint.
    """

    tasks: Annotated[
        int,
        row(
            NEEDS,
            "How many tasks run together.",
            into="groups.count",
            option="-n --tasks",
            example="4",
        ),
    ] = 1
    min_tasks: Annotated[
        int | None,
        row(NEEDS, "Start with as few tasks as this.", into="groups.min_count", example="2"),
    ] = None
    gpus: Annotated[
        int, row(NEEDS, "GPUs for each task.", into="groups.each.gpus.count", example="2")
    ] = 0
    gpu_models: Annotated[
        tuple[str, ...],
        row(
            NEEDS,
            "A GPU model that is acceptable, such as A100-40GB.",
            into="groups.each.gpus.models",
            option="--gpu-model",
            example="A100-40GB",
        ),
    ] = ()
    gpu_memory: Annotated[
        int | str,
        row(
            NEEDS,
            "The least memory of each GPU, such as 40G.",
            into="groups.each.gpus.min_memory_mib",
            example="40G",
            reads="memory",
        ),
    ] = 0
    slice: Annotated[
        str | None,
        row(
            NEEDS,
            "A part of a GPU: mig:1g.5gb, mps:25%, mps:25%:8G, time:4.",
            into="groups.each.gpus.slice",
            example="mps:25%",
            reads="slice",
        ),
    ] = None
    cpus: Annotated[
        float,
        row(
            NEEDS,
            "CPUs for each task; 1 by default.",
            into="groups.each.cpu_milli",
            option="-c --cpus",
            example="8",
        ),
    ] = 1
    memory: Annotated[
        int | str,
        row(
            NEEDS,
            "Memory for each task, such as 16G.",
            into="groups.each.memory_mib",
            example="16G",
            reads="memory",
        ),
    ] = 0
    nodes: Annotated[
        tuple[str, ...],
        row(
            PLACE,
            "A node that is acceptable.",
            into="groups.where.nodes",
            option="--node",
            example="node1",
        ),
    ] = ()
    not_nodes: Annotated[
        tuple[str, ...],
        row(
            PLACE,
            "A node that is not acceptable.",
            into="groups.where.not_nodes",
            option="--exclude",
            example="node2",
        ),
    ] = ()
    require: Annotated[
        Mapping[str, str],
        row(
            PLACE,
            "A label that nodes must have: a, a|b, !a, * (any), !* (none).",
            into="groups.where.require",
            metavar=LABELS,
            example="nvlink=true",
        ),
    ] = {}
    prefer: Annotated[
        Mapping[str, str],
        row(
            PLACE,
            "A label that nodes had better have; written as --require.",
            into="groups.where.prefer",
            metavar=LABELS,
            example="rack=r1",
        ),
    ] = {}
    tolerate: Annotated[
        tuple[str, ...],
        row(
            PLACE,
            "A taint that does not matter; * for all.",
            into="groups.where.tolerate",
            metavar="TAINT",
            example="maintenance",
        ),
    ] = ()
    near: Annotated[
        tuple[str, ...],
        row(
            PLACE,
            "On a node (rack, ...) with a job of this label.",
            into="groups.where.near",
            metavar="LABEL=VALUE[@LEVEL]",
            example="app=db@rack",
        ),
    ] = ()
    apart: Annotated[
        tuple[str, ...],
        row(
            PLACE,
            "On no node (rack, ...) with a job of this label.",
            into="groups.where.apart",
            metavar="LABEL=VALUE[@LEVEL]",
            example="app=noisy",
        ),
    ] = ()
    together: Annotated[
        str | None,
        row(
            PLACE,
            "All tasks in one rack, say; rack? prefers it.",
            into="groups.together",
            metavar="LEVEL",
            example="rack",
        ),
    ] = None
    max_per_node: Annotated[
        int | None,
        row(PLACE, "The most tasks on one node.", into="groups.where.max_per_node", example="1"),
    ] = None
    exclusive: Annotated[
        bool,
        row(
            PLACE,
            "Share nodes with no other job.",
            into="groups.where.exclusive",
            example="true",
        ),
    ] = False


class GroupDocument(TaskRequest):
    """Identical tasks of a job that has several kinds of them."""

    name: Annotated[
        str,
        row(RUNS, "What to call this group.", into="groups.name", option=None, example="workers"),
    ] = "main"


class JobRequest(TaskRequest):
    """All that a job can ask for, but for what it runs. Every field has a sensible default.

    groups: several kinds of tasks; what each needs is then said there and not for the job.
    time: seconds, or text (`90m`, `2h`, `1-12:00:00`). begin, deadline: RFC 3339, or `now+2h`.
    after: `afterok:17`, `afterany:17`, `after:17+5m`, `afternotok:17`, `aftercorr:17`, `singleton`:
    all of them; or one text, `afterok:17?afterany:18`, where each is enough. `17_3` is one job of
    an array, `17` all of it.
    array: `0-9`, `1,3,5-9:2`, with `%4` for at most four at once.
    warn: `USR1@60`: that signal so many seconds before the time limit.
    mail_on: `begin`, `end`, `fail`, `requeue`, `time_limit`, `time_limit_90`, `time_limit_80`,
    `time_limit_50`, `invalid_depend`, `all`; `array_tasks`: about each part of an array.
    mail_to: an address, or several with commas; the user if it is left out.
    """

    groups: Annotated[
        tuple[GroupDocument, ...],
        row(NEEDS, "Several kinds of tasks, each with its own needs.", into="groups", option=None),
    ] = ()
    pools: Annotated[
        tuple[str, ...],
        row(
            PLACE,
            "A pool that is acceptable; the first named is preferred.",
            into="pools",
            option="--pool",
            example="gpu",
        ),
    ] = ()
    clusters: Annotated[
        tuple[str, ...],
        row(
            PLACE,
            "A cluster that is acceptable; the first named is preferred.",
            into="clusters",
            option="--cluster",
            example="lab",
        ),
    ] = ()
    reservation: Annotated[
        str | None,
        row(PLACE, "Run only in this reservation.", into="reservation", example="course"),
    ] = None
    spot: Annotated[
        str,
        row(
            PLACE,
            "May it run where capacity can be taken away?",
            into="spot",
            example="allowed",
            choices=("never", "allowed", "only"),
        ),
    ] = "never"
    queue: Annotated[
        str,
        row(QUEUE, "The queue; your default one if none is named.", into="queue", example="nlp"),
    ] = ""
    job_class: Annotated[
        str, row(QUEUE, "The job class.", into="job_class", option="--class", example="high")
    ] = ""
    priority: Annotated[
        int,
        row(QUEUE, "Higher first; above 0 takes a queue_admin.", into="priority", example="-5"),
    ] = 0
    user: Annotated[
        str | None,
        row(QUEUE, "Whose job it is, if you may act for others.", into="user", example="ann"),
    ] = None
    time: Annotated[
        int | str | None,
        row(
            WHEN,
            "Time limit: 90m, 2h, 1-12:00:00.",
            into="time_limit",
            option="-t --time",
            example="2h",
            reads="time",
        ),
    ] = None
    begin: Annotated[
        str | None,
        row(
            WHEN,
            "Not before: 2026-12-01T08:00, now+2h.",
            into="begin_at",
            example="now+2h",
            reads="instant",
        ),
    ] = None
    deadline: Annotated[
        str | None,
        row(
            WHEN,
            "Useless after this instant; then it is not started.",
            into="deadline",
            example="2026-12-01T08:00:00Z",
            reads="instant",
        ),
    ] = None
    after: Annotated[
        tuple[str, ...],
        row(
            WHEN,
            "Wait for a job: afterok:17, afterany:17, after:17+5m, aftercorr:17, singleton; a?b "
            "for either.",
            into="after",
            metavar="CONDITION",
            example="afterok:17",
        ),
    ] = ()
    cancel_if_hopeless: Annotated[
        bool,
        row(
            WHEN,
            "Cancel it when what it waits for can no longer happen.",
            into="cancel_if_hopeless",
            example="true",
        ),
    ] = False
    array: Annotated[
        str | None,
        row(
            WHEN,
            "Many jobs: 0-9, 1,3,5-9:2; with %4 at most four at once.",
            metavar="INDICES",
            example="0-9%4",
        ),
    ] = None
    held: Annotated[
        bool, row(WHEN, "Wait until it is released.", option="--hold", example="true")
    ] = False
    attempts: Annotated[
        int,
        row(AGAIN, "How often it may fail before it is over.", into="max_attempts", example="3"),
    ] = 1
    retry_pause: Annotated[
        int | str,
        row(
            AGAIN,
            "Pause after a failure; 10s by default.",
            into="retry.base",
            example="1m",
            reads="time",
        ),
    ] = 10
    retry_factor: Annotated[
        int,
        row(AGAIN, "How much longer each next pause is.", into="retry.factor", example="3"),
    ] = 2
    retry_longest: Annotated[
        int | str,
        row(
            AGAIN,
            "The longest pause; 5m by default.",
            into="retry.cap",
            example="1h",
            reads="time",
        ),
    ] = 300
    requeue: Annotated[
        bool,
        row(
            AGAIN,
            "Do not start again after lost nodes.",
            into="retry.requeue",
            option="--no-requeue",
            example="false",
        ),
    ] = True
    preemptible: Annotated[
        bool,
        row(
            AGAIN,
            "Never make room for other jobs.",
            into="preemptible",
            option="--not-preemptible",
            example="false",
        ),
    ] = True
    preempt_mode: Annotated[
        str | None,
        row(
            AGAIN,
            "What happens when it must make room.",
            into="preempt_mode",
            example="suspend",
            choices=("requeue", "checkpoint", "suspend", "cancel"),
        ),
    ] = None
    restart_cost: Annotated[
        int | str,
        row(
            AGAIN,
            "Time that is lost when it starts again.",
            into="restart_cost",
            example="5m",
            reads="time",
        ),
    ] = 0
    checkpoint: Annotated[
        str | None,
        row(
            AGAIN,
            "Where it writes its checkpoints.",
            into="launch.checkpoint.path",
            metavar="PATH",
            example="checkpoints",
        ),
    ] = None
    checkpoint_signal: Annotated[
        str | None,
        row(
            AGAIN,
            "The signal that makes it write one.",
            into="launch.checkpoint.signal",
            metavar="SIGNAL",
            example="USR2",
            reads="signal",
        ),
    ] = None
    warn: Annotated[
        str | None,
        row(
            AGAIN,
            "Warn it before its time is over.",
            into="launch.warn",
            metavar="SIGNAL@SECONDS",
            example="USR1@60",
        ),
    ] = None
    name: Annotated[
        str, row(RUNS, "What to call it.", into="name", option="-J --name", example="train")
    ] = ""
    labels: Annotated[
        Mapping[str, str],
        row(
            RUNS,
            "A label of your own.",
            into="labels",
            option="--label",
            metavar="NAME=VALUE",
            example="project=speech",
        ),
    ] = {}
    image: Annotated[
        str | None,
        row(
            RUNS, "Run it in this container image.", into="launch.image", example="pytorch/pytorch"
        ),
    ] = None
    workdir: Annotated[
        str | None,
        row(
            RUNS,
            "The folder to run in; this one by default.",
            into="launch.workdir",
            option="-D --workdir",
            metavar="FOLDER",
            example="/scratch/ann",
        ),
    ] = None
    every_task: Annotated[
        bool,
        row(
            RUNS,
            "Run the command once, not in every task.",
            into="launch.runs",
            option="--first-task-only",
            example="false",
        ),
    ] = True
    umask: Annotated[
        int | None,
        row(
            RUNS,
            "Which rights new files do not have; this shell's by default.",
            into="launch.umask",
            metavar="OCTAL",
            example="027",
            reads="octal",
        ),
    ] = None
    stdout: Annotated[
        str | None,
        row(
            FILES,
            "For what it writes; %j is its id.",
            into="launch.stdout",
            option="--output",
            metavar="FILE",
            example="train-%j.out",
        ),
    ] = None
    stderr: Annotated[
        str | None,
        row(
            FILES,
            "For its errors; else with the rest.",
            into="launch.stderr",
            option="--error",
            metavar="FILE",
            example="train-%j.err",
        ),
    ] = None
    stdin: Annotated[
        str | None,
        row(
            FILES,
            "What it reads.",
            into="launch.stdin",
            option="--input",
            metavar="FILE",
            example="questions.txt",
        ),
    ] = None
    append: Annotated[
        bool,
        row(FILES, "Keep what earlier attempts wrote.", into="launch.append", example="true"),
    ] = False
    mail_on: Annotated[
        tuple[str, ...],
        row(
            FILES,
            "Send mail on begin, end, fail, requeue, time_limit_90, all ...",
            into="mail.on mail.each_part",
            option="--mail-type",
            metavar="OCCASION",
            example="end",
        ),
    ] = ()
    mail_to: Annotated[
        str | None,
        row(
            FILES,
            "To whom; to you by default.",
            into="mail.to",
            option="--mail-user",
            metavar="ADDRESS",
            example="ann@example.org",
        ),
    ] = None


_COMMAND = row(RUNS, "The program and its arguments.", into="launch.argv", option=None)
_SCRIPT = row(
    RUNS,
    "The text of a script, which begins with `#!`; `command` then has its arguments.",
    into="launch.script",
    option=None,
)


class JobFile(JobRequest):
    """A job as its user writes it: in a job file, on a command line, as keywords in Python.

    What it does not say comes from where it is submitted: the folder, the umask and the variables.
    env: besides the variables that are passed on; one without a value is passed on as it is.
    """

    command: Annotated[tuple[str, ...], _COMMAND] = ()
    script: Annotated[str | None, _SCRIPT] = None
    env: Annotated[
        Mapping[str, str | None],
        row(
            RUNS,
            "Set a variable, besides those that are passed on.",
            into="launch.env",
            metavar="NAME[=VALUE]",
            example="NCCL_DEBUG=INFO",
        ),
    ] = {}
    env_only: Annotated[
        tuple[str, ...] | None,
        row(
            RUNS,
            "Pass on only these variables, or none; all of this shell's by default.",
            metavar="NAMES",
            example="PATH,HOME",
        ),
    ] = None


class SubmitDocument(JobRequest):
    """A request to run something. `command` or `script`; the rest has sensible defaults.

    terminal: rows and columns; its user sits at it.
    sbatch: the words after `sbatch`: options, the name of the script, its arguments. The script is
    then read as sbatch reads it, with its `#SBATCH` lines, and `--muster=gpus=4` says here what
    else is asked for; of the other fields only script, env, workdir, umask and terminal count.
    request_key: a text of the client's own. Sent again with the same key, the request makes no
    second job: it is answered with the first.
    """

    command: Annotated[tuple[str, ...], _COMMAND] = ()
    script: Annotated[str | None, _SCRIPT] = None
    env: Annotated[
        Mapping[str, str],
        row(RUNS, "The variables that its processes find.", into="launch.env", option=None),
    ] = {}
    terminal: tuple[int, int] | None = None
    sbatch: tuple[str, ...] | None = None
    request_key: str | None = None


class SubmittedDocument(Value):
    """The ids given, in order; more than one for an array. Cautions are for the user to read."""

    id: int
    ids: tuple[int, ...]
    cautions: tuple[str, ...] = ()
