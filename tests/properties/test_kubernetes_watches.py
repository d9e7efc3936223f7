from typing import Any

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.doors.kubernetes.controllers.autoscalers.readings import NoReadings
from muster.doors.kubernetes.controllers.changes import Emit
from muster.doors.kubernetes.controllers.pods import is_active, is_finished, is_leaving
from muster.doors.kubernetes.controllers.work import Surroundings, WorkSet, controllers
from muster.doors.kubernetes.objects.value import JsonObject, name_of
from properties.kubernetes_world import KubernetesWorld, deployment, job, template


class WatchesMachine(RuleBasedStateMachine):
    """One of each workload; whatever happens, nothing that concerns a controller escapes it."""

    @initialize()
    def the_world_begins(self) -> None:
        self.world = KubernetesWorld()
        for name in ("n1", "n2"):
            self.world.create(object_of("v1", "Node", name, spec={}, namespace=""))
        self.owners = [self.world.create(each) for each in workloads()]
        for each in watchers():
            self.world.create(each)
        self.world.settles()

    @rule(data=st.data(), what=st.sampled_from(["runs", "ends", "fails", "is deleted"]))
    def a_pod(self, data: st.DataObject, what: str) -> None:
        pods = [each for each in self.world.pods() if is_active(each)]
        assume(pods)
        pod = data.draw(st.sampled_from(pods), label="pod")
        match what:
            case "runs":
                self.world.runs(pod)
            case "ends":
                self.world.ends(pod)
            case "fails":
                self.world.ends(pod, code=1)
            case _:
                self.world.delete(pod)
        self.world.settles()

    @rule()
    def deleted_pods_stop(self) -> None:
        self.world.all_stop()
        self.world.settles()

    @rule(seconds=st.sampled_from([1, 15, 60, 700]))
    def time_passes(self, seconds: int) -> None:
        self.world.passes(seconds)
        self.world.settles()

    @rule(data=st.data(), replicas=st.integers(min_value=0, max_value=3))
    def a_size_changes(self, data: st.DataObject, replicas: int) -> None:
        there = [e for e in self.owners if self.world.is_there(e) and "replicas" in e["spec"]]
        assume(there)
        self.world.edit(data.draw(st.sampled_from(there)), replicas=replicas)
        self.world.settles()

    @rule(data=st.data(), how=st.sampled_from(["Background", "Foreground", "Orphan"]))
    def a_workload_is_deleted(self, data: st.DataObject, how: str) -> None:
        there = [e for e in self.owners if self.world.is_there(e) and not is_leaving(e)]
        assume(len(there) > 3)
        self.world.delete(data.draw(st.sampled_from(there)), how)
        self.world.settles()

    @invariant()
    def whoever_looks_at_everything_finds_nothing_to_do(self) -> None:
        around = Surroundings(readings=NoReadings(), pod_usage=usage, root_ca="PEM")
        afresh = WorkSet(controllers(around))
        for each in self.world.objects.all():
            afresh.changed(each, self.world.objects)
        while (item := afresh.take(self.world.now)) is not None:
            outcome = afresh.outcome(item, self.world.objects, self.world.now)
            wanted = outcome.changes if outcome else ()
            real = [each for each in wanted if not isinstance(each, Emit)]
            assert real == [], f"{item.controller} forgot {item.kind} {item.name}"


def workloads() -> list[JsonObject]:
    labels = {"app": "db"}
    of_db = {"selector": {"matchLabels": labels}, "template": template("one", **labels)}
    of_agent = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": template("one", app="agent"),
    }
    tick: JsonObject = {
        "schedule": "* * * * *",
        "concurrencyPolicy": "Replace",
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": job()["spec"]},
    }
    return [
        job("batch", parallelism=2, completions=3),
        deployment("web", replicas=2, minReadySeconds=5),
        object_of("apps/v1", "StatefulSet", "db", spec={"replicas": 2, **of_db}),
        object_of("apps/v1", "DaemonSet", "agent", spec=of_agent),
        object_of("batch/v1", "CronJob", "tick", spec=tick),
    ]


def watchers() -> list[JsonObject]:
    selector = {"matchLabels": {"app": "web"}}
    ports = [{"port": 80}]
    return [
        object_of(
            "policy/v1",
            "PodDisruptionBudget",
            "guard",
            spec={"selector": selector, "minAvailable": 1},
        ),
        object_of("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": ports}),
        object_of("v1", "ResourceQuota", "team", spec={"hard": {"pods": "9", "services": "2"}}),
    ]


def object_of(version: str, kind: str, name: str, **rest: Any) -> JsonObject:
    space = rest.pop("namespace", "default")
    about = {"name": name, "namespace": space}
    return {"apiVersion": version, "kind": kind, "metadata": about, **rest}


def usage(_: JsonObject, pods: Any) -> dict[str, str]:
    return {"pods": str(len([each for each in pods if not is_finished(each) and name_of(each)]))}


TestWatchesMachine = WatchesMachine.TestCase
TestWatchesMachine.settings = settings(max_examples=25, stateful_step_count=15)
