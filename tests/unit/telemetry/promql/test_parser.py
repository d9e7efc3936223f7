import pytest

from muster.telemetry.promql.bad import BadExpressionError
from muster.telemetry.promql.parser import parsed


@pytest.mark.parametrize(
    ("text", "word", "why"),
    [
        ("stddev(up)", "stddev", "run this rule in a Prometheus"),
        ("stddev by (a) (up)", "stddev", "run this rule in a Prometheus"),
        ("up @ 1234", "@", "use `offset`"),
        ("max_over_time(rate(up[5m])[1h:])", "[", "only a metric has a range"),
        ("rate(up[1h:5m])", ":", "record the inner expression"),
        ('{job="a"}', "{", "name the metric"),
        ('{__name__=~"a|b"}', "__name__", "name one metric"),
        ("up > ", "the end", "expected a value"),
        ("up up", "up", "not expected here"),
        ("sum(up", "the end", "expected ')'"),
        ("rate(up)", "rate", "takes a range here, and is given a vector"),
        ("rate(up[5m], 3)", "rate", "takes 1 arguments"),
        ("up[5m]", "", "a range alone"),
        ("1 > 2", ">", "`bool`"),
        ("up + bool 2", "bool", "only with a comparison"),
        ("up and 1", "and", "a vector on both sides"),
        ("1 + on (a) up", "+", "two vectors only"),
        ("up and on (a) group_left up", "group_left", "many on both sides"),
        ("topk(up)", "topk", "takes a number, then a vector"),
        ('up{a=~"("}', '"("', "not a regular expression"),
        ('up{a=~"(x+)+y"}', '"(x+)+y"', "a group that repeats something"),
        ('up{a=~"(a?b)*"}', '"(a?b)*"', "a group that repeats something"),
        ('up{a=~"(?=x)"}', '"(?=x)"', "Prometheus has no"),
        ('up{a="', '"', "does not end"),
        ("up[5x]", "5x", "neither a number nor a duration"),
        ("up[0s]", "0s", "longer than 0"),
        ("$value > 1", "$value > 1", "write the value"),
        ("(" * 100 + "up" + ")" * 100, "(", "too deeply"),
        ("up" * 20_000, "", "at most 20000"),
    ],
)
def test_what_is_not_evaluated_is_refused_with_its_word(text: str, word: str, why: str) -> None:
    with pytest.raises(BadExpressionError) as found:
        parsed(text)

    assert found.value.word == word
    assert why in found.value.why


@pytest.mark.parametrize(
    "text",
    [
        "up",
        "sum by (a,) (up)",
        "sum(up) by (a)",
        "up{a='x', b=`y`,}",
        "1 + 2 * 3 # and why",
        'rate(up{a="1"}[90] offset -5m)',
        "up offset 1h30m > 0x1F",
        "a == bool on (x) group_right (y) b",
        "SUM(up) OR vector(1e3)",
        'up{by="1",on="2"} > 5m',
        "Inf > bool NaN",
    ],
)
def test_what_prometheus_reads_is_read(text: str) -> None:
    parsed(text)
