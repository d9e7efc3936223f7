"""Lists of everything but accounts, users and QOS: clusters, TRES, transactions and the like."""

from collections.abc import Callable
from dataclasses import dataclass

from muster.doors.slurm.accounting.associations import known_users
from muster.doors.slurm.call import VERSION, Door
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.managing.conditions import RowFilter
from muster.doors.slurm.managing.tables import Named, Style, field, printed
from muster.doors.slurm.managing.transactions import Transaction, is_meant, transactions
from muster.doors.slurm.submit.fleet import machines_of
from muster.doors.slurm.traffic import message_of
from muster.doors.slurm.words import times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.gres import type_of
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.users import is_user, uid_of
from muster.model.cluster import AmountReserved, NodesReserved, NodeState, Reservation
from muster.model.history import AuditEntry
from muster.model.value import Instant


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """What is asked, and where it is found."""

    listing: Listing
    door: Door
    wish: RowFilter
    style: Style

    def at(self, instant: Instant) -> str:
        return times.instant_text(instant, self.listing.time_form, self.listing.zone)


Texts = tuple[str, ...]
"""A row whose values are texts already, in the order of its fields."""


def _tres(view: ListRequest) -> str:
    models = machines_of(view.listing.nodes).models
    types = sorted({type_of(model, models) for model in models})
    found = [("cpu", "", "1"), ("mem", "", "2"), ("energy", "", "3"), ("node", "", "4")]
    found += [("billing", "", "5"), ("fs", "disk", "6"), ("vmem", "", "7"), ("pages", "", "8")]
    found += [("gres", "gpu", "1001")] if models else []
    found += [("gres", f"gpu:{each}", str(1_002 + at)) for at, each in enumerate(types)]
    return _texts(view, "Type:8 Name:15 ID:6", found)


def _clusters(view: ListRequest) -> str:
    columns = (
        "Cluster:10 ControlHost:15 ControlPort:12 RPC:5 Share:9 GrpJobs:7 GrpTRES:13 GrpSubmit:9 "
        "MaxJobs:7 MaxTRES:13 MaxSubmit:9 MaxWall:11 QOS:20 DefaultQOS:9:Def_QOS"
    )
    qos = ",".join(sorted(view.listing.site.classes))
    names = (*view.wish.names, *view.wish.of("Names", "Clusters"))
    found = [
        (name, "localhost", "0", "9728", "1", *[""] * 7, qos, "", *_nodes_of(name, view))
        for name in view.listing.clusters or (view.listing.cluster,)
        if not names or name in names
    ]
    return _texts(view, columns, found, "NodeCount:10 NodeNames:20")


def _nodes_of(cluster: str, view: ListRequest) -> tuple[str, str]:
    """How many there are, and which."""
    found = sorted(name for name, node in view.listing.nodes.items() if node.cluster == cluster)
    return str(len(found)), compressed(found)


def _configuration(view: ListRequest) -> str:
    """What of it means anything here."""
    policy = view.listing.site.policy
    pairs = {
        "AccountingStorageType": "muster",
        "AuthType": "the user of the socket, or a token",
        "PriorityDecayHalfLife": times.long_text(policy.share.half_life),
        "PriorityMaxAge": times.long_text(policy.order.age_full),
        "SLURM_VERSION": VERSION.rpartition(" ")[2],
        "TrackWCKey": "No",
    }
    lines = [f"{key:<22} = {value}\n" for key, value in pairs.items()]
    return f"Configuration data as of {view.at(view.listing.now)}\n" + "".join(lines)


def _statistics(view: ListRequest) -> str:
    """How often commands were used: there is no second daemon with calls of its own."""
    stars = "*" * 67
    now, since = view.listing.now, view.door.queries.status.counts().since
    zone = view.listing.zone
    lines = [
        stars,
        f"sacctmgr show stats output at {times.heading_text(now, zone)} ({now // 1_000})",
        f"Data since                    {times.heading_text(since, zone)} ({since // 1_000})",
        "All statistics are in microseconds",
        stars,
        "",
        "Remote Procedure Call statistics by message type",
    ]
    traffic = view.door.traffic
    for command, calls in sorted(traffic.by_command.items(), key=lambda each: -each[1].count):
        name, number = message_of(command)
        figures = f"ave_time:{calls.average_us:<6} total_time:{calls.total_us}"
        lines.append(f"\t{name:<25}({number:5}) count:{calls.count:<6} {figures}")
    lines += ["", "Remote Procedure Call statistics by user"]
    for user, calls in sorted(traffic.by_user.items(), key=lambda each: -each[1].count):
        figures = f"ave_time:{calls.average_us:<6} total_time:{calls.total_us}"
        lines.append(f"\t{user:<20}({uid_of(user):10}) count:{calls.count:<6} {figures}")
    return "".join(f"{line}\n" for line in lines)


