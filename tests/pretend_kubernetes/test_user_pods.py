"""What becomes of pods of Muster's own API on a cluster that does as the test says."""

import base64
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from signal import SIGTERM
from typing import TypeVar

import pytest

from muster.backends.base import OutputQuery, Run, Signal, Stop, Supplies, Supply
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.client import Client
from muster.backends.kubernetes.kubeconfig import access_of
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.manifest import Manner
from muster.backends.kubernetes.pod_manifest import NOT_HERE
from muster.model.cluster import Ability
from muster.model.event import Event, JobEnded, JobStarted, PodSeen
from muster.model.job import Cancelled, Exited
from muster.model.launch import Launch
from muster.model.placement import Allocation
from muster.model.pod import (
    Container,
    Files,
    KeysAsFiles,
    Mount,
    PodGang,
    PodLaunch,
    Restart,
    SourceKind,
    VariablesOf,
    Volume,
)
from muster.model.value import ClusterName, Duration, Instant, UserName, replace
from pretend_kubernetes.api import (
    NODES,
    PODS,
    Json,
    PretendApi,
    Refusal,
    ended,
    node,
    pretend_api,
    runs,
)
from unit.backends.slurm.given import run

T = TypeVar("T")

SECRETS = "/api/v1/secrets"
SOURCE = Files(sources=(KeysAsFiles(kind=SourceKind.CONFIG_MAP, name="cfg"),))
MAIN = Container(name="main", image="i", mounts=(Mount(volume="c", path="/c"),))
POD = PodLaunch(
    namespace="nlp",
    name="train",
    uid="1",
    containers=(MAIN,),
    volumes=(Volume(name="c", source=SOURCE),),
    restart=Restart.NEVER,
    hostname="train",
)
HELD: Supplies = {"configmap/cfg": {"lr": b"0.1"}}


class Place:
    """A backend, and the cluster that it is of."""

    def __init__(self, folder: Path, api: PretendApi, kubeconfig: Path) -> None:
        self.api, self._folder, self._kubeconfig = api, folder, kubeconfig
        self.heard: list[Event] = []
        self.begins(())

    def begins(self, allocations: tuple[Allocation, ...]) -> None:
        link = KubernetesLink(
            name=ClusterName("lab"), site="a1", seal="mine", manner=Manner(namespace="jobs")
        )
        client = Client(access_of(self._kubeconfig))
        wake = threading.Event().set
        self.backend = KubernetesBackend(link, client, self._folder / "lab", wake, clock)
        self.backend.adopt(allocations)

    def until(self, look: Callable[[], T]) -> T:
        deadline = time.monotonic() + 25
        while not (seen := look()):
            assert time.monotonic() < deadline, f"still {seen}: {self.heard} {self.api.asked}"
            self.heard += self.backend.observe(clock())
            time.sleep(0.01)
        return seen

    def pods(self) -> list[Json]:
        """Those that have a node, by their ranks."""
        listed = self.api.answer("GET", PODS, {})
        assert isinstance(listed, dict)
        bound = [each for each in listed["items"] if each["spec"].get("nodeName")]
        return sorted(bound, key=lambda each: each["metadata"]["name"])

    def become(self, rank: int, change: Json) -> None:
        named = self.pods()[rank]["metadata"]
        self.api.become(PODS, named["namespace"], named["name"], change)

    def told(self, kind: type[T]) -> list[T]:
        return [each for each in self.heard if isinstance(each, kind)]

    def reads(self) -> set[bytes]:
        """What the Secrets of all attempts hold."""
        listed = self.api.answer("GET", SECRETS, {})
        assert isinstance(listed, dict)
        data: list[Mapping[str, str]] = [each["data"] for each in listed["items"]]
        return {base64.b64decode(text) for each in data for text in each.values()}


