"""How fast an autoscaler may follow: windows in which it stays, and rates that it keeps."""

from collections.abc import Sequence
from math import ceil

from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.model.value import SECOND, Instant, Value, replace

DOWN_WINDOW_S = 300
LONGEST_S = 3600

UP_RULES: JsonObject = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
DOWN_RULES: JsonObject = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class Moment(Value):
    """Something at an instant: a recommendation, or by how much was scaled."""

    at: Instant
    replicas: int


class Memory(Value):
    """What an autoscaler remembers: what it recommended, and how it scaled up and down."""

    recommendations: tuple[Moment, ...] = ()
    ups: tuple[Moment, ...] = ()
    downs: tuple[Moment, ...] = ()


class Bounds(Value):
    """How many replicas there are, and may be."""

    current: int
    least: int
    most: int


class Allowed(Value):
    """What becomes of a recommendation. able, limited: conditions, as reason and message."""

    replicas: int
    able: tuple[str, str]
    limited: tuple[str, str]
    is_limited: bool


READY = ("ReadyForNewScale", "recommended size matches current size")
WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
TOO_FAST_UP = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
TOO_FAST_DOWN = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_RECENT = "recent recommendations were {} than current one, applying the {} recent recommendation"
STAYS_UP = ("ScaleDownStabilized", _RECENT.format("higher", "highest"))
STAYS_DOWN = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)


def allowed(spec: JsonObject, wanted: int, bounds: Bounds, memory: Memory, now: Instant) -> Allowed:
    """How far a recommendation is followed now."""
    behaviour = part(spec, "behavior")
    steady = _steady(behaviour, wanted, bounds, memory, now)
    able = READY
    if steady != wanted:
        able = STAYS_DOWN if behaviour and wanted >= bounds.current else STAYS_UP
    if behaviour:
        reached, why = _within_rates(behaviour, steady, bounds, memory, now)
    else:
        reached, why = _within_factor(steady, bounds)
    return Allowed(replicas=reached, able=able, limited=why, is_limited=reached != steady)


def remembered(memory: Memory, recommended: int, scaled_by: int, now: Instant) -> Memory:
    """With what was recommended and done now, and without what is too old to matter."""
    ups, downs = memory.ups, memory.downs
    if scaled_by > 0:
        ups = (*ups, Moment(at=now, replicas=scaled_by))
    elif scaled_by < 0:
        downs = (*downs, Moment(at=now, replicas=-scaled_by))
    said = (*memory.recommendations, Moment(at=now, replicas=recommended))
    return replace(
        memory,
        recommendations=_recent(said, LONGEST_S, now),
        ups=_recent(ups, LONGEST_S, now),
        downs=_recent(downs, LONGEST_S, now),
    )


def _steady(
    behaviour: JsonObject, wanted: int, bounds: Bounds, memory: Memory, now: Instant
) -> int:
    """Between the lowest and the highest of what was recommended within the windows."""
    down_s = part(behaviour, "scaleDown").get("stabilizationWindowSeconds")
    down = _recent(memory.recommendations, DOWN_WINDOW_S if down_s is None else down_s, now)
    highest = max([wanted, *(each.replicas for each in down)])
    if not behaviour:
        return highest
    up_s = part(behaviour, "scaleUp").get("stabilizationWindowSeconds") or 0
    up = _recent(memory.recommendations, up_s, now)
    lowest = min([wanted, *(each.replicas for each in up)])
    return min(max(bounds.current, lowest), highest)


def _within_factor(wanted: int, bounds: Bounds) -> tuple[int, tuple[str, str]]:
    """At most doubled in one step, or four."""
    fastest = max(2 * bounds.current, 4)
    if wanted < bounds.least:
        return bounds.least, TOO_FEW
    most, why = (fastest, TOO_FAST_UP) if fastest < bounds.most else (bounds.most, TOO_MANY)
    return (most, why) if wanted > most else (wanted, WITHIN)


def _within_rates(
    behaviour: JsonObject, wanted: int, bounds: Bounds, memory: Memory, now: Instant
) -> tuple[int, tuple[str, str]]:
    if wanted > bounds.current:
        rules = {**UP_RULES, **part(behaviour, "scaleUp")}
        fastest = max(bounds.current, _limit(rules, bounds.current, memory, now, up=True))
        most, why = (fastest, TOO_FAST_UP) if fastest < bounds.most else (bounds.most, TOO_MANY)
        return (most, why) if wanted > most else (wanted, WITHIN)
    if wanted < bounds.current:
        rules = {**DOWN_RULES, **part(behaviour, "scaleDown")}
        fastest = min(bounds.current, _limit(rules, bounds.current, memory, now, up=False))
        least, why = (fastest, TOO_FAST_DOWN) if fastest > bounds.least else (bounds.least, TOO_FEW)
        return (least, why) if wanted < least else (wanted, WITHIN)
    return wanted, WITHIN


def _limit(rules: JsonObject, current: int, memory: Memory, now: Instant, *, up: bool) -> int:
    """How far its policies allow to go from what there was when their periods began."""
    if rules["selectPolicy"] == "Disabled":
        return current
    proposed: list[int] = []
    for policy in items(rules, "policies"):
        period_s: int = policy["periodSeconds"]
        began = current - _total(memory.ups, period_s, now) + _total(memory.downs, period_s, now)
        sign = 1 if up else -1
        if policy["type"] == "Pods":
            proposed.append(began + sign * policy["value"])
        elif up:
            proposed.append(ceil(began * (100 + policy["value"]) / 100))
        else:
            proposed.append(began * (100 - policy["value"]) // 100)
    furthest = (rules["selectPolicy"] != "Min") == up
    return max(proposed) if furthest else min(proposed)


def _total(moments: Sequence[Moment], period_s: int, now: Instant) -> int:
    return sum(each.replicas for each in _recent(moments, period_s, now))


def _recent(moments: Sequence[Moment], seconds: int, now: Instant) -> tuple[Moment, ...]:
    return tuple(each for each in moments if each.at > now - seconds * SECOND)
