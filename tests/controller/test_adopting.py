"""Pods that users make on another cluster are jobs: one queue, one quota, and nodes for them."""

from collections.abc import Iterator

import pytest

from muster.doors.kubernetes.serve.pod_jobs import ROOT
from muster.model.job import JobState
from muster.model.queue import Queue, Quota
from muster.model.value import replace
from pretend_kubernetes.api import (
    JOBS,
    PODS,
    Json,
    ended,
    pod,
    runs,
)
from pretend_kubernetes.place import GROUPS, NLP, Place, a_place


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with a_place(tmp_path_factory.mktemp("adopting")) as made:
        yield made


@pytest.fixture
def place(shared_place: Place) -> Iterator[Place]:
    """Nothing is there before and after."""
    yield shared_place
    shared_place.clears_up()


def test_a_pod_is_a_job_that_ends_as_it_does(place: Place) -> None:
    place.makes(pod("train", 2))
    assert place.bound("train")[0] in {"n1", "n2"}
    place.api.become(PODS, "nlp", "train", runs())

    place.until(lambda: place.job("train").job.state is JobState.RUNNING)
    spec = place.job("train").job.spec
    assert (spec.user, spec.queue, spec.name) == ("ada", "nlp", "train")

    place.api.become(PODS, "nlp", "train", ended(3))
    place.until(lambda: place.job("train").job.state is JobState.FAILED)
    assert place.api.see(PODS, "nlp", "train") is not None


def test_pods_of_others_are_left_alone(place: Place) -> None:
    place.makes(
        pod("elsewhere", namespace="other"),
        pod("theirs", spec={"schedulerName": "default-scheduler"}),
        pod("gated", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}),
        pod("ours"),
    )

    place.bound("ours")

    assert not place.node_of("elsewhere", "other")
    assert not any(map(place.node_of, ("theirs", "gated")))
    assert [each.job.spec.name for each in place.jobs()] == ["ours"]


def test_a_gate_of_ours_is_opened_when_it_starts(place: Place) -> None:
    place.makes(pod("train", spec={"schedulingGates": [{"name": "muster.io/admission"}]}))

    place.bound("train")

    found = place.api.see(PODS, "nlp", "train")
    assert found is not None
    assert "schedulingGates" not in found["spec"]


def test_a_gang_starts_whole_or_not_at_all(place: Place) -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "big"}
    place.api.make(
        GROUPS, {"metadata": {"namespace": "nlp", "name": "big"}, "spec": {"minMember": 3}}
    )
    gang = [pod(f"big-{number}", 2, metadata={"labels": labels}) for number in range(3)]
    place.makes(*gang[:2])
    place.until(lambda: "waits for 1 more of 3" in place.told("big-0"))
    assert not place.jobs()

    place.makes(gang[2])

    nodes = place.bound("big-0", "big-1", "big-2")
    assert len(set(nodes)) == 2
    assert len({place.job(f"big-{number}").job.id for number in range(3)}) == 1


def test_a_quota_holds_pods_back_and_they_are_told_why(place: Place) -> None:
    queue = Queue(path=NLP, quotas=(Quota(limit=4_000),))
    site = place.muster.service.queries.site()
    place.muster.service.apply(
        ROOT, lambda _: replace(site, queues={**site.queues, NLP: queue})
    ).result()
    place.makes(pod("first", 4))
    place.bound("first")

    place.makes(pod("second", 1))

    place.until(lambda: "waits" in place.told("second"))
    assert not place.node_of("second")
    place.api.become(PODS, "nlp", "first", runs())
    place.api.become(PODS, "nlp", "first", ended())
    place.bound("second")


def test_a_pod_that_is_deleted_takes_its_waiting_job_along(place: Place) -> None:
    place.makes(pod("large", 4), pod("larger", 4))
    place.bound("large", "larger")
    place.makes(pod("late", 1))
    waiting = place.until(lambda: [each for each in place.jobs() if each.job.spec.name == "late"])

    place.api.remove(PODS, "nlp", "late")

    place.until(lambda: all(each.job.id != waiting[0].job.id for each in place.jobs()))


def test_who_cancels_the_job_means_the_pod(place: Place) -> None:
    place.makes(pod("large", 4), pod("larger", 4))
    place.bound("large", "larger")
    place.makes(pod("late", 1))
    late = place.until(lambda: [each for each in place.jobs() if each.job.spec.name == "late"])

    place.muster.service.cancel(ROOT, (late[0].job.id, place.job("large").job.id)).result()

    place.until(lambda: place.api.see(PODS, "nlp", "late") is None)
    place.until(lambda: place.api.see(PODS, "nlp", "large") is None)
    assert place.node_of("larger")


def test_a_muster_that_begins_again_knows_its_pods(place: Place) -> None:
    place.makes(pod("long", 4), pod("other", 4))
    place.bound("long", "other")
    place.makes(pod("waits", 4))
    place.api.become(PODS, "nlp", "long", runs())
    place.until(lambda: place.job("long").job.state is JobState.RUNNING)
    place.until(lambda: len(place.jobs()) == 3)
    before = {each.job.id for each in place.jobs()}

    place.stop()
    place.start()

    place.api.become(PODS, "nlp", "long", ended())
    place.bound("waits")
    assert {each.job.id for each in place.jobs()} <= before
    assert place.job("long").job.state is JobState.COMPLETED


def test_a_job_that_stands_in_a_queue_goes_on_when_its_pods_are_let_in(place: Place) -> None:
    template: Json = {"metadata": {}, "spec": pod("x")["spec"]}
    place.api.make(
        JOBS,
        {
            "metadata": {
                "namespace": "nlp",
                "name": "sweep",
                "labels": {"kueue.x-k8s.io/queue-name": "nlp"},
            },
            "spec": {"suspend": True, "parallelism": 2, "completions": 4, "template": template},
        },
    )

    def spec() -> Json:
        found = place.api.see(JOBS, "nlp", "sweep")
        assert found is not None
        return found["spec"]

    place.until(lambda: spec()["suspend"] is False)
    metadata = spec()["template"]["metadata"]
    assert metadata["annotations"]["muster.io/gang-size"] == "2"
    owner = [{"kind": "Job", "name": "sweep", "uid": "x", "controller": True}]
    place.makes(
        *(
            pod(f"sweep-{number}", 4, metadata={**metadata, "ownerReferences": owner})
            for number in range(2)
        )
    )
    assert len(set(place.bound("sweep-0", "sweep-1"))) == 2
    for number in range(2):
        place.api.become(PODS, "nlp", f"sweep-{number}", runs())
    job = place.job("sweep-0").job.id
    place.until(lambda: place.job("sweep-0").job.state is JobState.RUNNING)

    place.muster.service.cancel(ROOT, (job,)).result()

    place.until(lambda: spec()["suspend"] is True)
    place.until(lambda: place.api.see(PODS, "nlp", "sweep-0") is None)
    found = place.api.see(JOBS, "nlp", "sweep")
    assert found is not None
    assert found["metadata"]["annotations"]["muster.io/hold"] == "true"