def clock() -> Instant:
    return Instant(time.time_ns() // 1_000_000)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with pretend_api(tmp_path) as (api, kubeconfig):
        for name in ("n1", "n2"):
            api.make(NODES, node(name, 4))
        found = Place(tmp_path, api, kubeconfig)
        yield found
        found.backend.close()


def attempt(supplies: Supplies = HELD, pods: tuple[PodLaunch, ...] = (POD,)) -> Run:
    gang = PodGang(pods=pods) if len(pods) > 1 else None
    where = [(f"n{number}", 1) for number in range(1, 1 + len(pods))]
    made = run(Launch(pod=next(iter(pods)), gang=gang), *where)
    spec = replace(made.job.spec, user=UserName("root"), time_limit=None)
    return replace(made, job=replace(made.job, spec=spec), supplies=supplies)


def test_the_planner_knows_what_a_pod_cannot_have_there(place: Place) -> None:
    can = place.backend.cluster.abilities

    lacking = {each for each in Ability if not getattr(can, each.value)}

    of_scripts = {Ability.COMMANDS, Ability.IMAGE_FILES, Ability.STEPS, Ability.ADOPTION}
    of_scripts.add(Ability.TERMINALS)
    assert lacking - of_scripts == NOT_HERE


def test_a_pod_is_told_before_its_job_has_ended(place: Place) -> None:
    place.backend.do(attempt())
    place.until(place.pods)

    place.become(0, runs())
    place.until(lambda: place.told(JobStarted))
    place.become(0, ended(3))
    place.until(lambda: place.told(JobEnded))

    kinds = [
        type(each) for each in place.heard if isinstance(each, JobStarted | PodSeen | JobEnded)
    ]
    assert kinds == [JobStarted, PodSeen, PodSeen, JobEnded]
    assert place.told(JobEnded)[0].why == Exited(code=3)
    run = place.told(PodSeen)[-1].status.containers[0].ended
    assert run is not None
    assert run.code == 3


def test_a_pod_waits_for_what_it_reads(place: Place) -> None:
    bulk = VariablesOf(kind=SourceKind.CONFIG_MAP, name="cfg")
    reads = replace(POD, containers=(replace(MAIN, env_of=(bulk,)),))
    began = attempt({"configmap/cfg": None}, (reads,))
    place.backend.do(began)
    place.until(lambda: place.told(PodSeen))

    waiting = place.told(PodSeen)[0].status.containers[0]
    assert waiting.reason == "CreateContainerConfigError"
    assert not place.pods()
    place.backend.do(Supply(job=began.job.id, attempt=1, sources=HELD))

    assert place.until(place.pods)
    assert place.reads() == {b"0.1"}


def test_a_pod_that_waits_for_what_it_reads_can_be_cancelled(place: Place) -> None:
    began = attempt({"configmap/cfg": None})
    place.backend.do(began)
    place.until(lambda: place.told(PodSeen))

    why = Cancelled(by=UserName("ann"))
    place.backend.do(Stop(job=began.job.id, attempt=1, why=why, grace=Duration(0)))

    place.until(lambda: place.told(JobEnded))
    assert place.told(JobEnded)[0].why == why
    place.backend.do(Supply(job=began.job.id, attempt=1, sources=HELD))
    place.until(lambda: place.backend.observe(clock()) == ())
    assert not place.pods()


def test_what_a_pod_reads_follows_its_sources_also_after_a_restart(place: Place) -> None:
    began = attempt()
    place.backend.do(began)
    place.until(place.pods)
    place.become(0, runs())
    place.until(lambda: place.told(JobStarted))

    place.backend.do(Supply(job=began.job.id, attempt=1, sources={"configmap/cfg": {"lr": b"0.2"}}))
    place.until(lambda: place.reads() == {b"0.2"})
    place.backend.close()
    place.begins((replace(began.allocation, started_at=Instant(1)),))
    place.backend.do(Supply(job=began.job.id, attempt=1, sources={"configmap/cfg": {"lr": b"0.3"}}))

    place.until(lambda: place.reads() == {b"0.3"})
    place.backend.do(Supply(job=began.job.id, attempt=1, sources={"configmap/cfg": None}))
    place.become(0, ended())
    place.until(lambda: place.told(JobEnded))
    assert place.reads() == {b"0.3"}


def test_a_right_that_is_missing_costs_no_pod(place: Place) -> None:
    began = attempt()
    place.backend.do(began)
    (made,) = place.until(place.pods)
    place.become(0, runs())
    path = f"/api/v1/namespaces/jobs/secrets/{made['spec']['subdomain']}"
    place.api.refuse(Refusal(asked=f"PATCH {path}", code=403))

    place.backend.do(Supply(job=began.job.id, attempt=1, sources={"configmap/cfg": {"lr": b"1"}}))
    place.become(0, ended())

    place.until(lambda: place.told(JobEnded))
    assert place.told(JobEnded)[0].why == Exited(code=0)
    assert place.reads() == {b"0.1"}


def test_one_of_a_gang_that_is_told_to_end_leaves_the_other_alone(place: Place) -> None:
    pods = tuple(replace(POD, hostname=name) for name in ("a", "b"))
    began = attempt(pods=pods)
    place.backend.do(began)
    place.until(lambda: len(place.pods()) == 2)
    for rank in range(2):
        place.become(rank, runs())
    place.until(lambda: place.told(JobStarted))

    place.backend.do(Signal(job=began.job.id, attempt=1, signal=SIGTERM, task=1))
    place.until(lambda: len(place.pods()) == 1)
    place.until(lambda: place.told(PodSeen)[-1].status.over)
    assert place.told(PodSeen)[-1].task == 1
    assert not place.told(JobEnded)
    place.become(0, ended())

    place.until(lambda: place.told(JobEnded))
    assert place.told(JobEnded)[0].why == Exited(code=0)


def test_a_gang_that_loses_a_pod_ends_whole(place: Place) -> None:
    pods = tuple(replace(POD, hostname=name) for name in ("a", "b"))
    place.backend.do(attempt(pods=pods))
    place.until(lambda: len(place.pods()) == 2)
    for rank in range(2):
        place.become(rank, runs())
    place.until(lambda: place.told(JobStarted))

    named = place.pods()[1]["metadata"]
    place.api.remove(PODS, named["namespace"], named["name"])

    place.until(lambda: place.told(JobEnded))
    assert not place.pods()


def test_a_log_is_kept_when_its_pod_has_gone(place: Place) -> None:
    began = attempt()
    place.backend.do(began)
    (made,) = place.until(place.pods)
    place.become(0, ended())
    place.until(lambda: place.told(JobEnded))

    place.api.remove(PODS, "jobs", made["metadata"]["name"])

    query = OutputQuery(job=began.job, launch=began.launch, attempt=1, nodes=(), container="main")
    assert place.backend.output(query).content.startswith(b"said stdout F")
