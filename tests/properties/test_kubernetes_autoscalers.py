from collections.abc import Mapping
from math import ceil
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.doors.kubernetes.controllers.autoscalers.behaviour import (
    Bounds,
    Memory,
    Moment,
    allowed,
)
from muster.doors.kubernetes.controllers.autoscalers.readings import (
    NotMeasuredError,
    Question,
    replicas_for,
)
from muster.doors.kubernetes.controllers.pods import is_ready
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from muster.model.value import SECOND, Instant
from properties.kubernetes_world import START, KubernetesWorld, deployment
from unit.doors.kubernetes.controllers.autoscalers.test_sync import asking, autoscaler

TARGET, ASKED_MILLI = 80, 100
COUNTS = st.integers(min_value=0, max_value=20)
NOW = Instant(START + 3_600 * SECOND)
MOMENTS = st.lists(
    st.tuples(st.integers(min_value=0, max_value=3_599), COUNTS).map(
        lambda drawn: Moment(at=Instant(NOW - drawn[0] * SECOND), replicas=drawn[1])
    ),
    max_size=5,
).map(tuple)
MEMORIES = st.builds(Memory, recommendations=MOMENTS, ups=MOMENTS, downs=MOMENTS)
BOUNDS = (
    st.tuples(*[st.integers(min_value=1, max_value=20)] * 3)
    .map(sorted)
    .map(lambda three: Bounds(least=three[0], current=three[1], most=three[2]))
)
POLICIES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Pods", "Percent"]),
        "value": st.integers(min_value=1, max_value=100),
        "periodSeconds": st.sampled_from([15, 60, 1_800]),
    }
)
RULES = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.sampled_from([0, 60, 3_600]),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "policies": st.lists(POLICIES, min_size=1, max_size=3),
    },
)
BEHAVIOURS = st.fixed_dictionaries({"scaleUp": RULES, "scaleDown": RULES})


@given(BEHAVIOURS, COUNTS, BOUNDS, MEMORIES)
def test_an_autoscaler_goes_towards_what_is_recommended_and_no_further(
    behaviour: JsonObject, wanted: int, bounds: Bounds, memory: Memory
) -> None:
    step = allowed({"behavior": behaviour}, wanted, bounds, memory, NOW)

    assert bounds.least <= step.replicas <= bounds.most
    low, high = sorted((bounds.current, max(bounds.least, min(bounds.most, wanted))))
    assert low <= step.replicas <= high


@given(BEHAVIOURS, COUNTS, BOUNDS, MEMORIES, st.sampled_from(["scaleUp", "scaleDown"]))
def test_an_autoscaler_never_goes_where_it_may_not(
    behaviour: JsonObject, wanted: int, bounds: Bounds, memory: Memory, way: str
) -> None:
    behaviour = {**behaviour, way: {**behaviour[way], "selectPolicy": "Disabled"}}

    step = allowed({"behavior": behaviour}, wanted, bounds, memory, NOW)

    if way == "scaleUp":
        assert step.replicas <= bounds.current
    else:
        assert step.replicas >= bounds.current


@given(COUNTS, BOUNDS, MEMORIES, POLICIES)
def test_an_autoscaler_grows_no_faster_than_its_only_policy_says(
    wanted: int, bounds: Bounds, memory: Memory, policy: JsonObject
) -> None:
    rules = {"policies": [policy]}

    step = allowed({"behavior": {"scaleUp": rules}}, wanted, bounds, memory, NOW)

    since = NOW - policy["periodSeconds"] * SECOND
    gained = sum(each.replicas for each in memory.ups if each.at > since)
    lost = sum(each.replicas for each in memory.downs if each.at > since)
    began = bounds.current - gained + lost
    grown = policy["value"] if policy["type"] == "Pods" else began * policy["value"] / 100
    assert step.replicas <= max(bounds.current, ceil(began + grown))


PODS = st.lists(
    st.tuples(st.sampled_from(["ready", "waits", "unmeasured"]), st.integers(0, 300)),
    min_size=1,
    max_size=6,
)


@given(PODS)
def test_what_is_not_known_turns_no_change_round(drawn: list[tuple[str, int]]) -> None:
    assume(any(how == "ready" for how, _ in drawn))
    question = asked_about(drawn)
    ready = [cpu for how, cpu in drawn if how == "ready"]
    is_too_little = sum(ready) * 100 // (len(ready) * ASKED_MILLI) > TARGET

    reply = replicas_for(question, NOW)

    if is_too_little:
        assert reply.replicas >= question.current
    else:
        assert reply.replicas <= question.current


@given(PODS, st.integers(min_value=0, max_value=300))
def test_more_use_never_asks_for_fewer_replicas(drawn: list[tuple[str, int]], more: int) -> None:
    ready = [("ready", cpu) for _, cpu in drawn]
    busier = [("ready", cpu + more) for _, cpu in drawn]

    before = replicas_for(asked_about(ready), NOW)

    assert replicas_for(asked_about(busier), NOW).replicas >= before.replicas


