"""What an expression gives at an instant, from the history."""

import math
import re
from collections.abc import Callable, Iterable, Mapping

from muster.model.value import Instant
from muster.telemetry.promql import ranges
from muster.telemetry.promql.arithmetic import larger, mean, smaller, total
from muster.telemetry.promql.bad import BadEvaluationError
from muster.telemetry.promql.binary import of_numbers, of_vector_and_number, of_vectors
from muster.telemetry.promql.buckets import bucket_quantile
from muster.telemetry.promql.history import History
from muster.telemetry.promql.labels import (
    METRIC,
    Sample,
    SeriesName,
    Vector,
    only,
    series_name,
    without,
)
from muster.telemetry.promql.matching import anchored
from muster.telemetry.promql.ranges import Answer, Window
from muster.telemetry.promql.syntax import (
    Aggregate,
    Binary,
    Call,
    Expression,
    Kind,
    MatchOperator,
    Negated,
    Number,
    Selector,
    Text,
)
from muster.telemetry.promql.typing import kind_of


def evaluated(expression: Expression, history: History, now: Instant) -> Vector:
    """One value for each series; a number is a series without labels.

    BadEvaluationError: several results have the same labels, or it is not clear what belongs
    together.
    """
    evaluator = _Evaluator(history, now)
    if kind_of(expression) is Kind.SCALAR:
        return [Sample((), evaluator.number(expression))]
    found = evaluator.vector(expression)
    _expect_distinct(found)
    return found


class _Evaluator:
    """One instant of one history."""

    def __init__(self, history: History, now: Instant) -> None:
        self._history = history
        self._now = now

    def vector(self, asked: Expression) -> Vector:
        match asked:
            case Selector():
                return self._history.instant(asked, self._now)
            case Call():
                return self._call(asked)
            case Aggregate():
                return self._aggregate(asked)
            case Binary():
                return self._binary(asked)
            case Negated(of=of):
                found = [Sample(without(name, METRIC), -value) for name, value in self.vector(of)]
                return _distinct(found)
            case Number() | Text():
                raise BadEvaluationError("a vector was expected")

    def number(self, asked: Expression) -> float:
        match asked:
            case Number(value=value):
                return value
            case Negated(of=of):
                return -self.number(of)
            case Binary(left=left, right=right):
                return of_numbers(asked, self.number(left), self.number(right))
            case Call(function="time"):
                return self._now / 1000
            case Call(function="scalar", arguments=arguments):
                found = self.vector(arguments[0])
                return found[0].value if len(found) == 1 else math.nan
            case Call() | Selector() | Aggregate() | Text():
                raise BadEvaluationError("a number was expected")

    def _binary(self, asked: Binary) -> Vector:
        if kind_of(asked.left) is Kind.SCALAR:
            number = self.number(asked.left)
            vector = self.vector(asked.right)
            return _distinct(of_vector_and_number(asked, vector, number, swapped=True))
        left = self.vector(asked.left)
        if kind_of(asked.right) is Kind.SCALAR:
            number = self.number(asked.right)
            return _distinct(of_vector_and_number(asked, left, number, swapped=False))
        return of_vectors(asked, left, self.vector(asked.right))

    def _aggregate(self, asked: Aggregate) -> Vector:
        labels = frozenset(asked.labels)
        groups: dict[SeriesName, list[Sample]] = {}
        for sample in self.vector(asked.of):
            key = (
                without(sample.name, labels | METRIC)
                if asked.excludes
                else only(sample.name, labels)
            )
            groups.setdefault(key, []).append(sample)
        if asked.parameter is not None:
            most = self.number(asked.parameter)
            return [each for group in groups.values() for each in _highest(group, most)]
        made = _AGGREGATES[asked.operator]
        return [
            Sample(key, made([sample.value for sample in group])) for key, group in groups.items()
        ]

    def _call(self, asked: Call) -> Vector:
        function, arguments = asked.function, asked.arguments
        if function in ranges.ANSWERS:
            return self._over_range(asked, arguments[0], ranges.ANSWERS[function])
        if function == "quantile_over_time":
            answer = ranges.quantile_of(self.number(arguments[0]))
            return self._over_range(asked, arguments[1], answer)
        if function == "predict_linear":
            answer = ranges.predicted(self.number(arguments[1]))
            return self._over_range(asked, arguments[0], answer)
        return _CALLS[function](self, arguments)

    def _over_range(self, asked: Call, selector: Expression, answer: Answer) -> Vector:
        if not isinstance(selector, Selector):
            raise BadEvaluationError("a range was expected")
        until = self._now - selector.offset_ms
        after = until - (selector.range_ms or 0)
        found: Vector = []
        for name, times, values in self._history.ranges(selector, self._now):
            value = answer(Window(times, values, after, until, self._now))
            kept = name if asked.function == "last_over_time" else without(name, METRIC)
            found += [] if value is None else [Sample(kept, value)]
        return _distinct(found)

    def absent(self, arguments: tuple[Expression, ...]) -> Vector:
        return [] if self.vector(arguments[0]) else [Sample(_expected(arguments[0]), 1.0)]

    def absent_over_time(self, arguments: tuple[Expression, ...]) -> Vector:
        selector = arguments[0]
        if not isinstance(selector, Selector) or any(self._history.ranges(selector, self._now)):
            return []
        return [Sample(_expected(selector), 1.0)]

    def clamp(self, arguments: tuple[Expression, ...]) -> Vector:
        least, most = self.number(arguments[1]), self.number(arguments[2])
        if most < least:
            return []
        return self._each(arguments[0], lambda value: larger(least, smaller(most, value)))

    def clamp_min(self, arguments: tuple[Expression, ...]) -> Vector:
        least = self.number(arguments[1])
        return self._each(arguments[0], lambda value: larger(least, value))

    def clamp_max(self, arguments: tuple[Expression, ...]) -> Vector:
        most = self.number(arguments[1])
        return self._each(arguments[0], lambda value: smaller(most, value))

    def _each(self, asked: Expression, change: Callable[[float], float]) -> Vector:
        found = [Sample(without(name, METRIC), change(value)) for name, value in self.vector(asked)]
        return _distinct(found)

    def histogram_quantile(self, arguments: tuple[Expression, ...]) -> Vector:
        part = self.number(arguments[0])
        groups: dict[SeriesName, list[tuple[float, float]]] = {}
        for name, value in self.vector(arguments[1]):
            bound = _bound(dict(name).get("le", ""))
            if bound is not None:
                key = without(name, METRIC | {"le"})
                groups.setdefault(key, []).append((bound, value))
        return [Sample(key, bucket_quantile(part, found)) for key, found in groups.items()]

    def label_replace(self, arguments: tuple[Expression, ...]) -> Vector:
        target, replacement, source, pattern = (
            each.value if isinstance(each, Text) else "" for each in arguments[1:]
        )
        whole = anchored(pattern)
        found: Vector = []
        for name, value in self.vector(arguments[0]):
            labels = dict(name)
            match = whole.fullmatch(labels.get(source, ""))
            if match is not None:
                labels[target] = _filled(replacement, match)
            found.append(Sample(series_name(labels), value))
        return _distinct(found)

    def vector_of(self, arguments: tuple[Expression, ...]) -> Vector:
        return [Sample((), self.number(arguments[0]))]


