from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.doors.kubernetes.controllers.disruption import REFUSAL, may_evict, sync
from muster.doors.kubernetes.controllers.pods import is_leaving, is_ready, phase
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from properties.kubernetes_world import KubernetesWorld, deployment

AMOUNTS = st.one_of(
    st.integers(min_value=0, max_value=4), st.sampled_from(["0%", "34%", "50%", "100%"])
)


class BudgetMachine(RuleBasedStateMachine):
    """A Deployment that is watched by a budget, and people who evict its pods."""

    @initialize(
        replicas=st.integers(min_value=1, max_value=5),
        bound=st.sampled_from(["minAvailable", "maxUnavailable"]),
        amount=AMOUNTS,
        policy=st.sampled_from(["IfHealthyBudget", "AlwaysAllow"]),
    )
    def is_created(self, replicas: int, bound: str, amount: int | str, policy: str) -> None:
        self.world = KubernetesWorld()
        self.bound = bound
        self.web = self.world.create(deployment(replicas=replicas))
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        self.budget = self.world.create(
            {
                **kind,
                "metadata": {"name": "guard"},
                "spec": {
                    "selector": {"matchLabels": {"app": "web"}},
                    "unhealthyPodEvictionPolicy": policy,
                    bound: amount,
                },
            }
        )
        self.world.settles()

    @rule()
    def all_pods_run(self) -> None:
        for each in self.world.active():
            if not is_ready(each):
                self.world.runs(each)
        self.world.settles()

    @rule(data=st.data(), how=st.sampled_from(["runs", "fails", "is unready", "is deleted"]))
    def something_happens_to_a_pod(self, data: st.DataObject, how: str) -> None:
        active = [each for each in self.world.active() if how != "is unready" or is_ready(each)]
        assume(active)
        chosen = data.draw(st.sampled_from(active))
        match how:
            case "runs":
                self.world.runs(chosen)
            case "fails":
                self.world.ends(chosen, code=1)
            case "is unready":
                self.world.becomes_unready(chosen)
            case _:
                self.world.delete(chosen)
        self.world.settles()

    @rule(data=st.data(), count=st.integers(min_value=1, max_value=4))
    def pods_are_evicted_at_once(self, data: st.DataObject, count: int) -> None:
        """Nobody looks at the budget in between."""
        running = [each for each in self.world.active() if phase(each) == "Running"]
        assume(running)
        chosen = data.draw(st.lists(st.sampled_from(running), max_size=count, unique_by=name_of))
        before, wanted = self._healthy(), self._held()["status"]["desiredHealthy"]
        gone = 0
        for each in chosen:
            answer = may_evict(self.world.fresh(each), self.world.objects, self.world.now)
            if answer.refusal:
                assert answer.refusal == REFUSAL
                assert answer.cause
                continue
            gone += is_ready(each)
            if answer.budget is not None:
                self.world.update_status(answer.budget)
            self.world.delete(each)
        assert not gone or before - gone >= wanted
        self.world.settles()

    @rule(data=st.data())
    def an_eviction_that_was_allowed_comes_late(self, data: st.DataObject) -> None:
        """The pod is still there when the next one looks."""
        running = [each for each in self.world.active() if is_ready(each)]
        assume(running)
        answer = may_evict(data.draw(st.sampled_from(running)), self.world.objects, self.world.now)
        assume(answer.budget is not None)
        assert answer.budget is not None
        self.world.update_status(answer.budget)
        self.world.settles()

    @rule()
    def evicted_pods_stop(self) -> None:
        self.world.all_stop()
        self.world.settles()

    @rule(seconds=st.sampled_from([1, 121]))
    def time_passes(self, seconds: int) -> None:
        self.world.passes(seconds)
        self.world.settles()

    @rule(replicas=st.integers(min_value=0, max_value=5))
    def it_is_scaled(self, replicas: int) -> None:
        self.world.edit(self.web, replicas=replicas)
        self.world.settles()

    @rule(amount=AMOUNTS)
    def it_is_changed(self, amount: int | str) -> None:
        self.world.edit(self.budget, **{self.bound: amount})
        self.world.settles()

    @invariant()
    def it_says_how_many_may_go(self) -> None:
        status = self._held()["status"]
        late = status.get("disruptedPods", {})
        assert status["currentHealthy"] == self._healthy(late)
        spare = status["currentHealthy"] - status["desiredHealthy"]
        assert status["disruptionsAllowed"] == (max(0, spare) if status["expectedPods"] else 0)
        (told,) = status["conditions"]
        assert told["status"] == ("True" if status["disruptionsAllowed"] else "False")

    @invariant()
    def looking_twice_changes_nothing(self) -> None:
        assert sync(self._held(), self.world.objects, self.world.now).changes == ()

    def _held(self) -> JsonObject:
        return self.world.fresh(self.budget)

    def _healthy(self, but: dict[str, str] | None = None) -> int:
        return sum(
            is_ready(each) and not is_leaving(each) and name_of(each) not in (but or {})
            for each in self.world.pods()
        )


TestBudgetMachine = BudgetMachine.TestCase
TestBudgetMachine.settings = settings(max_examples=60, stateful_step_count=20)
