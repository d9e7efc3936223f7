"""Who may lead by a Lease of Kubernetes, as one process that wants to lead sees it. Pure.

No two clocks are compared. Who waits counts from when it first saw the Lease as it is; who leads
counts from before it asked to renew it. So the one stops before the other may begin.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from muster.model.value import Duration, Instant, Value, replace

Json = dict[str, Any]


class Terms(Value):
    """How long a Lease keeps others away, how long its holder acts by it, how often it renews.

    lets_go_by: by then all that the holder does has ended, whatever it takes.
    """

    lasts: Duration = Duration(15_000)
    acts: Duration = Duration(10_000)
    lets_go_by: Duration = Duration(14_000)
    renews_every: Duration = Duration(2_000)


class Lease(Value):
    """What is written in it. holder: nobody where it is empty. version: the server's."""

    holder: str
    lasts: Duration
    version: str
    renewed: str = ""
    acquired: str = ""
    takings: int = 0


class Standing(Value):
    """What one process, `me`, knows. lease: as it was last seen, and since: when first so.

    is_there: was it there when we last looked? Who deletes it does not end its holder's time.
    asked_at: before it last asked to hold it, and was given it; None: it does nothing by it.
    """

    me: str
    terms: Terms = Terms()
    lease: Lease | None = None
    since: Instant = Instant(0)
    is_there: bool = False
    asked_at: Instant | None = None


def heard(standing: Standing, lease: Lease | None, now: Instant) -> Standing:
    """After a look at the Lease; None: there is none."""
    if lease is None:
        return replace(standing, is_there=False)
    since = standing.since if lease == standing.lease else now
    return replace(standing, lease=lease, since=since, is_there=True)


def won(standing: Standing, lease: Lease, asked_at: Instant, now: Instant) -> Standing:
    """After the server took what we wrote. It may have done so at any time since we asked."""
    return replace(standing, lease=lease, since=now, is_there=True, asked_at=asked_at)


def came_to_rest(standing: Standing) -> Standing:
    """Nothing is done by it any more, whatever the Lease says."""
    return replace(standing, asked_at=None)


def is_ours(standing: Standing) -> bool:
    """Did it say so when we last looked?"""
    return standing.lease is not None and standing.lease.holder == standing.me


def may_ask(standing: Standing, now: Instant) -> bool:
    """Is it ours, nobody's, or was it not renewed for as long as it lasts?"""
    lease = standing.lease
    if lease is None or not lease.holder or is_ours(standing):
        return True
    return now - standing.since >= lease.lasts


def may_act(standing: Standing, now: Instant) -> bool:
    """Do we lead?"""
    asked_at = standing.asked_at
    return is_ours(standing) and asked_at is not None and now - asked_at < standing.terms.acts


def is_overdue(standing: Standing, now: Instant) -> bool:
    """Is it so late that what we still do could meet what our successor does?"""
    asked_at = standing.asked_at
    return asked_at is not None and now - asked_at >= standing.terms.lets_go_by


def claim(standing: Standing, wall: datetime) -> Json:
    """What to write so as to hold it: only as it was seen, so that of two one is refused.

    wall: the time of day, for people who look at it.
    """
    lease, stamp = standing.lease, _stamp(wall)
    spec: Json = {
        "holderIdentity": standing.me,
        "leaseDurationSeconds": standing.terms.lasts // 1_000,
        "renewTime": stamp,
    }
    if not is_ours(standing) or not standing.is_there:
        spec["acquireTime"] = stamp
        spec["leaseTransitions"] = 0 if lease is None else lease.takings + 1
    return _as_seen(standing, spec)


def release(standing: Standing, wall: datetime) -> Json | None:
    """What to write so that others need not wait; None where it is not ours."""
    if not is_ours(standing) or not standing.is_there:
        return None
    # The server takes no duration of nothing.
    spec: Json = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _stamp(wall)}
    return _as_seen(standing, spec)


def lease_of(found: Mapping[str, Any]) -> Lease:
    """The object of `coordination.k8s.io/v1`, with what it need not say as nothing."""
    spec: Mapping[str, Any] = found.get("spec") or {}
    return Lease(
        holder=spec.get("holderIdentity") or "",
        lasts=Duration(1_000 * (spec.get("leaseDurationSeconds") or 0)),
        version=found["metadata"]["resourceVersion"],
        renewed=spec.get("renewTime") or "",
        acquired=spec.get("acquireTime") or "",
        takings=spec.get("leaseTransitions") or 0,
    )


def _as_seen(standing: Standing, spec: Json) -> Json:
    if standing.lease is None or not standing.is_there:
        return {"spec": spec}
    return {"metadata": {"resourceVersion": standing.lease.version}, "spec": spec}


def _stamp(wall: datetime) -> str:
    return wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
