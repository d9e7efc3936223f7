from typing import Any

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.doors.kubernetes.controllers.daemon_sets import HASH, sync
from muster.doors.kubernetes.controllers.pods import is_finished, is_leaving, is_ready
from muster.doors.kubernetes.objects.kinds import NODE
from muster.doors.kubernetes.objects.value import JsonObject, labels_of, name_of, part
from properties.kubernetes_world import KubernetesWorld, template
from unit.doors.kubernetes.controllers.test_daemon_sets import daemon_set, node, target

NAMES = st.sampled_from(["n1", "n2", "n3", "n4"])
IMAGES = st.sampled_from(["one", "two"])
EFFECTS = st.sampled_from(["", "NoSchedule", "NoExecute"])


class DaemonSetMachine(RuleBasedStateMachine):
    """A DaemonSet whose nodes and pods come, go and change in any order."""

    @initialize(
        names=st.sets(NAMES, min_size=1),
        surge=st.booleans(),
        at_once=st.integers(min_value=1, max_value=2),
    )
    def is_created(self, names: set[str], surge: bool, at_once: int) -> None:
        self.world = KubernetesWorld()
        self.at_once = 0 if surge else at_once
        self.surge = at_once if surge else 0
        for each in sorted(names):
            self.world.create(node(each))
        rolling = {"maxUnavailable": self.at_once, "maxSurge": self.surge}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        self.set = self.world.create(daemon_set(updateStrategy=strategy))
        self.world.settles()

    @rule(name=NAMES)
    def a_node_comes(self, name: str) -> None:
        assume(name not in self._nodes())
        self.world.create(node(name))
        self.world.settles()

    @rule(name=NAMES)
    def a_node_goes(self, name: str) -> None:
        assume(name in self._nodes())
        self.world.delete(self._nodes()[name])
        self.world.settles()

    @rule(name=NAMES, effect=EFFECTS)
    def a_node_is_tainted_or_no_longer(self, name: str, effect: str) -> None:
        assume(name in self._nodes())
        taints = [{"key": "broken", "effect": effect}] if effect else []
        self.world.update({**self._nodes()[name], "spec": {"taints": taints}})
        self.world.settles()

    @rule(data=st.data())
    def a_pod_runs(self, data: st.DataObject) -> None:
        waiting = [each for each in self.world.active() if not is_ready(each)]
        assume(waiting)
        chosen = data.draw(st.sampled_from(waiting))
        self.world.runs(chosen, target(chosen))
        self.world.settles()

    @rule(data=st.data(), how=st.sampled_from(["fails", "ends", "is deleted", "is unready"]))
    def a_pod_is_lost(self, data: st.DataObject, how: str) -> None:
        active = [each for each in self.world.active() if how != "is unready" or is_ready(each)]
        assume(active)
        chosen = data.draw(st.sampled_from(active))
        match how:
            case "is deleted":
                self.world.delete(chosen)
            case "is unready":
                self.world.becomes_unready(chosen)
            case _:
                self.world.ends(chosen, code=how == "fails")
        self.world.settles()

    @rule(seconds=st.sampled_from([1, 11]))
    def time_passes(self, seconds: int) -> None:
        self.world.passes(seconds)
        self.world.settles()

    @rule()
    def deleted_pods_stop(self) -> None:
        self.world.all_stop()
        self.world.settles()

    @rule(image=IMAGES)
    def it_is_rolled_out(self, image: str) -> None:
        wanted = {name for name, each in self._nodes().items() if not _taints(each)}
        served = wanted & self._served()
        self.world.edit(self.set, template=template(image, app="agent"))
        self.world.settles()
        # With a surge, the new ones come before the old ones go.
        most_away = max(self.at_once, len(wanted) - len(served))
        assert len(wanted - self._served()) <= most_away

    @rule()
    def it_converges(self) -> None:
        for _ in range(20):
            for each in self.world.active():
                if not is_ready(each):
                    self.world.runs(each, target(each))
            self.world.all_stop()
            self.world.passes(11)
            self.world.settles()
        wanted = sorted(name for name, each in self._nodes().items() if not _taints(each))
        there = [each for each in self.world.pods() if target(each) in wanted]
        assert sorted(map(target, there)) == wanted
        status = self._held()["status"]
        assert status["desiredNumberScheduled"] == len(wanted)
        assert status["numberReady"] == status.get("updatedNumberScheduled", 0) == len(wanted)

    @invariant()
    def a_node_has_one_pod_or_an_old_and_a_new_one(self) -> None:
        for name in self._nodes():
            live = [each for each in self.world.active() if target(each) == name]
            assert len(live) <= (2 if self.surge else 1)
            assert len({labels_of(each)[HASH] for each in live}) == len(live)

    @invariant()
    def no_pod_stays_where_it_may_not(self) -> None:
        nodes = self._nodes()
        for each in self.world.active():
            taints = _taints(nodes[target(each)])
            assert not any(taint["effect"] == "NoExecute" for taint in taints)

    @invariant()
    def it_says_what_there_is(self) -> None:
        status = self._held()["status"]
        wanted = {name for name, each in self._nodes().items() if not _taints(each)}
        live = {target(each) for each in self.world.pods() if not is_finished(each)}
        assert status["desiredNumberScheduled"] == len(wanted)
        assert status["currentNumberScheduled"] == len(wanted & live)
        assert status["numberMisscheduled"] == len((self._nodes().keys() - wanted) & live)
        assert status.get("numberUnavailable", 0) + status.get("numberAvailable", 0) == len(wanted)

    @invariant()
    def looking_twice_changes_nothing(self) -> None:
        assert sync(self._held(), self.world.objects, self.world.now).changes == ()

    def _held(self) -> JsonObject:
        return self.world.fresh(self.set)

    def _nodes(self) -> dict[str, JsonObject]:
        return {name_of(each): each for each in self.world.of(NODE)}

    def _served(self) -> set[str]:
        """Nodes with a pod that is ready and stays."""
        return {target(e) for e in self.world.pods() if is_ready(e) and not is_leaving(e)}


def _taints(held: JsonObject) -> list[dict[str, Any]]:
    return list(part(held, "spec").get("taints") or ())


TestDaemonSetMachine = DaemonSetMachine.TestCase
TestDaemonSetMachine.settings = settings(max_examples=60, stateful_step_count=20)
