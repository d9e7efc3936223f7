import pytest

from muster.telemetry.alerting.reading import BadRulesError, rule_groups

BEGIN = "groups:\n- name: g\n  rules:\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("a: b: c", 1, "not YAML"),
        ("rules: []", 1, "`rules` is not known here"),
        ("groups: 3", 1, "a list was expected"),
        (BEGIN + "  - expr: up", 4, "either `alert` or `record`"),
        (BEGIN + "  - alert: A", 4, "there is no `expr`"),
        (BEGIN + "  - alert: A\n    expr: stddev(up)", 5, "'stddev': Muster does not evaluate"),
        (BEGIN + "  - alert: A\n    expr: |\n      up\n      > stddev(up)", 7, "'stddev'"),
        (BEGIN + "  - alert: A\n    expr: up\n    for: soon", 6, "'soon' is no time"),
        (BEGIN + "  - alert: A\n    expr: up\n    labels: {a-b: c}", 6, "not the name of a label"),
        (
            BEGIN + "  - alert: A\n    expr: up\n    annotations: {a: '{{ query \"up\" }}'}",
            6,
            "'query'",
        ),
        (
            BEGIN
            + "  - alert: A\n    expr: up\n    annotations: {a: '{{ printf \"%d\" $value }}'}",
            6,
            "write %.0f",
        ),
        (BEGIN + "  - record: a-b\n    expr: up", 4, "not the name of a metric"),
        (BEGIN + "  - alert: A\n    expr: up\n    limit: 3", 6, "`limit` is not known here"),
        ("groups:\n- name: g\n  rules: []\n- name: g\n  rules: []", 4, "two groups"),
        ("groups: &a\n- *a", 2, "aliases"),
        ("[" * 100, 1, "nested too deeply"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(BadRulesError) as found:
        rule_groups(text)

    assert [fault.line for fault in found.value.faults if said in str(fault)] == [line], str(
        found.value
    )


def test_all_faults_are_told_at_once_with_their_rules() -> None:
    text = BEGIN + "  - alert: A\n    expr: up up\n  - alert: B\n    expr: sum(\n"

    with pytest.raises(BadRulesError) as found:
        rule_groups(text)

    assert [(fault.line, fault.rule) for fault in found.value.faults] == [(5, "A"), (7, "B")]
