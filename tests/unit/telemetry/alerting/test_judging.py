from muster.model.value import Instant
from muster.telemetry.alerting.judging import AlertState, Judge
from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.family import Family, FamilyKind, Point

R174 = """
groups:
- name: gpu
  rules:
  - alert: GPUTemperatureTooHigh
    expr: dcgm_temperature_gpu > 85
    for: 2m
    labels:
      severity: critical
    annotations:
      summary: "GPU temperature too high on {{ $labels.instance }}"
"""


def test_an_alert_is_pending_until_its_time_and_is_told_when_it_is_over() -> None:
    judge = Judge(rule_groups(R174))

    states = [
        [(alert.state.value, alert.since) for alert in judge.look((hot(heat),), at(turn)).alerts]
        for turn, heat in enumerate([80, 90, 91, 92, 80, 80])
    ]

    assert states == [
        [],
        [("pending", 60_000)],
        [("pending", 60_000)],
        [("firing", 60_000)],
        [("resolved", 60_000)],
        [("resolved", 60_000)],
    ]


def test_an_alert_that_comes_back_begins_again() -> None:
    judge = Judge(rule_groups(R174))
    for turn, heat in enumerate([90, 90, 90, 80]):
        judge.look((hot(heat),), at(turn))

    (again,) = judge.look((hot(95),), at(4)).alerts

    assert (again.state, again.since) == (AlertState.PENDING, at(4))


def test_what_does_not_answer_any_more_is_over() -> None:
    judge = Judge(rule_groups(R174))
    for turn in range(3):
        judge.look((hot(90),), at(turn))

    (gone,) = judge.look((), at(3)).alerts

    assert gone.state is AlertState.RESOLVED


def test_an_alert_that_is_kept_goes_on_for_a_while() -> None:
    judge = Judge(rule_groups(R174.replace("    labels:", "    keep_firing_for: 2m\n    labels:")))

    states = [
        [alert.state.value for alert in judge.look((hot(heat),), at(turn)).alerts]
        for turn, heat in enumerate([90, 90, 90, 80, 80, 80])
    ]

    assert states[2:] == [["firing"], ["firing"], ["firing"], ["resolved"]]


def test_new_rules_go_on_with_the_alerts_of_the_old_ones() -> None:
    judge = Judge(rule_groups(R174))
    for turn in range(3):
        judge.look((hot(90),), at(turn))
    more = R174 + "  - record: heat:max\n    expr: max(dcgm_temperature_gpu)\n"
    after = Judge(rule_groups(more))

    after.take_over(judge)

    (alert,) = after.look((hot(90),), at(3)).alerts
    assert (alert.state, alert.since) == (AlertState.FIRING, at(0))


def test_a_rule_that_fails_says_so_and_the_others_go_on() -> None:
    text = R174 + "  - alert: Bad\n    expr: dcgm_temperature_gpu + on () dcgm_temperature_gpu\n"
    judge = Judge(rule_groups(text))

    found = judge.look((hot(90, 91),), at(0))

    assert [failure.rule for failure in found.failures] == ["Bad"]
    assert len(found.alerts) == 2


def test_a_rule_may_ask_for_what_another_records_and_for_alerts() -> None:
    text = R174.replace("2m", "0s") + (
        "  - record: heat:max\n    expr: max(dcgm_temperature_gpu)\n"
        '  - alert: HeatAnywhere\n    expr: heat:max > 85 and on () ALERTS{alertstate="firing"}\n'
    )
    judge = Judge(rule_groups(text))

    names = [
        [each.name for each in judge.look((hot(heat),), at(n)).alerts if each.over_at is None]
        for n, heat in enumerate([90, 80])
    ]

    assert names == [["GPUTemperatureTooHigh", "HeatAnywhere"], []]


def test_a_clock_that_goes_back_begins_a_new_history() -> None:
    judge = Judge(rule_groups(R174))
    for turn in range(10, 13):
        judge.look((hot(90),), at(turn))

    assert [each.state for each in judge.look((hot(80),), at(1)).alerts] == [AlertState.RESOLVED]


def hot(*heats: int) -> Family:
    return Family(
        name="dcgm_temperature_gpu",
        kind=FamilyKind.GAUGE,
        help="how hot",
        points=tuple(Point((("gpu", str(number)),), heat) for number, heat in enumerate(heats)),
    )


def at(minute: int) -> Instant:
    return Instant(minute * 60_000)
