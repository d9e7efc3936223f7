"""One queue over two clusters: a real Slurm, and a Kubernetes whose kubelets are this test."""

from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.slurm.configuring import Look
from bench.slurm.lab import Lab
from contracts.backends.slurm_engine import slurm_lab
from live.house import Process, ended, folder, until
from muster.api.jobs import JobDocument
from muster.settings import KubernetesCluster, Settings, SlurmCluster
from pretend_kubernetes.api import NODES, PODS, Json, PretendApi, node, pod, pretend_api

pytestmark = pytest.mark.slow

GPUS_EACH = 4
POOLS = """
classes:
  normal: {priority: 100}
  tuning: {priority: 50}
queues:
  default: {}
  nlp: {quotas: [{limit: 6}]}
pools:
  aks: {cluster: aks, gpu_hour: 4}
  gpu: {cluster: gke, gpu_hour: %s}
"""
BURSTS = """
policy:
  bursts:
    - {preferred: aks, to: gke, classes: [tuning], over_gpu_hours: 4, transfer: 6m}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with slurm_lab(look=Look(settings={"MinJobAge": 300}), nodes=2) as found:
        yield found


class Site:
    """A Muster without GPUs: `aks` is one node of Kubernetes, `gke` two nodes of Slurm."""

    def __init__(self, place: Path, lab: Lab, api: PretendApi, kubeconfig: Path) -> None:
        self.place, self.api = place, api
        clusters = (
            KubernetesCluster(name="aks", kubeconfig=str(kubeconfig), image="python"),
            SlurmCluster(name="gke", conf=lab.layout.conf, order=2),
        )
        self.process = Process(
            place / "home", Settings(mail_program="none", nodes=1, gpus="0", clusters=clusters)
        )

    def rules(self, text: str) -> None:
        with self.process.client() as client:
            client.apply(text)

    def submits(self, count: int = 1, **asked: Any) -> list[int]:
        text = f"until test -e {self.place}/go; do sleep 0.1; done"
        with self.process.client() as client:
            fields: dict[str, Any] = {"workdir": "/", "stdout": "/dev/null", "gpus": 1} | asked
            return [client.submit(["sh", "-c", text], **fields).id for _ in range(count)]

    def jobs(self) -> list[JobDocument]:
        """All that are there, after kubelets did what they do."""
        for (namespace, name), each in self._pods().items():
            phase = each.get("status", {}).get("phase", "Pending")
            if each["spec"].get("nodeName") and phase == "Pending":
                self.api.become(PODS, namespace, name, _state(each, "Running"))
            elif phase == "Running" and (self.place / "go").exists():
                self.api.become(PODS, namespace, name, _state(each, "Succeeded"))
        with self.process.client() as client:
            return list(client.all_jobs())

    def where(self) -> Counter[str]:
        """How many jobs run on each cluster, and how many wait."""
        with self.process.client() as client:
            clusters = {each.id: each.cluster for each in client.nodes()}
        found = self.jobs()
        running = (each for each in found if each.state == "running")
        waiting = sum(each.state == "pending" for each in found)
        return Counter(clusters[each.nodes[0]] for each in running) + Counter(waiting=waiting)

    def until_where(self, **wanted: int) -> None:
        until(self.where, lambda found: found == Counter(wanted))

    def why(self, job: int) -> str:
        with self.process.client() as client:
            return client.explain(job).text

    def end(self) -> list[JobDocument]:
        (self.place / "go").touch()
        live = [each.id for each in self.jobs()]
        until(self.jobs, lambda found: not found)
        with self.process.client() as client:
            return ended(client, live)

    def _pods(self) -> dict[tuple[str, str], Json]:
        listed = self.api.answer("GET", PODS, {})
        assert isinstance(listed, dict)
        pods: list[Json] = listed["items"]
        return {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in pods}


def _state(pod: Json, phase: str) -> Json:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    state: Json = {"running": {"startedAt": now}}
    if phase == "Succeeded":
        state = {"terminated": {"exitCode": 0, "startedAt": now, "finishedAt": now}}
    names = [each["name"] for each in pod["spec"]["containers"]]
    statuses = [{"name": name, "state": state} for name in names]
    return {"status": {"phase": phase, "containerStatuses": statuses}}


@pytest.fixture
def here(lab: Lab) -> Iterator[Site]:
    with folder() as place, _site(place, lab) as found:
        yield found


@contextmanager
def _site(place: Path, lab: Lab) -> Generator[Site]:
    place.chmod(0o755)
    with pretend_api(place) as (api, kubeconfig):
        api.make(NODES, node("aks1", GPUS_EACH))
        found = Site(place, lab, api, kubeconfig)
        found.process.start()
        try:
            until(lambda: _gpus(found), lambda count: count == 3 * GPUS_EACH)
            yield found
        finally:
            found.end()
            found.process.stop()


def _gpus(here: Site) -> int:
    with here.process.client() as client:
        return sum(each.gpus for each in client.nodes())


def test_one_quota_spans_a_slurm_and_a_kubernetes_cluster(here: Site) -> None:
    here.rules(POOLS % 4)

    jobs = here.submits(8, queue="nlp")

    here.until_where(aks=4, gke=2, waiting=2)
    assert "nlp" in here.why(jobs[-1])
    assert {each.state for each in here.end()} == {"completed"}


def test_a_gang_waits_until_one_cluster_holds_all_of_it(here: Site) -> None:
    here.rules(POOLS % 4)
    first = here.submits(2, gpus=3)
    here.until_where(aks=1, gke=1)

    here.submits(gpus=GPUS_EACH, tasks=2)

    here.until_where(aks=1, gke=1, waiting=1)
    assert {each.state for each in here.end()} == {"completed"}
    assert len(first) == 2


def test_r231_when_aks_is_full_tuning_jobs_burst_to_gke_under_the_70_percent_rule(
    here: Site,
) -> None:
    here.rules(POOLS % 2 + BURSTS)
    here.submits(gpus=GPUS_EACH, time="4h", pools=("aks",))
    here.until_where(aks=1)

    # It waits for its turn on AKS, and is of no class that may move.
    training = here.submits(gpus=GPUS_EACH, time="2h")
    here.until_where(aks=1, waiting=1)
    here.submits(3, time="1h", job_class="tuning")

    here.until_where(aks=1, gke=3, waiting=1)
    assert "only jobs of class tuning do" in here.why(training[0])
    assert {each.state for each in here.end()} == {"completed"}


def test_nothing_bursts_where_transfer_makes_it_too_dear(here: Site) -> None:
    here.rules(POOLS % "2.6" + BURSTS)
    here.submits(gpus=GPUS_EACH, time="4h", pools=("aks",))
    here.until_where(aks=1)
    here.submits(gpus=GPUS_EACH, time="2h")

    # 2.60 are 65 %, and with six more minutes for the transfer 71.5 %.
    trial = here.submits(time="1h", job_class="tuning")

    here.until_where(aks=1, waiting=2)
    until(lambda: here.why(trial[0]), lambda text: "more than 70% of 4.00" in text)
    assert {each.state for each in here.end()} == {"completed"}


def test_what_others_have_on_one_cluster_sends_jobs_to_the_other(here: Site) -> None:
    here.api.make(PODS, pod("others", 4, spec={"schedulerName": "x", "nodeName": "aks1"}))
    until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH)

    here.submits(2)

    here.until_where(gke=2)
    here.api.remove(PODS, "nlp", "others")
    assert {each.state for each in here.end()} == {"completed"}
