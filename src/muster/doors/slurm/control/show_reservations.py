"""Reservations as `scontrol show reservation` and `sinfo -T` list them."""

from muster.doors.slurm.control.reservation_keys import flags_of
from muster.doors.slurm.lists.jobs import by_number
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words import times
from muster.doors.slurm.words.hostlist import compressed
from muster.model.cluster import AmountReserved, NodesReserved, Reservation
from muster.model.value import Duration, NodeId

ORDER = (
    *("MAINT", "FLEX", "OVERLAP", "IGNORE_JOBS", "HOURLY", "DAILY", "WEEKDAY", "WEEKEND"),
    *("WEEKLY", "SPEC_NODES", "MAGNETIC"),
)


def reservation_lines(each: Reservation, listing: Listing) -> list[str]:
    """One reservation, in Slurm's order."""
    nodes = node_names(each)
    known = (listing.nodes.get(NodeId(name)) for name in nodes)
    cores = sum(node.cpu_milli // 1_000 for node in known if node is not None)
    tres = (
        f"cpu={cores}" if isinstance(each, NodesReserved) else f"gres/gpu={each.gpu_milli // 1_000}"
    )
    pool = each.pool if isinstance(each, AmountReserved) else "(null)"
    users = ",".join(each.for_users) or "(null)"
    account = each.for_queue or "(null)"
    return [
        (
            f"ReservationName={each.name} StartTime={_at(each.begins_at, listing)} "
            f"EndTime={_at(each.ends_at, listing)} Duration={_span(each)}"
        ),
        (
            f"Nodes={compressed(nodes) or '(null)'} NodeCnt={len(nodes)} CoreCnt={cores} "
            f"Features=(null) PartitionName={pool} Flags={flags_text(each)}"
        ),
        f"TRES={tres}",
        (
            f"Users={users} Groups=(null) Accounts={account} Licenses=(null) "
            f"State={state_text(each, listing)} BurstBuffer=(null) Watts=n/a"
        ),
        "MaxStartDelay=(null)",
    ]


def table(listing: Listing, *, header: bool) -> str:
    """`sinfo -T`."""
    live = [each for each in listing.reservations if each.ends_at > listing.now]
    if not live:
        return "No reservations in the system\n"
    rows = [_row(each, listing) for each in live]
    width = max(9, *(len(row[0]) for row in rows))
    head = ("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
    return "".join(_line(row, width) for row in ([head, *rows] if header else rows))


def node_names(each: Reservation) -> list[str]:
    """The nodes that are kept; none where an amount is."""
    return sorted(each.nodes, key=by_number) if isinstance(each, NodesReserved) else []


def state_text(each: Reservation, listing: Listing) -> str:
    return "ACTIVE" if each.begins_at <= listing.now < each.ends_at else "INACTIVE"


def flags_text(each: Reservation) -> str:
    """Those it was made with, in Slurm's order, and that its nodes were named."""
    flags = {*flags_of(each), *(["SPEC_NODES"] if isinstance(each, NodesReserved) else [])}
    others = sorted(flags - set(ORDER))
    return ",".join([*(name for name in ORDER if name in flags), *others])


def _row(each: Reservation, listing: Listing) -> tuple[str, ...]:
    times_of = (_at(each.begins_at, listing), _at(each.ends_at, listing), _span(each))
    return (each.name, state_text(each, listing), *times_of, compressed(node_names(each)))


def _line(row: tuple[str, ...], width: int) -> str:
    name, state, begins, ends, span, nodes = row
    return f"{name:<{width}}  {state:>8}  {begins:>19}  {ends:>19}  {span:>11}  {nodes}\n"


def _at(at: int, listing: Listing) -> str:
    return times.instant_text(type(listing.now)(at), listing.time_form, listing.zone)


def _span(each: Reservation) -> str:
    return times.long_text(Duration(each.ends_at - each.begins_at))
