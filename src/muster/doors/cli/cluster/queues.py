"""`muster queues`: the tree of queues, with what each uses, is guaranteed, may have and borrows."""

from collections.abc import Iterable, Iterator

import click

from muster.api.site import QueueDocument, QuotaDocument
from muster.doors.cli.options import example, list_options
from muster.doors.cli.screen.printing import show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.text import memory, number
from muster.doors.cli.surroundings import Call
from muster.model.value import Value


class Line(Value):
    """One line of the tree: a queue with the first line of its quota, or a further line."""

    queue: QueueDocument
    quota: QuotaDocument | None
    further: bool = False


@click.command(epilog=example("muster queues", "muster queues acme", "muster queues -o wide"))
@click.argument("path", required=False)
@list_options
@click.pass_obj
def queues(call: Call, path: str | None) -> None:
    """Show the tree of queues and what each uses, everything below it counted in.

    GUARANTEED is always theirs when they need it, LIMIT is the most they may have, BORROWED is
    what they use beyond the guarantee. SHARE is their part by weight, USED SHARE what they had.
    In a private queue only those with a role there see whose jobs are whose.
    """
    found = sorted(call.client.queues(), key=lambda queue: queue.path.split("/"))
    below = [queue for queue in found if path is None or _is_below(queue.path, path)]
    if call.look.is_table:
        show_list(
            call,
            list(queue_lines(below)),
            COLUMNS,
            name=lambda line: line.queue.path,
            none="There are no such queues.",
        )
        return
    show_list(call, below, [], name=lambda queue: queue.path, none="There are no such queues.")


def queue_lines(found: Iterable[QueueDocument]) -> Iterator[Line]:
    """Each queue with the lines of its quota."""
    for queue in found:
        yield Line(queue=queue, quota=queue.quotas[0] if queue.quotas else None)
        for quota in queue.quotas[1:]:
            yield Line(queue=queue, quota=quota, further=True)


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}/")


def _name(line: Line) -> str:
    """Indented by its depth, with the last part of its path."""
    if line.further:
        return ""
    *above, name = line.queue.path.split("/")
    return "  " * len(above) + name + (" (private)" if line.queue.private else "")


def _once(text: str, line: Line) -> str:
    return "" if line.further else text


def _amount(value: float | None, quota: QuotaDocument | None) -> str:
    if quota is None or value is None:
        return "-"
    return memory(value) if quota.unit == "MiB" else number(value)


def _used(line: Line) -> str:
    return (
        number(line.queue.gpus_used) if line.quota is None else _amount(line.quota.used, line.quota)
    )


def _of(line: Line) -> str:
    """What the line counts; nearly always GPUs."""
    scope = "gpu" if line.quota is None else line.quota.scope
    return f"GPUs{scope[3:]}" if scope.partition(" ")[0] == "gpu" else scope


def _borrowed(line: Line) -> str:
    borrowed = line.quota.borrowed if line.quota is not None else 0
    return _amount(borrowed, line.quota) if borrowed else "-"


def _share(part: float) -> str:
    return f"{part:.0%}"


COLUMNS: list[Column[Line]] = [
    Column("QUEUE", _name, "flexible"),
    Column("RUNNING", lambda line: _once(str(line.queue.running), line), "right"),
    Column("WAITING", lambda line: _once(str(line.queue.waiting), line), "right"),
    Column("WEIGHT", lambda line: _once(str(line.queue.weight), line), "right spare"),
    Column("SHARE", lambda line: _once(_share(line.queue.share), line), "right spare"),
    Column("USED SHARE", lambda line: _once(_share(line.queue.used_share), line), "wide right"),
    Column("PRIORITY", lambda line: _once(str(line.queue.priority), line), "wide right"),
    Column("CLASS", lambda line: _once(line.queue.default_class or "-", line), "wide"),
    Column(
        "SUBMIT", lambda line: _once(",".join(line.queue.may_submit) or "everyone", line), "wide"
    ),
    Column("OF", _of, "flexible"),
    Column("USED", _used, "right"),
    Column(
        "GUARANTEED",
        lambda line: _amount(line.quota and line.quota.guaranteed, line.quota),
        "right",
    ),
    Column("LIMIT", lambda line: _amount(line.quota and line.quota.limit, line.quota), "right"),
    Column("BORROWED", _borrowed, "right spare"),
]
