"""Operators between numbers and vectors, and which series belong together."""

from collections.abc import Callable

from muster.telemetry.promql.arithmetic import ANSWERS, RESULTS
from muster.telemetry.promql.bad import BadEvaluationError
from muster.telemetry.promql.labels import METRIC, Sample, SeriesName, Vector, only, without
from muster.telemetry.promql.syntax import SETS, Binary, Many, Matching

Pair = Callable[[float, float], float | None]
"""What becomes of two values; None: the series is dropped."""


def of_numbers(asked: Binary, left: float, right: float) -> float:
    if asked.operator in RESULTS:
        return RESULTS[asked.operator](left, right)
    return float(ANSWERS[asked.operator](left, right))


def of_vector_and_number(asked: Binary, vector: Vector, number: float, *, swapped: bool) -> Vector:
    """swapped: the number stood on the left. What is kept is the vector's value all the same."""
    found: Vector = []
    pair, names = _pair(asked), _name_stays(asked)
    for name, value in vector:
        result = pair(number, value) if swapped else pair(value, number)
        if result is None:
            continue
        kept = value if names else result
        found.append(Sample(name if names else without(name, METRIC), kept))
    return found


def of_vectors(asked: Binary, left: Vector, right: Vector) -> Vector:
    if asked.operator in SETS:
        return _set(asked, left, right)
    matching = asked.matching
    is_swapped = matching.many is Many.RIGHT
    many, one = (right, left) if is_swapped else (left, right)
    key = _key(matching)
    ones = _by_key(one, key, matching)
    found: Vector = []
    pair = _pair(asked)
    taken: dict[SeriesName, set[SeriesName]] = {}
    for sample in many:
        group = key(sample.name)
        partner = ones.get(group)
        if partner is None:
            continue
        sides = (partner, sample) if is_swapped else (sample, partner)
        result = pair(sides[0].value, sides[1].value)
        if result is None:
            continue
        name = _result_name(asked, sample.name, partner.name)
        _claim(taken.setdefault(group, set()), name, matching)
        found.append(Sample(name, result))
    return found


def _pair(asked: Binary) -> Pair:
    if asked.operator in RESULTS:
        return RESULTS[asked.operator]
    holds = ANSWERS[asked.operator]
    if asked.is_bool:
        return lambda a, b: float(holds(a, b))
    return lambda a, b: a if holds(a, b) else None


def _name_stays(asked: Binary) -> bool:
    """Is it only asked which series there are, their values being left as they are?"""
    return asked.operator in ANSWERS and not asked.is_bool


def _key(matching: Matching) -> Callable[[SeriesName], SeriesName]:
    if matching.on:
        kept = frozenset(matching.labels)
        return lambda name: only(name, kept)
    dropped = frozenset(matching.labels) | METRIC
    return lambda name: without(name, dropped)


def _by_key(
    one: Vector, key: Callable[[SeriesName], SeriesName], matching: Matching
) -> dict[SeriesName, Sample]:
    found: dict[SeriesName, Sample] = {}
    for sample in one:
        group = key(sample.name)
        if group in found:
            side = "left" if matching.many is Many.RIGHT else "right"
            text = f"the {side} side has several series with {_shown(group)}"
            raise BadEvaluationError(text)
        found[group] = sample
    return found


def _claim(taken: set[SeriesName], name: SeriesName, matching: Matching) -> None:
    if matching.many is None and taken:
        text = f"several series on the left belong to one: say group_left, or match {_shown(name)}"
        raise BadEvaluationError(text)
    if name in taken:
        raise BadEvaluationError(f"two results would both be {_shown(name)}")
    taken.add(name)


def _result_name(asked: Binary, many: SeriesName, one: SeriesName) -> SeriesName:
    matching = asked.matching
    name = many if _name_stays(asked) else without(many, METRIC)
    if matching.many is None:
        labels = frozenset(matching.labels)
        return only(name, labels) if matching.on else without(name, labels)
    if not matching.include:
        return name
    included = frozenset(matching.include)
    return tuple(sorted((*without(name, included), *only(one, included))))


def _set(asked: Binary, left: Vector, right: Vector) -> Vector:
    key = _key(asked.matching)
    if asked.operator == "or":
        there = {key(sample.name) for sample in left}
        return [*left, *(sample for sample in right if key(sample.name) not in there)]
    others = {key(sample.name) for sample in right}
    wanted = asked.operator == "and"
    return [sample for sample in left if (key(sample.name) in others) is wanted]


def _shown(name: SeriesName) -> str:
    inside = ", ".join(f'{label}="{value}"' for label, value in name)
    return f"{{{inside}}}"
