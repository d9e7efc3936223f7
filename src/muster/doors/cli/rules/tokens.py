"""`muster tokens`: keys for remote use."""

import click

from muster.api.site import TokenAsked, TokenDocument
from muster.doors.cli.complete import queue_paths
from muster.doors.cli.options import document_options, example, list_options
from muster.doors.cli.screen.printing import note, say, show_data, show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.times import Moment
from muster.doors.cli.surroundings import Call


@click.group(
    invoke_without_command=True,
    epilog=example("muster tokens", "muster tokens create --lifetime 7d"),
)
@click.pass_context
def tokens(context: click.Context) -> None:
    """List, make and revoke keys; without a word more, list them."""
    if context.invoked_subcommand is None:
        _list(context.obj)


@tokens.command(name="list", epilog=example("muster tokens list -o json"))
@list_options
@click.pass_obj
def tokens_list(call: Call) -> None:
    """List keys: your own, or everybody's for administrators. Secrets are not kept."""
    _list(call)


@tokens.command(
    name="create",
    epilog=example(
        "export MUSTER_TOKEN=$(muster tokens create -o name)",
        "muster tokens create --role viewer --queue acme --lifetime 90d",
    ),
)
@click.option(
    "--role",
    type=click.Choice(["viewer", "user", "queue_admin", "admin"]),
    default="user",
    help="The most that the key may do.",
)
@click.option("--queue", help="Only there and below.", shell_complete=queue_paths)
@click.option("--user", help="For another user; only administrators may.")
@click.option("--lifetime", default="30d", help="How long it is good for.")
@document_options
@click.pass_obj
def tokens_create(
    call: Call, role: str, queue: str | None, user: str | None, lifetime: str
) -> None:
    """Make a key. Its secret is printed this once; `-o name` prints nothing else."""
    asked = TokenAsked(role=role, queue=queue, user=user, lifetime=lifetime)
    made = call.client.make_token(asked)
    if call.look.output in {"json", "yaml"}:
        show_data(call, made)
        return
    say(made.secret or "")
    if call.look.output != "name":
        ends = f"{call.moment.local(made.expires_at)} {call.moment.zone_name}"
        note(f"Key {made.id} of {made.user} is good until {ends}. It is shown only now.")


@tokens.command(name="revoke", epilog=example("muster tokens revoke 3fa9"))
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.pass_obj
def tokens_revoke(call: Call, ids: tuple[str, ...]) -> None:
    """Make keys useless, at once."""
    for each in ids:
        revoked = call.client.revoke_token(each)
        say(f"key {revoked.id} of {revoked.user} revoked")


def _list(call: Call) -> None:
    found = call.client.tokens()
    columns = _columns(call.moment)
    show_list(call, found, columns, name=lambda token: token.id, none="There are no keys.")


def _columns(moment: Moment) -> list[Column[TokenDocument]]:
    return [
        Column("ID", lambda token: token.id),
        Column("USER", lambda token: token.user),
        Column("ROLE", lambda token: token.role),
        Column("QUEUE", lambda token: token.queue or "-"),
        Column(moment.titled("MADE"), lambda token: moment.near(token.made_at)),
        Column("EXPIRES", lambda token: moment.relative(token.expires_at)),
        Column("REVOKED", lambda token: "yes" if token.revoked else "no"),
    ]
