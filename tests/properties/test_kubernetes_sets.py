from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.doors.kubernetes.controllers.pods import is_leaving, is_ready
from muster.doors.kubernetes.controllers.stateful_sets import ordinal, sync
from muster.doors.kubernetes.objects.value import JsonObject, name_of, part, uid_of
from properties.kubernetes_world import KubernetesWorld, template

IMAGES = st.sampled_from(["one", "two", "three"])


class StatefulSetMachine(RuleBasedStateMachine):
    """A StatefulSet whose pods come, go and change in any order."""

    @initialize(
        replicas=st.integers(min_value=0, max_value=4),
        policy=st.sampled_from(["OrderedReady", "Parallel"]),
        partition=st.integers(min_value=0, max_value=2),
    )
    def is_created(self, replicas: int, policy: str, partition: int) -> None:
        self.world = KubernetesWorld()
        self.partition = partition
        self.known: set[str] = set()
        self.is_ordered = policy == "OrderedReady"
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        spec: JsonObject = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "db"}},
            "template": template("one", app="db"),
            "podManagementPolicy": policy,
            "updateStrategy": rolling,
        }
        kind = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}}
        self.set = self.world.create({**kind, "spec": spec})
        self.world.settles()

    @rule(data=st.data())
    def a_pod_runs(self, data: st.DataObject) -> None:
        waiting = [each for each in self.world.active() if not is_ready(each)]
        assume(waiting)
        self.world.runs(data.draw(st.sampled_from(waiting)))
        self.world.settles()

    @rule(data=st.data())
    def a_pod_fails_or_is_deleted(self, data: st.DataObject) -> None:
        active = self.world.active()
        assume(active)
        chosen = data.draw(st.sampled_from(active))
        if data.draw(st.booleans()):
            self.world.ends(chosen, code=1)
        else:
            self.world.delete(chosen)
        self.world.settles()

    @rule()
    def deleted_pods_stop(self) -> None:
        self.world.all_stop()
        self.world.settles()

    @rule(image=IMAGES, replicas=st.integers(min_value=0, max_value=4))
    def it_changes(self, image: str, replicas: int) -> None:
        self.set = self.world.edit(self.set, template=template(image, app="db"), replicas=replicas)
        self.world.settles()

    @rule()
    def it_converges(self) -> None:
        for _ in range(40):
            waiting = [each for each in self.world.active() if not is_ready(each)]
            leaving = [each for each in self.world.pods() if is_leaving(each)]
            if not waiting and not leaving:
                break
            for pod in waiting:
                self.world.runs(pod)
            self.world.all_stop()
            self.world.settles()
        held = self.world.fresh(self.set)
        wanted: int = held["spec"]["replicas"]
        pods = sorted(self.world.pods(), key=ordinal)
        assert [ordinal(each) for each in pods] == list(range(wanted))
        newest = held["spec"]["template"]["spec"]["containers"][0]["image"]
        images = [each["spec"]["containers"][0]["image"] for each in pods]
        assert set(images[self.partition :]) <= {newest}
        assert part(held, "status").get("readyReplicas", 0) == wanted

    @invariant()
    def no_two_pods_have_one_name(self) -> None:
        names = [name_of(each) for each in self.world.pods()]
        assert len(names) == len(set(names))

    @invariant()
    def in_order_a_pod_is_created_when_those_before_it_are_ready(self) -> None:
        pods = self.world.pods()
        fresh = [each for each in pods if uid_of(each) not in self.known]
        self.known |= {uid_of(each) for each in pods}
        for each in fresh if self.is_ordered else ():
            before = [one for one in pods if ordinal(one) < ordinal(each)]
            assert all(is_ready(one) for one in before)

    @invariant()
    def looking_twice_changes_nothing(self) -> None:
        held = self.world.fresh(self.set)
        assert sync(held, self.world.objects, self.world.now).changes == ()


TestStatefulSetMachine = StatefulSetMachine.TestCase
TestStatefulSetMachine.settings = settings(max_examples=60, stateful_step_count=20)
