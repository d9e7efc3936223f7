"""Which alerts nobody is told of: silenced by somebody, or told better by another alert."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from muster.model.alerting import LabelTest, Silence
from muster.model.pattern import BadPatternError, Pattern, TooMuchTextError, pattern
from muster.model.value import Instant, Value
from muster.telemetry.alerting.judging import Alert, AlertState

LONGEST_VALUE = 500
"""Of a label that is compared with a pattern; a longer one is like none."""


class MuteKind(StrEnum):
    """SILENCED: somebody wanted so. INHIBITED: another alert says why."""

    SILENCED = "silenced"
    INHIBITED = "inhibited"


class Mute(Value):
    """by: the silence's id, or the other alert's name."""

    kind: MuteKind
    by: str


class Muting(Value):
    """What silences alerts now. devices: the UUIDs that each job holds."""

    silences: tuple[Silence, ...] = ()
    devices: Mapping[str, frozenset[str]] = {}


def mutes(alerts: Iterable[Alert], muting: Muting, now: Instant) -> dict[Alert, Mute]:
    """Those that are muted, and why."""
    every = tuple(alerts)
    active = [each for each in muting.silences if each.is_active(now)]
    causes = _Causes(every, muting)
    found: dict[Alert, Mute] = {}
    for alert in every:
        mute = _silenced(alert, active) or causes.mute(alert)
        if mute is not None:
            found[alert] = mute
    return found


def is_silenced(alert: Alert, silence: Silence) -> bool:
    queue = alert.label("queue")
    within = silence.queue
    if within is not None and queue != within and not queue.startswith(f"{within}/"):
        return False
    labels = dict(alert.labels)
    return all(_holds(test, labels.get(test.name, "")) for test in silence.tests)


def pattern_fault(text: str) -> str:
    """What speaks against this regular expression in a silence; empty for nothing."""
    try:
        _whole(text)
    except BadPatternError as bad:
        return f"not a regular expression: {bad}"
    return ""


def steps_of(tests: Iterable[LabelTest]) -> int:
    """How many steps their patterns have together: an alert may take so many for each character."""
    return sum(_whole(each.value).size for each in tests if each.operator in _LIKE)


_LIKE = ("=~", "!~")


def _holds(test: LabelTest, value: str) -> bool:
    match test.operator:
        case "=":
            return value == test.value
        case "!=":
            return value != test.value
        case "=~":
            return _is_like(test.value, value)
        case _:
            return not _is_like(test.value, value)


@lru_cache(16_384)
def _is_like(text: str, value: str) -> bool:
    """Kept, because the same alerts are looked at again and again."""
    try:
        return len(value) <= LONGEST_VALUE and _whole(text).is_whole(value)
    except (BadPatternError, TooMuchTextError):
        return False


def _whole(text: str) -> Pattern:
    return pattern(f"(?s:{text})")


def _silenced(alert: Alert, silences: Iterable[Silence]) -> Mute | None:
    by = next((each.id for each in silences if is_silenced(alert, each)), None)
    return None if by is None else Mute(kind=MuteKind.SILENCED, by=by)


class _Causes:
    """Alerts that say why there are others, by what they are about.

    Others are looked up, because there may be thousands of both.
    """

    def __init__(self, alerts: Iterable[Alert], muting: Muting) -> None:
        self._jobs = muting.devices
        self._by_place: dict[tuple[str, str], list[Alert]] = {}
        for alert in alerts:
            place = _CAUSES.get(alert.name)
            value = alert.label(place) if place and alert.state is AlertState.FIRING else ""
            if place and value:
                self._by_place.setdefault((alert.name, value), []).append(alert)
        broken = {value for name, value in self._by_place if name == DEVICE}
        # Of each job one broken device is enough.
        self._broken_of = {
            job: min(found) for job, held in self._jobs.items() if (found := held & broken)
        }

    def mute(self, alert: Alert) -> Mute | None:
        """By the first of the causes that is another alert than this one."""
        for name, value in self._places(alert):
            if any(other != alert for other in self._by_place.get((name, value), ())):
                return Mute(kind=MuteKind.INHIBITED, by=name)
        return None

    def _places(self, alert: Alert) -> Iterator[tuple[str, str]]:
        """A broken device says more than what follows for its job, and a node than its devices."""
        device, node = alert.label("UUID"), alert.label("node")
        yield DEVICE, self._broken_of.get(alert.label("job"), "")
        if device:
            yield NODE, alert.label("Hostname")
        if device or node:
            yield CLUSTER, alert.label("cluster")


DEVICE, NODE, CLUSTER = "GpuBroken", "NodeGone", "BackendUnreachable"

_CAUSES: Mapping[str, str] = {DEVICE: "UUID", NODE: "node", CLUSTER: "cluster"}
"""Alerts that say why there are others, and the label that says of what."""