def asked_about(drawn: list[tuple[str, int]]) -> Question:
    pods: list[JsonObject] = []
    for number, (how, _) in enumerate(drawn):
        told = {"type": "Ready", "status": "True"}
        status: JsonObject = {"phase": "Running", "conditions": [told]}
        pods.append(
            {
                "metadata": {"name": f"p{number}"},
                "status": {"phase": "Pending"} if how == "waits" else status,
            }
        )
    return Question(
        pods=pods,
        measured={f"p{at}": cpu for at, (how, cpu) in enumerate(drawn) if how == "ready"},
        target=TARGET,
        current=len(drawn),
        requests={name_of(each): ASKED_MILLI for each in pods},
        is_cpu=True,
    )


class Meter:
    """What each pod uses, as the machine says; nothing, where it says nothing."""

    def __init__(self) -> None:
        self.cpu_milli: dict[str, int] = {}

    def resource(self, _name: str, _namespace: str, /) -> Mapping[str, int]:
        if not self.cpu_milli:
            raise NotMeasuredError("nothing is measured")
        return self.cpu_milli

    def metric(self, name: str, _namespace: str, /) -> Mapping[str, int]:
        raise NotMeasuredError(f"no metric {name}")


class AutoscalerMachine(RuleBasedStateMachine):
    """A Deployment that an autoscaler follows, while people and its use change it."""

    @initialize(
        replicas=st.integers(min_value=0, max_value=8),
        bounds=st.tuples(st.integers(1, 4), st.integers(0, 6)),
    )
    def is_created(self, replicas: int, bounds: tuple[int, int]) -> None:
        self.meter = Meter()
        self.world = KubernetesWorld(self.meter)
        self.web = self.world.create(deployment(replicas=replicas, template=asking("100m")))
        least, most = bounds[0], sum(bounds)
        self.scaler = self.world.create(autoscaler(minReplicas=least, maxReplicas=most))
        self.asked_for: list[tuple[Instant, int]] = []
        self.world.settles()

    @rule(cpu_milli=st.sampled_from([None, 0, 40, 79, 80, 85, 120, 400]))
    def it_is_used(self, cpu_milli: int | None) -> None:
        for each in self.world.active():
            if not is_ready(each):
                self.world.runs(each)
        names = [name_of(each) for each in self.world.active()]
        self.meter.cpu_milli = {} if cpu_milli is None else dict.fromkeys(names, cpu_milli)
        self._looks(cpu_milli)

    @rule()
    def time_passes(self) -> None:
        self.world.passes(300)
        self.meter.cpu_milli = {}
        self._looks(None)

    @rule(replicas=st.integers(min_value=0, max_value=8))
    def somebody_scales_it(self, replicas: int) -> None:
        self.world.edit(self.web, replicas=replicas)
        self.world.settles()

    @rule(bounds=st.tuples(st.integers(1, 4), st.integers(0, 6)))
    def somebody_changes_its_bounds(self, bounds: tuple[int, int]) -> None:
        self.world.edit(self.scaler, minReplicas=bounds[0], maxReplicas=sum(bounds))
        self.world.settles()

    def _looks(self, cpu_milli: int | None) -> None:
        """A look of the autoscaler at what is so now."""
        self.world.settles()
        before, spec = self._replicas(), self.world.fresh(self.scaler)["spec"]
        self.world.passes(15)
        self.world.settles()
        after = self._replicas()
        if before == 0:
            assert after == 0
            return
        assert spec["minReplicas"] <= after <= spec["maxReplicas"]
        if not spec["minReplicas"] <= before <= spec["maxReplicas"]:
            return
        assert after <= max(2 * before, 4)
        if cpu_milli is None:
            assert after == before
            return
        self._note(before, cpu_milli)
        if after < before:
            since = self.world.now - 300 * SECOND
            assert all(wanted <= after for at, wanted in self.asked_for if at > since)

    def _note(self, before: int, cpu_milli: int) -> None:
        """How many this use asked for, unless it was near enough."""
        ratio = cpu_milli / TARGET
        if abs(ratio - 1) > 0.1:
            self.asked_for.append((self.world.now, min(ceil(ratio * before), before)))

    @invariant()
    def it_says_how_many_it_wants(self) -> None:
        told: Any = self.world.fresh(self.scaler).get("status", {})
        types = [each["type"] for each in told.get("conditions", ())]
        assert len(types) == len(set(types))

    def _replicas(self) -> int:
        return int(self.world.fresh(self.web)["spec"]["replicas"])


TestAutoscalerMachine = AutoscalerMachine.TestCase
TestAutoscalerMachine.settings = settings(max_examples=40, stateful_step_count=15)