def _events(view: ListRequest) -> str:
    """Nodes that take no work now; since when is not remembered with them."""
    columns = "Cluster:10 NodeName:-15 TimeStart:19 TimeEnd:19 State:6 Reason:30 User:10"
    words = {NodeState.DOWN: "DOWN", NodeState.DRAINING: "DRAIN"}
    found = [
        (node.cluster, name, "Unknown", "Unknown", words.get(node.state, "DRAIN"), node.reason, "")
        for name, node in sorted(view.listing.nodes.items())
        if node.state is not NodeState.UP
    ]
    return _texts(view, columns, found)


def _transactions(view: ListRequest) -> str:
    """Who changed the rules, oldest first."""

    def page(before: Instant | None, limit: int) -> tuple[AuditEntry, ...]:
        return view.door.queries.history.audit(view.door.caller, before=before, limit=limit)

    actors, actions = view.wish.of("Actors"), view.wish.of("Action")
    found = [
        (view.at(each.at), each.action, each.user, each.where, each.detail)
        for each in transactions(page)
        if (not actors or each.user in actors)
        and (not actions or any(is_meant(each.action, wanted) for wanted in actions))
        and _is_in_time(each, view)
    ]
    return _texts(view, "Time:19 Action:20 Actor:10 Where:20 Info:20", found)


def _is_in_time(entry: Transaction, view: ListRequest) -> bool:
    begins = [_instant(each, view) for each in view.wish.of("Start")]
    ends = [_instant(each, view) for each in view.wish.of("End")]
    return all(entry.at >= each for each in begins) and all(entry.at <= each for each in ends)


def _instant(text: str, view: ListRequest) -> Instant:
    try:
        return times.instant(text, view.listing.now, view.listing.zone)
    except times.BadTimeError as bad:
        raise SlurmError(f"Invalid time specification (pos={bad.place}): {text}") from bad


def _problems(view: ListRequest) -> str:
    """Those who could not use this machine if they wanted to."""
    found = [
        ("", "", user, "User does not have a uid")
        for user in known_users(view.listing.site)
        if not is_user(user)
    ]
    return _texts(view, "Cluster:10 Account:10 User:10 Problem:40", found)


def _reservations(view: ListRequest) -> str:
    columns = "Cluster:10 Name:15 TRES:30 TimeStart:19 TimeEnd:19 UnusedWall:10"
    found = [
        (
            view.listing.cluster,
            each.name,
            _reserved(each),
            view.at(each.begins_at),
            view.at(each.ends_at),
            "",
            compressed(each.nodes) if isinstance(each, NodesReserved) else "",
        )
        for each in view.listing.reservations
    ]
    return _texts(view, columns, found, "NodeNames:20")


def _reserved(reservation: Reservation) -> str:
    match reservation:
        case NodesReserved(nodes=nodes):
            return f"nodes={compressed(nodes)}"
        case AmountReserved(gpu_milli=milli):
            return f"gres/gpu={milli / 1_000:g}"


def _runaways(view: ListRequest) -> str:
    _texts(view, "ID:12 Name:10 Partition:10 Cluster:10 State:10 TimeStart:19 TimeEnd:19", [])
    return f"Runaway Jobs: No runaway jobs found on cluster {view.listing.cluster}\n"


def _none_of(columns: str) -> Callable[[ListRequest], str]:
    """Slurm has these, and we never have any."""
    return lambda view: _texts(view, columns, [])


def _texts(view: ListRequest, columns: str, found: list[Texts], unusual: str = "") -> str:
    """`Name:width[:header]` for each column; a `_` in a header is a space.

    unusual: further columns, which are shown if they are asked for.
    """
    fields: list[Named[Texts]] = []
    for at, column in enumerate([*columns.split(), *unusual.split()]):
        name, width, *header = column.split(":")
        shown = header[0].replace("_", " ") if header else ""
        fields.append(field(name, int(width), lambda texts, at=at: texts[at], shown))
    usual = ",".join(names[0] for names, _ in fields[: len(columns.split())])
    return printed(view.wish.format or usual, fields, found, view.style)


OTHERS: dict[str, Callable[[ListRequest], str]] = {
    "Clusters": _clusters,
    "Configuration": _configuration,
    "Events": _events,
    "Federations": _none_of("Federation:10 Cluster:10 ID:2 Features:20 FedState:12"),
    "Problems": _problems,
    "Resources": _none_of(
        "Name:10 Server:10 Type:8 Count:6 Allocated:11:%_Allocated ServerType:10"
    ),
    "Reservations": _reservations,
    "RunAwayJobs": _runaways,
    "Stats": _statistics,
    "Transactions": _transactions,
    "TXN": _transactions,
    "TRES": _tres,
    "WCKeys": _none_of("WCKey:10 Cluster:10 User:10"),
}
