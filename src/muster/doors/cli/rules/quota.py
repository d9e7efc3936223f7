"""`muster quota set`: other numbers for a queue."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from muster.api.site import QuotaAsked
from muster.doors.cli.options import example, queue_argument
from muster.doors.cli.rules.apply import show_change
from muster.doors.cli.surroundings import Call

F = TypeVar("F", bound=Callable[..., Any])


def quota_options(command: F) -> F:
    """What `quota set` and `whatif quota` can say."""
    wraps: tuple[Any, ...] = (
        queue_argument,
        click.option("--guaranteed", help="Always theirs: 8, 50%, none."),
        click.option("--limit", help="Never more than this: 16, 50%, none."),
        click.option("--borrow-limit", help="The most they may borrow."),
        click.option("--lend-limit", help="The most they lend."),
        click.option("--weight", type=int, help="Their share of what is left over."),
        click.option("--pool", help="Count only this pool."),
        click.option("--model", help="Count only this GPU model."),
        click.option(
            "--meter",
            type=click.Choice(["gpu", "cpu", "memory", "mig"]),
            default="gpu",
            help="What is counted.",
        ),
        click.option("--profile", help="Which MIG profile is counted."),
    )
    for wrap in reversed(wraps):
        command = wrap(command)
    return command


def asked_of(options: dict[str, Any]) -> QuotaAsked:
    """The document; at least one number must be there."""
    numbers = ("guaranteed", "limit", "borrow_limit", "lend_limit", "weight")
    if all(options[name] is None for name in numbers):
        raise click.UsageError("Say at least one of --guaranteed, --limit, --weight ...")
    return QuotaAsked(**options)


@click.group()
def quota() -> None:
    """Change what a queue is guaranteed and limited to; `muster queues` shows it."""


@quota.command(
    name="set",
    epilog=example(
        "muster quota set acme/nlp --guaranteed 8 --limit 16",
        "muster quota set acme/nlp --model A100-40GB --limit none",
    ),
)
@quota_options
@click.pass_obj
def quota_set(call: Call, **options: Any) -> None:
    """Set numbers of a queue's quota; what is not named stays as it is."""
    show_change(call, call.client.set_quota(asked_of(options)))
