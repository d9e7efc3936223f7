"""Changes one line of a queue's quota, or its weight: `muster quota set`."""

from muster.api.site import QuotaAsked
from muster.doors.config.faults import suggestion
from muster.doors.config.kinds import LABEL, PROFILE, choice
from muster.doors.units import BadTextError, amount
from muster.model.errors import UnknownError
from muster.model.queue import Amount, Meter, Queue, Quota, Scope
from muster.model.site import Site
from muster.model.value import GpuModel, PoolName, QueuePath, replace


def with_quota(site: Site, asked: QuotaAsked) -> Site:
    """The site with this change. What is not asked for stays; `none` takes a bound away.

    Raises UnknownError where the queue or pool does not exist, BadTextError for a bad amount.
    """
    path = QueuePath(asked.queue)
    queue = site.queues.get(path)
    if queue is None:
        raise UnknownError(f"there is no queue `{path}`{suggestion(path, site.queues)}")
    changed = replace(queue, quotas=_lines(queue, asked, _scope(site, asked)))
    if asked.weight is not None:
        changed = replace(changed, weight=_weight(asked.weight))
    return replace(site, queues={**site.queues, path: changed})


def _scope(site: Site, asked: QuotaAsked) -> Scope:
    meter = Meter(choice(Meter).read(asked.meter))
    if asked.pool is not None and asked.pool not in site.pools:
        raise UnknownError(f"there is no pool `{asked.pool}`{suggestion(asked.pool, site.pools)}")
    if (meter is Meter.MIG) != (asked.profile is not None):
        raise BadTextError(
            asked.meter, "the meter `mig` together with a profile such as `1g.5gb`, or neither"
        )
    return Scope(
        meter=meter,
        profile=None if asked.profile is None else PROFILE.read(asked.profile),
        pool=None if asked.pool is None else PoolName(asked.pool),
        model=None if asked.model is None else GpuModel(LABEL.read(asked.model)),
    )


def _lines(queue: Queue, asked: QuotaAsked, scope: Scope) -> tuple[Quota, ...]:
    """The queue's lines with this one changed in its place; a line that says nothing goes."""
    known = {line.scope: line for line in queue.quotas}
    known[scope] = _line(known.get(scope, Quota(scope=scope)), asked)
    return tuple(line for line in known.values() if line != Quota(scope=line.scope))


def _line(line: Quota, asked: QuotaAsked) -> Quota:
    meter = line.scope.meter
    return Quota(
        scope=line.scope,
        guaranteed=_told(asked.guaranteed, line.guaranteed, meter) or 0,
        limit=_told(asked.limit, line.limit, meter),
        lend_limit=_told(asked.lend_limit, line.lend_limit, meter),
        borrow_limit=_told(asked.borrow_limit, line.borrow_limit, meter),
    )


def _told(text: str | None, known: Amount | None, meter: Meter) -> Amount | None:
    if text is None:
        return known
    return None if text.strip().lower() == "none" else amount(text, meter)


def _weight(weight: int) -> int:
    if weight < 1:
        raise BadTextError(weight, "a weight of 1 or more")
    return weight
