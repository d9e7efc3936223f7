"""A Muster without GPUs of its own, and a pretended cluster that it gives work to."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from muster.app.adopting import adopter
from muster.app.parts import Muster
from muster.controller.messages import JobQuery, JobView
from muster.doors.config.default import DEFAULT_SITE
from muster.doors.kubernetes.serve.pod_jobs import ROOT
from muster.model.queue import Queue
from muster.model.value import JobId, QueuePath, replace
from muster.settings import KubernetesCluster, Settings
from pretend_kubernetes.api import JOBS, NODES, PODS, Json, PretendApi, node, pretend_api

T = TypeVar("T")

NLP = QueuePath("nlp")
SITE = replace(DEFAULT_SITE, queues={**DEFAULT_SITE.queues, NLP: Queue(path=NLP)})
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"


@contextmanager
def a_place(folder: Path) -> Generator["Place"]:
    """One that has begun, and is stopped in the end."""
    with pretend_api(folder) as (api, kubeconfig):
        for name in ("n1", "n2"):
            api.make(NODES, node(name, 4))
        made = Place(folder, api, kubeconfig)
        try:
            yield made
        finally:
            made.stop()


class Place:
    """A Muster without GPUs of its own, and a cluster of two nodes with four GPUs each."""

    def __init__(self, folder: Path, api: PretendApi, kubeconfig: Path) -> None:
        self.folder, self.api = folder, api
        cluster = KubernetesCluster(
            name="lab", kubeconfig=str(kubeconfig), image="train", adopts={"nlp": "nlp:ada"}
        )
        self._settings = Settings(
            store=f"sqlite:///{folder}/db", nodes=1, gpus="0", clusters=(cluster,)
        )
        self.start()

    def start(self) -> None:
        self.muster = Muster(self.folder, self._settings, SITE)
        asked, before = f"GET {NODES}", self.api.times(f"GET {NODES}")
        self.muster.start()
        # As with a daemon, which has more to do first: the cluster is being taken over by then.
        self.until(lambda: self.api.times(asked) > before)
        self._adopter = adopter(self._settings.clusters, self.muster)
        self.muster.accompany(self._adopter)
        self.until(lambda: [each for each in self.muster.journal.record.nodes if each in "n1n2"])

    def stop(self) -> None:
        self._adopter.close()
        self.muster.close()

    def until(self, look: Callable[[], T]) -> T:
        deadline = time.monotonic() + 25
        while not (seen := look()):
            assert time.monotonic() < deadline, f"still {seen}: {self.api.asked[-20:]}"
            time.sleep(0.02)
        return seen

    def makes(self, *pods: Json) -> None:
        for each in pods:
            self.api.make(PODS, each)

    def node_of(self, name: str, namespace: str = "nlp") -> str:
        found = self.api.see(PODS, namespace, name)
        return "" if found is None else str(found["spec"].get("nodeName", ""))

    def bound(self, *names: str) -> list[str]:
        def nodes() -> list[str]:
            found = [*map(self.node_of, names)]
            return found if all(found) else []

        return self.until(nodes)

    def job(self, name: str) -> JobView:
        """Of a pod that has a node: it says which job it is."""
        found = self.api.see(PODS, "nlp", name)
        assert found is not None
        id = JobId(int(found["metadata"]["annotations"]["muster.io/job"]))
        return self.muster.service.queries.jobs.detail(ROOT, id).view

    def jobs(self) -> list[JobView]:
        queries = self.muster.service.queries.jobs
        return [queries.view(each) for each in queries.matching(ROOT, JobQuery())]

    def clears_up(self) -> None:
        for kind in (JOBS, PODS, GROUPS):
            self.api.clear(kind)
        self.until(lambda: not self.jobs())
        self.muster.service.apply(ROOT, lambda _: SITE).result()

    def told(self, name: str) -> str:
        found = self.api.see(PODS, "nlp", name)
        conditions: list[Json] = (found or {}).get("status", {}).get("conditions") or []
        return "".join(str(each.get("message", "")) for each in conditions)
