from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from muster.doors.kubernetes.controllers import replica_sets
from muster.doors.kubernetes.controllers.deployments import sync as deployments
from muster.doors.kubernetes.controllers.deployments.revisions import (
    current,
    max_surge,
    max_unavailable,
    revision,
)
from muster.doors.kubernetes.controllers.pods import is_leaving, is_ready
from muster.doors.kubernetes.objects.kinds import REPLICA_SET
from muster.doors.kubernetes.objects.value import part
from properties.kubernetes_world import KubernetesWorld, deployment, template

BOUNDS = st.sampled_from([0, 1, 2, "25%", "50%", "100%"])
IMAGES = st.sampled_from(["one", "two", "three"])


class RolloutMachine(RuleBasedStateMachine):
    """A Deployment whose template and size change while its pods come and go."""

    @initialize(
        replicas=st.integers(min_value=0, max_value=6),
        surge=BOUNDS,
        unavailable=BOUNDS,
        strategy=st.sampled_from(["RollingUpdate", "RollingUpdate", "Recreate"]),
    )
    def is_created(
        self, replicas: int, surge: int | str, unavailable: int | str, strategy: str
    ) -> None:
        bounds = {"maxSurge": surge, "maxUnavailable": unavailable}
        wanted = {"type": strategy}
        if strategy == "RollingUpdate":
            wanted["rollingUpdate"] = bounds  # pyright: ignore[reportArgumentType] - as JSON is
        self.world = KubernetesWorld()
        self.deployment = self.world.create(
            deployment(replicas=replicas, strategy=wanted, revisionHistoryLimit=2)
        )
        # Pods that were there before the last change of size are not this rollout's doing.
        self.most = self._most()
        self.least = 0
        self.world.settles()

    @rule(data=st.data())
    def a_pod_runs(self, data: st.DataObject) -> None:
        waiting = [p for p in self.world.active() if not is_ready(p)]
        assume(waiting)
        self.world.runs(data.draw(st.sampled_from(waiting)))
        self.world.settles()

    @rule(data=st.data())
    def a_pod_fails_or_is_deleted(self, data: st.DataObject) -> None:
        active = self.world.active()
        assume(active)
        chosen = data.draw(st.sampled_from(active))
        self.least = 0
        if data.draw(st.booleans()):
            self.world.ends(chosen, code=1)
        else:
            self.world.delete(chosen)
        self.world.settles()

    @rule()
    def deleted_pods_stop(self) -> None:
        self.world.all_stop()
        self.world.settles()

    @rule(image=IMAGES)
    def its_template_changes(self, image: str) -> None:
        self.deployment = self.world.edit(self.deployment, template=template(image))
        self.world.settles()

    @rule(replicas=st.integers(min_value=0, max_value=6))
    def its_size_changes(self, replicas: int) -> None:
        self.deployment = self.world.edit(self.deployment, replicas=replicas)
        self.most = max(self._most(), len(self.world.active()))
        self.least = 0
        self.world.settles()

    @rule(paused=st.booleans())
    def it_is_paused_or_resumed(self, paused: bool) -> None:
        self.deployment = self.world.edit(self.deployment, paused=paused)
        self.world.settles()

    @precondition(lambda self: not self.deployment["spec"].get("paused"))
    @rule()
    def it_converges(self) -> None:
        for _ in range(30):
            waiting = [pod for pod in self.world.active() if not is_ready(pod)]
            leaving = [pod for pod in self.world.pods() if is_leaving(pod)]
            if not waiting and not leaving:
                break
            for pod in waiting:
                self.world.runs(pod)
            self.world.all_stop()
            self.world.settles()
        held = self.world.fresh(self.deployment)
        wanted = held["spec"]["replicas"]
        newest = current(held, self.world.of(REPLICA_SET))
        assert newest is not None
        assert len(self.world.active(newest)) == len(self.world.active()) == wanted
        assert part(held, "status").get("availableReplicas", 0) == wanted
        assert part(held, "status").get("updatedReplicas", 0) == wanted
        assert revision(newest) == max(map(revision, self.world.of(REPLICA_SET)))
        assert len(self.world.of(REPLICA_SET)) <= 3
        self.most = self._most()
        self.least = wanted - max_unavailable(held)

    @invariant()
    def never_more_pods_than_the_surge_allows(self) -> None:
        assert len(self.world.active()) <= max(self.most, self._most())

    @invariant()
    def never_fewer_than_must_be_available(self) -> None:
        if self.deployment["spec"]["strategy"]["type"] == "RollingUpdate":
            assert sum(map(is_ready, self.world.active())) >= self.least

    @invariant()
    def looking_twice_changes_nothing(self) -> None:
        objects, now = self.world.objects, self.world.now
        held = self.world.fresh(self.deployment)
        assert deployments.sync(held, objects, now).changes == ()
        for each in self.world.of(REPLICA_SET):
            assert replica_sets.sync(each, objects, now).changes == ()

    def _most(self) -> int:
        held = self.world.fresh(self.deployment)
        return held["spec"]["replicas"] + max_surge(held)


TestRolloutMachine = RolloutMachine.TestCase
TestRolloutMachine.settings = settings(max_examples=60, stateful_step_count=20)
