"""Instants as objects of Kubernetes write them: whole seconds in UTC."""

from datetime import UTC, datetime

from muster.model.value import SECOND, Instant


def stamp(at: Instant | int) -> str:
    """`2026-11-16T09:19:14Z`."""
    moment = datetime.fromtimestamp(at // SECOND, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(at: Instant | int) -> str:
    """`2026-11-16T09:19:14.250000Z`: some times are told more exactly."""
    return f"{stamp(at)[:-1]}.{at % SECOND * 1_000:06d}Z"


def instant(text: str | None) -> Instant | None:
    """What a stamp means; None where there is none, or it cannot be read."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return Instant(int(moment.timestamp() * SECOND))


def after(text: str | None, seconds: int) -> Instant | None:
    """So many seconds after a stamp."""
    start = instant(text)
    return None if start is None else Instant(start + seconds * SECOND)


def earliest(*instants: Instant | None) -> Instant | None:
    """The first of those that are there."""
    return min((each for each in instants if each is not None), default=None)
