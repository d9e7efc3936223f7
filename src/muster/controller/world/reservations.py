"""Reservations that come back: which of their windows is the one that counts now.

By the calendar of a place, so that eight in the morning stays that when clocks are changed. Who is
in nobody's way in the next window is so in all later ones: plans look at one window at a time.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from muster.model.cluster import Every, Reservation
from muster.model.value import DAY, HOUR, Instant, replace

SATURDAY = 5


def current_windows(reservations: tuple[Reservation, ...], now: Instant) -> tuple[Reservation, ...]:
    """All of them as of now; the very same where none comes back."""
    if all(each.every is None for each in reservations):
        return reservations
    return tuple(current_window(each, now) for each in reservations)


def current_window(reservation: Reservation, now: Instant) -> Reservation:
    """With the window that is open, or else the next one; a single one stays as it is."""
    if reservation.every is None or reservation.ends_at > now:
        return reservation
    span = reservation.ends_at - reservation.begins_at
    begins_at = _begins_at(reservation, reservation.every, Instant(now - span))
    return replace(reservation, begins_at=begins_at, ends_at=Instant(begins_at + span))


def _begins_at(reservation: Reservation, every: Every, after: Instant) -> Instant:
    """The first beginning after that instant."""
    begins_at = reservation.begins_at
    gone = after - begins_at
    if every is Every.HOURLY:
        return Instant(begins_at + (gone // HOUR + 1) * HOUR)
    step = 7 if every is Every.WEEKLY else 1
    zone = ZoneInfo(reservation.zone or "UTC")
    first = datetime.fromtimestamp(begins_at / 1_000, UTC).astimezone(zone)
    # A day may be an hour longer or shorter than others.
    days = max(0, gone // (step * DAY) - 1) * step
    while True:
        days += step
        begins = first + timedelta(days=days)
        found = Instant(round(begins.timestamp() * 1_000))
        if found > after and _is_day_of(every, begins.weekday()):
            return found


def _is_day_of(every: Every, weekday: int) -> bool:
    match every:
        case Every.WEEKDAY:
            return weekday < SATURDAY
        case Every.WEEKEND:
            return weekday >= SATURDAY
        case Every.HOURLY | Every.DAILY | Every.WEEKLY:
            return True
