"""Whether the parts of a site agree: mistakes, which nothing may hold, and cautions."""

from collections.abc import Iterable, Iterator
from itertools import chain

from muster.doors.config.faults import Path, suggestion
from muster.doors.units import amount_text
from muster.model.alerting import OWNER, JobRoute, Receiver, ReceiverKind, Route
from muster.model.cluster import AmountReserved
from muster.model.queue import Percent, Queue, Quota, Scope
from muster.model.sinks import UNDERSTOOD, Sent, Sink, SinkKind
from muster.model.site import Role, Site
from muster.model.value import QueuePath, Value
from muster.model.words import listed, placed

NORMAL = "normal"
"""The class of jobs that name none, in queues that have no default."""


class Mistake(Value):
    """Something that cannot be, and the way to it in the file."""

    keys: Path
    text: str


def mistakes(site: Site) -> Iterator[Mistake]:
    """What names something that does not exist, or the same thing twice."""
    yield from chain.from_iterable(check(site) for check in _MISTAKES)


def cautions(site: Site) -> tuple[str, ...]:
    """What is allowed, and is seldom meant."""
    return tuple(chain.from_iterable(check(site) for check in _CAUTIONS))


def _classes_exist(site: Site) -> Iterator[Mistake]:
    for queue in site.queues.values():
        if queue.default_class is not None:
            keys = (*queue_keys(queue.path), "default_class")
            yield from _missing(queue.default_class, site.classes, keys, "class")
    for each in site.classes.values():
        for number, name in enumerate(each.preempts):
            keys = ("classes", each.name, "preempts", number)
            yield from _missing(name, site.classes, keys, "class")


def _queues_exist(site: Site) -> Iterator[Mistake]:
    yield from _missing(site.default_queue, site.queues, ("default_queue",), "queue")
    for user in site.users.values():
        keys = ("users", user.name)
        if user.default_queue is not None:
            yield from _missing(user.default_queue, site.queues, (*keys, "default_queue"), "queue")
        for number, grant in enumerate(user.grants):
            if grant.queue is not None:
                yield from _missing(grant.queue, site.queues, (*keys, "roles", number), "queue")
    for number, each in enumerate(site.reservations):
        if each.for_queue is not None:
            keys = ("reservations", number, "queue")
            yield from _missing(each.for_queue, site.queues, keys, "queue")


def _guests_exist(site: Site) -> Iterator[Mistake]:
    """Users whom pools name; users need not be listed to exist."""
    for pool in site.pools.values():
        for number, queue in enumerate(pool.queues):
            yield from _missing(queue, site.queues, ("pools", pool.name, "queues", number), "queue")
        for number, name in enumerate(pool.classes):
            keys = ("pools", pool.name, "classes", number)
            yield from _missing(name, site.classes, keys, "class")


def _pools_exist(site: Site) -> Iterator[Mistake]:
    if site.default_pool is not None:
        yield from _missing(site.default_pool, site.pools, ("default_pool",), "pool")
    for queue in site.queues.values():
        for number, line in enumerate(queue.quotas):
            if line.scope.pool is not None:
                keys = (*queue_keys(queue.path), "quotas", number, "pool")
                yield from _missing(line.scope.pool, site.pools, keys, "pool")
    for number, each in enumerate(site.reservations):
        if isinstance(each, AmountReserved):
            yield from _missing(each.pool, site.pools, ("reservations", number, "pool"), "pool")


def _lines_differ(site: Site) -> Iterator[Mistake]:
    for queue in site.queues.values():
        first: dict[Scope, int] = {}
        for number, line in enumerate(queue.quotas):
            if first.setdefault(line.scope, number) != number:
                text = f"line {first[line.scope] + 1} counts the same; make them one line"
                yield Mistake(keys=(*queue_keys(queue.path), "quotas", number), text=text)


