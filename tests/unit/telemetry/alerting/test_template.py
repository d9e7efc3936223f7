import math

import pytest

from muster.telemetry.alerting.numbers import humanize, humanize1024, humanize_duration, plain
from muster.telemetry.alerting.template import template
from muster.telemetry.promql.bad import BadExpressionError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("{{ $labels.gpu }} has {{ $value }}", "3 has 1234.5"),
        ("{{$labels.nothing}}.", "."),
        ("{{ .Labels.gpu }} {{ .Value | humanize }}", "3 1.234k"),
        ('{{ printf "%.1f%%" $value }}', "1234.5%"),
        ('{{ $value | printf "%8.2f|" }}', " 1234.50|"),
        ('{{ printf "%s-%v" $labels.gpu (humanize $value) }}', "3-1.234k"),
        ("a {{- $labels.gpu -}} b", "a3b"),
        ("{{ $value | humanizeDuration }}", "20m 34s"),
        ("{{ $value | humanizePercentage }}", "1.234e+05%"),
        ('{{ "quoted" }}', "quoted"),
    ],
)
def test_a_text_is_filled_in_as_prometheus_does(text: str, said: str) -> None:
    assert template(text).expanded({"gpu": "3"}, 1234.5) == said


@pytest.mark.parametrize(
    "text",
    [
        "{{ $labels.gpu",
        "{{ }}",
        "{{ range query `up` }}",
        "{{ if true }}a{{ end }}",
        '{{ printf "%d" $value }}',
        '{{ printf "%s" }}',
        '{{ printf "%!" $value }}',
        "{{ $labels }}",
        "{{ $labels.a | humanize }}",
        "{{ $externalURL }}",
        "{{ ( $value }}",
        "{{ $value | }}",
        "{{ $value $value }}",
    ],
)
def test_what_we_do_not_fill_in_is_refused(text: str) -> None:
    with pytest.raises(BadExpressionError):
        template(text)


def test_numbers_are_said_as_go_says_them() -> None:
    assert [plain(each) for each in (1.0, 0.1, 1e-5, 1e20, 1e21, 1.5e300, math.inf, math.nan)] == [
        *("1", "0.1", "1e-05", "100000000000000000000", "1e+21", "1.5e+300", "+Inf", "NaN")
    ]
    assert [humanize(each) for each in (0, 0.0012, 999, 1e6, -1500, math.inf)] == [
        *("0", "1.2m", "999", "1M", "-1.5k", "+Inf")
    ]
    assert [humanize1024(each) for each in (1, 2048, 3 * 2**30)] == ["1", "2ki", "3Gi"]
    assert [humanize_duration(each) for each in (0, 0.5, 12.34, 61, 3600, 90061, -61)] == [
        *("0s", "500ms", "12.34s", "1m 1s", "1h 0m 0s", "1d 1h 1m 1s", "-1m 1s")
    ]
