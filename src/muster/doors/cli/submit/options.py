"""The options that say what a job asks for, on the command line and in scripts."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from muster.doors.cli.complete import node_names
from muster.doors.cli.options import class_option, queue_option

F = TypeVar("F", bound=Callable[..., Any])
Wrap = Callable[[F], F]


def submit_options(command: F) -> F:
    """All of them, in the order in which help shows them."""
    for wrap in reversed(ALL):
        command = wrap(command)
    return command


def _many(*names: str, help: str, **more: Any) -> Any:
    return click.option(*names, multiple=True, help=help, **more)


NEEDS: tuple[Any, ...] = (
    click.option("--gpus", type=int, default=0, help="GPUs for each task."),
    _many("--gpu-model", "gpu_models", help="A GPU model that will do, such as A100-40GB."),
    click.option("--gpu-memory", help="The least memory of each GPU, such as 40G."),
    click.option("--slice", help="A part of a GPU: mig:1g.5gb, mps:25%, mps:25%:8G, time:4."),
    click.option("-c", "--cpus", type=float, default=1, help="CPUs for each task."),
    click.option("--memory", help="Memory for each task, such as 16G."),
    click.option("-n", "--tasks", type=int, default=1, help="How many tasks run together."),
    click.option("--min-tasks", type=int, help="Start with as few tasks as this."),
    click.option("-t", "--time", help="Time limit: 90m, 2h, 1-12:00:00."),
)

PLACE: tuple[Any, ...] = (
    queue_option,
    class_option,
    click.option(
        "--priority", type=int, default=0, help="Higher first; above 0 takes a queue_admin."
    ),
    _many("--pool", "pools", help="A pool that will do."),
    _many("--cluster", "clusters", help="A cluster that will do."),
    click.option(
        "--spot",
        type=click.Choice(["never", "allowed", "only"]),
        default="never",
        help="May it run where capacity can be taken away?",
    ),
    _many("--require", metavar="LABEL=VALUE", help="A label that nodes must have."),
    _many("--tolerate", metavar="TAINT", help="A taint that does not matter."),
    _many("--node", "nodes", help="A node that will do.", shell_complete=node_names),
    _many("--exclude", "not_nodes", help="A node that will not do.", shell_complete=node_names),
    click.option("--max-per-node", type=int, help="The most tasks on one node."),
    click.option("--exclusive", is_flag=True, help="Share nodes with no other job."),
    click.option("--together", metavar="LEVEL", help="Tasks in one rack, say; rack? would rather."),
)

WHEN: tuple[Any, ...] = (
    click.option("--array", help="Many jobs: 0-9, 1,3,5-9:2; with %4 at most four at once."),
    _many(
        "--after",
        help="Wait for a job: afterok:17, afterany:17, after:17+5m, singleton; or any: a?b.",
    ),
    click.option(
        "--cancel-if-hopeless",
        is_flag=True,
        help="Do not wait for jobs that can no longer come to that.",
    ),
    click.option("--begin", help="Not before: 2026-12-01T08:00, now+2h."),
    click.option("--deadline", help="Of no use after this instant."),
    click.option("--hold", "held", is_flag=True, help="Wait until it is released."),
    click.option("--attempts", type=int, default=1, help="Try again after a failure, so often."),
    click.option("--no-requeue", is_flag=True, help="Do not start again after lost nodes."),
    click.option("--not-preemptible", is_flag=True, help="Never make room for other jobs."),
    click.option(
        "--preempt-mode",
        type=click.Choice(["requeue", "checkpoint", "suspend", "cancel"]),
        help="What becomes of it when it must make room.",
    ),
    click.option("--restart-cost", help="Time that is lost when it starts again."),
)

WHAT: tuple[Any, ...] = (
    click.option("-J", "--name", default="", help="What to call it."),
    _many("--label", "labels", metavar="NAME=VALUE", help="A label of your own."),
    click.option("--image", help="Run it in this container image."),
    _many("--env", metavar="NAME[=VALUE]", help="Set a variable, besides those of this shell."),
    click.option(
        "--env-only", metavar="NAMES", help="Pass only these variables of this shell, or none."
    ),
    click.option("-D", "--workdir", help="Where to run; here if nothing is said."),
    click.option("--output", "stdout", metavar="FILE", help="For what it writes; %j is its id."),
    click.option("--error", "stderr", metavar="FILE", help="For its errors; else with the rest."),
    click.option("--input", "stdin", metavar="FILE", help="What it reads."),
    click.option("--append", is_flag=True, help="Keep what earlier attempts wrote."),
    click.option("--first-task-only", is_flag=True, help="Run the command once, not per task."),
    click.option("--warn", metavar="SIGNAL@SECONDS", help="Warn it before its time is over."),
    _many(
        "--mail-type",
        "mail_on",
        metavar="OCCASION",
        help="Send mail on begin, end, fail, requeue, time_limit_90, all ...",
    ),
    click.option("--mail-user", "mail_to", metavar="ADDRESS", help="To whom; to you if not said."),
    click.option("--checkpoint", metavar="PATH", help="Where it writes its checkpoints."),
    click.option("--checkpoint-signal", metavar="SIGNAL", help="What makes it write one."),
)

ALL: tuple[Any, ...] = (*NEEDS, *PLACE, *WHEN, *WHAT)

MERGED = frozenset({"env", "labels", "require"})
"""Where a script and the command line both name some, all count; the command line's come last."""