def _reservations_differ(site: Site) -> Iterator[Mistake]:
    names = [each.name for each in site.reservations]
    for number, name in enumerate(names):
        if name in names[:number]:
            text = f"another reservation is called {name}; give each a different name"
            yield Mistake(keys=("reservations", number, "name"), text=text)


def _classes_are_found(site: Site) -> Iterator[str]:
    bare = [
        path
        for path, queue in site.queues.items()
        if NORMAL not in site.classes and "/" not in path and queue.default_class is None
    ]
    if bare:
        yield (
            f"jobs in {listed(bare)} that name no class are refused: "
            f"set `default_class` there, or add a class `{NORMAL}`"
        )


def _preemption_happens(site: Site) -> Iterator[str]:
    for each in site.classes.values():
        for name in each.preempts:
            other = site.classes.get(name)
            if other is not None and other.priority >= each.priority:
                yield (
                    f"class {each.name} never preempts {name}, whose priority is not lower: "
                    f"{other.priority} beside {each.priority}"
                )
            elif other is not None and not other.preemptible:
                yield f"class {each.name} never preempts {name}, which is not preemptible"


def _limits_hold_guarantees(site: Site) -> Iterator[str]:
    for queue in site.queues.values():
        for line in queue.quotas:
            over = line.limit is not None and _more([line.guaranteed], line.limit)
            if over and line.limit is not None:
                yield (
                    f"queue {queue.path}{placed(line.scope)}: the limit is how much in all, and "
                    f"{amount_text(line.limit, line.scope.meter)} is less than the guaranteed "
                    f"{amount_text(line.guaranteed, line.scope.meter)}"
                )


def _guarantees_add_up(site: Site) -> Iterator[str]:
    for path in sorted({"", *site.queues}):
        below = [queue for queue in site.queues.values() if queue.path.rpartition("/")[0] == path]
        for line in _lines_of(site, path, below):
            given = [_guaranteed(queue, line.scope) for queue in below]
            # A number and a percentage can only be compared beside the nodes that are there.
            parts = [part for part in given if part and type(part) is type(line.guaranteed)]
            if _more(parts, line.guaranteed):
                yield (f"the queues below {path} are" if path else "the queues at the top are") + (
                    f" guaranteed more{placed(line.scope)} ({_sum_text(parts, line.scope)}) than "
                    f"there is to share ({amount_text(line.guaranteed, line.scope.meter)})"
                )


def _everyone_is_not_admin(site: Site) -> Iterator[str]:
    if site.everyone in (Role.ADMIN, Role.QUEUE_ADMIN):
        yield f"everyone on this machine is {site.everyone}"


def _spot_classes_have_pools(site: Site) -> Iterator[str]:
    if not any(pool.spot for pool in site.pools.values()):
        for each in site.classes.values():
            if each.spot_only:
                yield f"class {each.name} runs in spot pools only, and no pool is one"


def queue_keys(path: QueuePath) -> Path:
    """The way to a queue in the file: `queues`, `acme`, `queues`, `nlp`."""
    return tuple(chain.from_iterable(("queues", name) for name in path.split("/")))


def _receivers_can_be_told(site: Site) -> Iterator[Mistake]:
    for name, receiver in site.alerts.receivers.items():
        if (text := _receiver_fault(receiver)) is not None:
            yield Mistake(keys=("alerts", "receivers", name), text=text)
    for number, route in enumerate(site.alerts.routes):
        yield from _route_leads_somewhere(site, route, ("alerts", "routes", number))
    for number, route in enumerate(site.alerts.jobs):
        yield from _route_leads_somewhere(site, route, ("alerts", "jobs", number))


def _route_leads_somewhere(site: Site, route: Route | JobRoute, keys: Path) -> Iterator[Mistake]:
    for place, name in enumerate(route.receivers):
        where = (*keys, "receivers", place)
        yield from _missing(name, site.alerts.receivers, where, "receiver")
    if route.queue is not None:
        yield from _missing(route.queue, site.queues, (*keys, "queue"), "queue")


