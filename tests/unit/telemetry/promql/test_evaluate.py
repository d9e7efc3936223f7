import math

import pytest

from muster.telemetry.promql.bad import BadEvaluationError
from unit.telemetry.promql.series import answer, said

GPUS = {
    'temp{gpu="0",node="a"}': "80 90",
    'temp{gpu="1",node="a"}': "70 71",
    'temp{gpu="0",node="b"}': "60 95",
    'job{gpu="0",node="a",user="ada"}': "1 1",
    'job{gpu="0",node="b",user="bob"}': "1 1",
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("temp > 85", {'temp{gpu="0",node="a"}': 90, 'temp{gpu="0",node="b"}': 95}),
        ("85 < temp", {'temp{gpu="0",node="a"}': 90, 'temp{gpu="0",node="b"}': 95}),
        ('temp{node="a",gpu!="0"}', {'temp{gpu="1",node="a"}': 71}),
        ('temp{node=~"b|c"} > bool 99', {'{gpu="0",node="b"}': 0}),
        ("sum by (node) (temp)", {'{node="a"}': 161, '{node="b"}': 95}),
        ("max without (gpu) (temp)", {'{node="a"}': 90, '{node="b"}': 95}),
        ("count(temp > 1000)", {}),
        ("topk(1, temp)", {'temp{gpu="0",node="b"}': 95}),
        ("avg(temp)", {"": 256 / 3}),
        (
            "temp * on (gpu, node) group_left (user) job",
            {'{gpu="0",node="a",user="ada"}': 90, '{gpu="0",node="b",user="bob"}': 95},
        ),
        ("temp unless on (gpu, node) job", {'temp{gpu="1",node="a"}': 71}),
        ('temp{gpu="1"} and on (node) temp{gpu="0"}', {'temp{gpu="1",node="a"}': 71}),
        ("sum(temp) or vector(0)", {"": 256}),
        ("sum(nothing) or vector(7)", {"": 7}),
        ('absent(nothing{a="1",b=~"x",c="2"})', {'{a="1",c="2"}': 1}),
        ("absent(temp)", {}),
        ("-sum(temp)", {"": -256}),
        ("2 ^ 3 ^ 2 - 10 % 4", {"": 510}),
        ("-2 ^ 2", {"": -4}),
        ("time()", {"": 15}),
        ("scalar(sum(temp)) / 2", {"": 128}),
        (
            "clamp(temp, 72, 92) > 0",
            {'{gpu="0",node="a"}': 90, '{gpu="1",node="a"}': 72, '{gpu="0",node="b"}': 92},
        ),
        (
            'label_replace(temp{gpu="1"}, "where", "$1-x", "node", "(.*)")',
            {'temp{gpu="1",node="a",where="a-x"}': 71},
        ),
        ("temp offset 15s > 75", {'temp{gpu="0",node="a"}': 80}),
    ],
)
def test_an_expression_gives_what_prometheus_gives(
    expression: str, expected: dict[str, float]
) -> None:
    assert said(answer(expression, GPUS, at_s=15)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # The window reaches from 30 to 90 and has 45, 60, 75 and 90: 15 s are filled in.
        ("increase(errors[1m])", 4.0),
        ("rate(errors[1m])", 4 / 60),
        ("irate(errors[1m])", 1 / 15),
        ("delta(errors[1m])", 4.0),
        ("changes(errors[1m])", 3.0),
        ("avg_over_time(errors[1m])", 4.5),
        ("max_over_time(errors[1m])", 6.0),
        ("quantile_over_time(0.5, errors[1m])", 4.5),
        ("predict_linear(errors[1m], 60)", 10.0),
    ],
)
def test_functions_look_over_a_range_without_its_beginning(function: str, expected: float) -> None:
    found = answer(function, {"errors": "0+1x6"}, at_s=90)

    assert [value for _, value in found] == pytest.approx([expected])


def test_a_counter_that_begins_again_has_not_gone_back() -> None:
    found = answer("increase(errors[1m])", {"errors": "100 101 102 0 1"}, at_s=60)

    # 101, 102, 0 and 1 are in the window: 1 + 0 + 1, stretched from 45 s to 60 s.
    assert said(found) == pytest.approx({"": 2 * 60 / 45})


def test_a_counter_born_at_one_has_not_increased() -> None:
    assert said(answer("increase(errors[5m]) > 0", {"errors": "1x20"}, at_s=300)) == {}


def test_a_value_is_the_present_one_for_less_than_five_minutes() -> None:
    series = {"up": "1"}

    assert said(answer("up", series, at_s=299.999)) == {"up": 1}
    assert said(answer("up", series, at_s=300)) == {}


def test_a_series_that_ended_has_no_value() -> None:
    assert said(answer("up", {"up": "1 stale"}, at_s=15)) == {}
    assert said(answer("max_over_time(up[1m])", {"up": "1 stale"}, at_s=15)) == {"": 1}


def test_a_quantile_of_buckets_lies_straight_between_their_bounds() -> None:
    buckets = {
        f'wait_bucket{{le="{bound}"}}': f"{count}"
        for bound, count in {"1": 10, "10": 60, "60": 100, "+Inf": 100}.items()
    }

    found = answer("histogram_quantile(0.9, wait_bucket)", buckets, at_s=0)

    assert said(found) == pytest.approx({"": 10 + 50 * 30 / 40})


def test_nothing_is_divided_in_vain() -> None:
    assert math.isnan(answer("0 / 0", {}, at_s=0)[0].value)
    assert said(answer("-1 / 0", {}, at_s=0)) == {"": -math.inf}
    assert said(answer("10 ^ 400", {}, at_s=0)) == {"": math.inf}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("temp / on (node) job", "left"),
        ("temp * on (node) group_left temp", "right side has several"),
        ('max_over_time({__name__="temp"}[1m]) or -temp', ""),
        ('label_replace(temp, "gpu", "", "gpu", ".*")', "several results"),
    ],
)
def test_what_does_not_fit_the_series_is_an_error(expression: str, text: str) -> None:
    if not text:
        answer(expression, GPUS, at_s=15)
        return
    with pytest.raises(BadEvaluationError, match=text):
        answer(expression, GPUS, at_s=15)
