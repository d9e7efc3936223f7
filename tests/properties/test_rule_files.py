"""Whatever is written into rules and texts: it is read, or refused with a place; nothing else."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from muster.model.value import Instant
from muster.telemetry.alerting.judging import Judge
from muster.telemetry.alerting.reading import BadRulesError, rule_groups
from muster.telemetry.alerting.template import template
from muster.telemetry.family import Family, FamilyKind, Point
from muster.telemetry.promql.bad import BadEvaluationError, BadExpressionError
from muster.telemetry.promql.evaluate import evaluated
from muster.telemetry.promql.history import History, kept_spans
from muster.telemetry.promql.parser import parsed

WORDS = """up g c sum avg topk rate increase absent vector scalar time clamp label_replace
    histogram_quantile predict_linear by without on ignoring group_left group_right bool offset
    and or unless ( ) { } [ ] , : @ + - * / % ^ == != < > <= >= = =~ !~ 1 0.5 5m 1h Inf NaN
    "a" 'b' `c` "(.*)" le x y stddev $value""".split()
PIECES = """{{ }} $labels.x $value .Value .Labels.y | printf "%.1f" "%s" "%d" humanize humanize1024
    humanizeDuration ( ) - text range end query""".split()
YAML = """groups: name: rules: alert: record: expr: for: labels: annotations: up 5m "{{ - [ ] { }
    & * ! | >""".split()


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_words_in_any_order_are_evaluated_or_refused(text: str) -> None:
    with suppress(BadExpressionError, BadEvaluationError):
        asked = parsed(text)
        history = History(kept_spans((asked,)))
        for at in range(0, 60_000, 15_000):
            history.begin(Instant(at))
            for name in history.names:
                history.append(Instant(at), name, [({"x": "1", "le": "5"}, float(at))])
        evaluated(asked, history, Instant(45_000))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(BadExpressionError):
        parsed(text)
    with suppress(BadExpressionError):
        template(text).expanded({}, 1.0)
    with suppress(BadRulesError):
        rule_groups(text)


@given(st.lists(st.sampled_from(PIECES), max_size=10).map(" ".join), st.floats())
def test_pieces_of_templates_are_filled_in_or_refused(text: str, value: float) -> None:
    with suppress(BadExpressionError):
        template(text).expanded({"x": "a{{b}}"}, value)


@given(st.lists(st.sampled_from([*YAML, "\n", "\n  ", "\n- "]), max_size=25).map(" ".join))
def test_pieces_of_yaml_are_rules_or_refused(text: str) -> None:
    with suppress(BadRulesError):
        rule_groups(text)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats()), max_size=20))
def test_clocks_and_values_that_jump_break_nothing(looks: list[tuple[int, float]]) -> None:
    judge = Judge(
        rule_groups(
            "groups:\n- name: g\n  rules:\n"
            "  - {alert: A, expr: 'rate(c[5m]) > 0 or absent(c)', for: 1m}\n"
        )
    )
    for at, value in looks:
        point = Point((("name", 'quotes " and\nnewlines'),), value)
        family = Family(name="c", kind=FamilyKind.COUNTER, help="", points=(point,))
        assert judge.look((family,), Instant(at)).failures == ()