def _receiver_fault(receiver: Receiver) -> str | None:
    """What its kind needs and has not, or has and does not need."""
    needed = _NEEDED.get(receiver.kind, "url_file")
    given = [name for name in ("url_file", "to", "command") if getattr(receiver, name)]
    if receiver.name == OWNER:
        return f"`{OWNER}` stands for the users of jobs; call this receiver otherwise"
    if needed not in given:
        return f"`kind: {receiver.kind}` needs `{needed}`"
    other = next((name for name in given if name != needed), None)
    return None if other is None else f"`{other}` does not go with `kind: {receiver.kind}`"


_NEEDED = {ReceiverKind.MAIL: "to", ReceiverKind.COMMAND: "command"}


def _sinks_take_what_they_are_sent(site: Site) -> Iterator[Mistake]:
    for name, sink in site.telemetry.sinks.items():
        keys = ("telemetry", "sinks", name)
        if (text := _sink_fault(sink)) is not None:
            yield Mistake(keys=keys, text=text)
        if sink.queue is not None:
            yield from _missing(sink.queue, site.queues, (*keys, "queue"), "queue")


def _clusters_are_measured_by_one(site: Site) -> Iterator[Mistake]:
    for name, source in site.telemetry.clusters.items():
        if bool(source.prometheus) is bool(source.exporter):
            text = "name either a `prometheus` or an `exporter`"
            yield Mistake(keys=("telemetry", "clusters", name), text=text)


def _sink_fault(sink: Sink) -> str | None:
    scheme = "udp" if sink.kind is SinkKind.DOGSTATSD else "http"
    if not sink.url.startswith(scheme):
        return f"`kind: {sink.kind}` needs a `url` that begins with `{scheme}://`"
    other = next((each for each in sink.sends if each not in UNDERSTOOD[sink.kind]), None)
    if other is not None:
        return f"`kind: {sink.kind}` cannot be sent `{other}`; use another kind of sink for it"
    if sink.queue is not None and Sent.LOG in sink.sends:
        return "Muster's own log is about all queues; leave `log` or `queue` out"
    if sink.metrics and Sent.METRICS not in sink.sends:
        return "`metrics` names which ones, but `sends` has no `metrics`"
    return None


def _missing(name: str, known: Iterable[str], keys: Path, noun: str) -> Iterator[Mistake]:
    names = list(known)
    if name not in names:
        text = f"there is no {noun} `{name}`{suggestion(name, names)}"
        yield Mistake(keys=keys, text=text)


def _lines_of(site: Site, path: str, below: list[Queue]) -> tuple[Quota, ...]:
    """What there is to share: the queue's own lines; at the top, a whole of every percentage."""
    if path:
        return site.queues[QueuePath(path)].quotas
    scopes = {line.scope: None for queue in below for line in queue.quotas}
    return tuple(Quota(scope=scope, guaranteed=Percent(percent=100)) for scope in scopes)


def _guaranteed(queue: Queue, scope: Scope) -> int | Percent:
    return next((line.guaranteed for line in queue.quotas if line.scope == scope), 0)


def _more(parts: list[int | Percent], whole: int | Percent) -> bool:
    """Whether the parts of the same kind as the whole exceed it."""
    if isinstance(whole, Percent):
        return sum(part.percent for part in parts if isinstance(part, Percent)) > whole.percent
    return sum(part for part in parts if isinstance(part, int)) > whole


def _sum_text(parts: list[int | Percent], scope: Scope) -> str:
    return " + ".join(amount_text(part, scope.meter) for part in parts)


_MISTAKES = (
    _classes_exist,
    _queues_exist,
    _guests_exist,
    _pools_exist,
    _lines_differ,
    _reservations_differ,
    _receivers_can_be_told,
    _sinks_take_what_they_are_sent,
    _clusters_are_measured_by_one,
)
_CAUTIONS = (
    _classes_are_found,
    _preemption_happens,
    _limits_hold_guarantees,
    _guarantees_add_up,
    _everyone_is_not_admin,
    _spot_classes_have_pools,
)