_CALLS: Mapping[str, Callable[[_Evaluator, tuple[Expression, ...]], Vector]] = {
    "absent": _Evaluator.absent,
    "absent_over_time": _Evaluator.absent_over_time,
    "clamp": _Evaluator.clamp,
    "clamp_min": _Evaluator.clamp_min,
    "clamp_max": _Evaluator.clamp_max,
    "histogram_quantile": _Evaluator.histogram_quantile,
    "label_replace": _Evaluator.label_replace,
    "vector": _Evaluator.vector_of,
}


def _sum(values: list[float]) -> float:
    whole, lost = total(values)
    return whole if math.isinf(whole) else whole + lost


_AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {
    "sum": _sum,
    "avg": mean,
    "min": ranges.least,
    "max": ranges.most,
    "count": lambda values: float(len(values)),
}


def _highest(group: list[Sample], most: float) -> list[Sample]:
    """The largest values first; what is no number comes last, and ties stay as they are."""
    if math.isnan(most) or most < 1:
        return []
    ordered = sorted(group, key=lambda each: (math.isnan(each.value), -each.value))
    return ordered[: int(min(most, len(ordered)))]


def _expected(asked: Expression) -> SeriesName:
    """The labels that a series which is not there would have had for certain."""
    if not isinstance(asked, Selector):
        return ()
    labels: dict[str, str] = {}
    named: set[str] = set()
    for matcher in asked.matchers:
        if matcher.operator is MatchOperator.EQUAL and matcher.name not in named:
            labels[matcher.name] = matcher.value
        else:
            labels.pop(matcher.name, None)
        named.add(matcher.name)
    return series_name(labels)


def _bound(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_GROUP = re.compile(r"\$(?:\$|\{(\w+)\}|(\w+))")


def _filled(replacement: str, match: re.Match[str]) -> str:
    """`$1` and `${name}` as what the pattern found; what it has not is empty."""

    def said(found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2)
        if name is None:
            return "$"
        if name.isdigit():
            known = int(name) <= (match.re.groups or 0)
            return (match.group(int(name)) or "") if known else ""
        return match.groupdict().get(name) or ""

    return _GROUP.sub(said, replacement)


def _distinct(found: Vector) -> Vector:
    _expect_distinct(found)
    return found


def _expect_distinct(found: Iterable[Sample]) -> None:
    seen: set[SeriesName] = set()
    for name, _ in found:
        if name in seen:
            shown = ", ".join(f'{label}="{value}"' for label, value in name)
            raise BadEvaluationError(f"several results would have the labels {{{shown}}}")
        seen.add(name)
