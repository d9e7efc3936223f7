"""What the shell may complete from the server: quick, and silent when nobody answers."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from muster.doors.cli.surroundings import Call
from muster.model.errors import MusterError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from muster.client.calls import Client

MOST = 200
"""More than this nobody reads."""

Offer = tuple[str, str]
"""What may be written, and what it is."""

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _completer(offers: "Callable[[Client], Iterable[Offer]]") -> Completer:
    def complete(
        context: click.Context, _: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only to complete

        call = context.find_object(Call)
        if call is None:
            return []
        try:
            found = [each for each in offers(call.client) if each[0].startswith(incomplete)]
        except MusterError:
            return []
        return [CompletionItem(value, help=about or None) for value, about in found[:MOST]]

    return complete


def _jobs(client: "Client") -> Iterable[Offer]:
    from muster.api.pages import JobFilter  # noqa: PLC0415  only to complete

    mine = client.jobs(JobFilter(users=(client.me().user,), limit=MOST)).jobs
    return [(str(job.id), f"{job.name} {job.state}") for job in mine]


def _pools(client: "Client") -> Iterable[Offer]:
    return [(pool, "") for pool in sorted({node.pool for node in client.nodes()})]


job_ids = _completer(_jobs)
queue_paths = _completer(lambda client: [(queue.path, "") for queue in client.queues()])
node_names = _completer(lambda client: [(node.id, node.state) for node in client.nodes()])
pool_names = _completer(_pools)
class_names = _completer(
    lambda client: [(each.name, f"priority {each.priority}") for each in client.classes()]
)


def jobs_or_nodes(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """For `resume`, which takes both."""
    return [
        *job_ids(context, parameter, incomplete),
        *node_names(context, parameter, incomplete),
    ]
