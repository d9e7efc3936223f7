"""Cases of series and rules, made by chance from a seed, as files of `promtool test rules`.

What is expected in them is what our evaluator says; a real promtool then says whether it agrees.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.telemetry.promql.labels import NAME
from unit.telemetry.alerting.promtool import firing, values_at

STEP_S = 15
STEPS = 44
IN_A_FILE = 10
ASKED_S = (60, 195, 300, 450, 600)

Series = dict[str, str]
Labels = tuple[tuple[str, str], ...]

# N: a threshold of values. R: a range. L: a label. Q: a part of one.
EXPRESSIONS = """
g > N
g{x="a"} >= N
g{x!="a"} < N
g{y=~"p|q"} != N
g{x!~"a.*"} == bool N
N < g
N >= bool g
g offset 1m > N
-g < -N
g + c > N
g - on (x, y) c
g * on (x, y) group_left (z) h
g * ignoring (z) group_right (x) h > N
g / on (x) group_left sum by (x) (g)
g % 7 > 3
g ^ 2 > N
2 ^ (c - c % 1) % 1000
g > bool c
g == on (x, y) g
g and h
g and on (x) h
g or h
g or on (x) h
g unless on (x, y) h
g unless ignoring (z) h
(g > N) or (c > N)
sum(g) > N
sum by (x) (g) > N
sum without (x) (g)
avg by (L) (g)
avg(g) / count(g)
min by (L) (g)
max without (L) (g)
count by (x, y) (g > N)
topk(2, g)
topk by (x) (1, g + 0.001 * c)
topk(scalar(count(c) or vector(1)), c)
rate(c[R]) > 0
rate(c[R])
increase(c[R])
increase(c[R]) > 3
sum by (x) (rate(c[R])) * 60
irate(c[R])
delta(g[R])
changes(g[R]) > 2
resets(c[R]) > 0
avg_over_time(g[R])
min_over_time(g[R]) < N
max_over_time(g[R]) > N
sum_over_time(g[R])
count_over_time(g[R])
last_over_time(g[R])
present_over_time(h[R])
stddev_over_time(g[R])
stdvar_over_time(g[R])
quantile_over_time(Q, g[R])
absent_over_time(h{x="a"}[R])
absent_over_time(nothing{x="a",y=~"p"}[R])
absent(h)
absent(g{x="nowhere",y="p",z!="1"})
absent(sum(nothing))
predict_linear(g[R], 600) > N
predict_linear(c[R], 60)
clamp(g, 2, N)
clamp(g, N, 2)
clamp_min(g, N)
clamp_max(g, N) > 1
label_replace(g, "w", "$1-${2}", "x", "(.)(.*)")
label_replace(g{x="a"}, "x", "", "y", "p")
label_replace(g{x="a"}, "w", "same", "nothing", "")
histogram_quantile(Q, rate(b_bucket[R]))
histogram_quantile(Q, sum by (le, x) (rate(b_bucket[R])))
histogram_quantile(Q, b_bucket) > N
histogram_quantile(0.9, sum by (le) (increase(b_bucket[R]))) > 1
time() - g > 100
vector(time()) % 60 == 0
vector(N) > 5
scalar(sum(g)) > bool N
sum(g) > scalar(avg(c))
sum(g) or vector(0)
sum(nothing) or (vector(0) == 0)
rate(c[R]) / on (x, y) group_left () (h > 0)
(sum by (x) (rate(c[R])) / sum by (x) (rate(c[R] offset 1m))) > 0.3 and on (x) sum by (x) (g) > N
avg_over_time(g[R]) > 1.1 * avg_over_time(g[R] offset 2m)
max by (x) (g) - min by (x) (g) > N
g > 0 and on (x, y) increase(c[R]) >= 1
1 / (g - g)
(g - 5) / 0 > N
""".strip().splitlines()


@dataclass(frozen=True)
class Case:
    """One rule and the series that it is asked about."""

    name: str
    expression: str
    series: Series
    for_s: int
    keep_s: int


def cases(seed: int, count: int) -> list[Case]:
    """Every expression at least once, where there is room for that."""
    chance = random.Random(seed)  # noqa: S311 the same cases for the same seed are the point
    found: list[Case] = []
    for number in range(count):
        written = _filled(EXPRESSIONS[number % len(EXPRESSIONS)], chance)
        found.append(
            Case(
                name=f"Case{number:03d}",
                expression=written,
                series=dict(_series(chance)),
                for_s=chance.choice((0, 0, 15, 45, 120)),
                keep_s=chance.choice((0, 0, 0, 60)),
            )
        )
    return found


def write(folder: Path, found: list[Case]) -> list[Path]:
    """Two files for every ten cases: rules, and tests of them."""
    written: list[Path] = []
    for first in range(0, len(found), IN_A_FILE):
        some = found[first : first + IN_A_FILE]
        rules, tests = (
            folder / f"{first // IN_A_FILE:02d}.{kind}.yml" for kind in ("rules", "test")
        )
        rules.write_text(_yaml({"groups": [{"name": "made", "rules": list(map(_rule, some))}]}))
        document = {
            "rule_files": [rules.name],
            "evaluation_interval": f"{STEP_S}s",
            "tests": [
                _test(case, _yaml({"groups": [{"name": "made", "rules": [_rule(case)]}]}))
                for case in some
            ],
        }
        tests.write_text(_yaml(document))
        written.append(tests)
    return written


def _rule(case: Case) -> dict[str, Any]:
    return {
        "alert": case.name,
        "expr": case.expression,
        "for": f"{case.for_s}s",
        "keep_firing_for": f"{case.keep_s}s",
        "labels": {"severity": "info", "seen": "{{ $labels.x }}"},
        "annotations": {
            "value": "{{ $value }}",
            "human": '{{ $value | humanize }} {{ printf "%.2f" $value }} of {{ $labels.y }}',
        },
    }


def _test(case: Case, rules: str) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": case.name,
        "interval": f"{STEP_S}s",
        "input_series": [
            {"series": name, "values": values} for name, values in case.series.items()
        ],
    }
    asked = tuple((second * 1_000, case.name) for second in ASKED_S)
    told = firing(test, [rules], STEP_S * 1_000, asked)
    test["alert_rule_test"] = [
        {
            "eval_time": f"{at // 1_000}s",
            "alertname": name,
            "exp_alerts": [
                {"exp_labels": dict(labels), "exp_annotations": dict(annotations)}
                for labels, annotations in told[at, name]
            ],
        }
        for at, name in asked
    ]
    test["promql_expr_test"] = [
        {
            "expr": case.expression,
            "eval_time": f"{second}s",
            "exp_samples": [
                {"labels": _shown(dict(labels)), "value": value} for labels, value in found.items()
            ],
        }
        for second in ASKED_S
        if (found := _values_at(case, second)) is not None
    ]
    return test


def _values_at(case: Case, second: int) -> Mapping[Labels, float] | None:
    """None where one is no number: for promtool such a value does not equal itself."""
    found = values_at(case.expression, case.series, STEP_S * 1_000, second * 1_000)
    return None if any(math.isnan(value) for value in found.values()) else found


def _shown(labels: Mapping[str, str]) -> str:
    inside = ", ".join(f'{name}="{value}"' for name, value in labels.items() if name != NAME)
    return f"{labels.get(NAME, '')}{{{inside}}}"


def _filled(expression: str, chance: random.Random) -> str:
    values = {
        "N": chance.choice(("3", "5.5", "10", "2", "7")),
        "R": chance.choice(("1m", "2m", "90s", "5m", "30s")),
        "L": chance.choice(("x", "y", "x, y")),
        "Q": chance.choice(("0.5", "0.9", "0.99", "0.1", "1")),
    }
    return "".join(values.get(word, word) for word in _words(expression))


def _words(expression: str) -> Iterator[str]:
    """Names stay whole, so that only letters of their own are filled in."""
    word = ""
    for letter in expression:
        if letter.isalnum() or letter == "_":
            word += letter
            continue
        yield from (word, letter)
        word = ""
    yield word


def _series(chance: random.Random) -> Iterator[tuple[str, str]]:
    for x in ("a", "ab", "c")[: chance.randint(2, 3)]:
        for y in ("p", "q"):
            if chance.random() < 0.85:
                yield f'g{{x="{x}",y="{y}"}}', _values(chance, _gauge)
            if chance.random() < 0.8:
                yield f'c{{x="{x}",y="{y}"}}', _values(chance, _counter)
            if chance.random() < 0.6:
                z = chance.choice(("1", "2"))
                yield f'h{{x="{x}",y="{y}",z="{z}"}}', _values(chance, _gauge)
        yield from _buckets(x, chance)


def _buckets(x: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    steps = [0]
    for bound in ("0.5", "1", "5", "+Inf"):
        steps.append(steps[-1] + chance.randint(0, 4))
        yield f'b_bucket{{x="{x}",le="{bound}"}}', f"{steps[-1]}+{steps[-1]}x{STEPS}"


def _values(chance: random.Random, one: Any) -> str:
    """Values for every step; some are missing, some series end or begin late."""
    late = chance.choice((0, 0, 0, 5, 12))
    values = ["_"] * late + list(one(chance, STEPS - late))
    if chance.random() < 0.4:
        for _ in range(chance.randint(1, 6)):
            values[chance.randrange(len(values))] = "_"
    if chance.random() < 0.2:
        values[chance.randrange(20, len(values))] = "stale"
    if chance.random() < 0.15:
        values = values[: chance.randrange(8, 25)]
    return " ".join(values)


def _gauge(chance: random.Random, count: int) -> Iterator[str]:
    value = chance.choice((0.0, 1.0, 5.0, 10.0))
    for _ in range(count):
        if chance.random() < 0.5:
            value = round(value + chance.uniform(-3, 3), 2)
        yield "NaN" if chance.random() < 0.01 else repr(value)


def _counter(chance: random.Random, count: int) -> Iterator[str]:
    value = chance.choice((0.0, 0.0, 1.0, 100.0))
    for _ in range(count):
        value += chance.choice((0, 0, 1, 2, 0.5))
        if chance.random() < 0.04:
            value = 0.0
        yield repr(value)


def _yaml(document: object) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
