"""What API servers answer on bad days costs no job, and runs none twice."""

import time
from collections.abc import Iterator

import pytest

from muster.doors.kubernetes.serve.pod_jobs import ROOT
from muster.model.gpu import GpuAsk
from muster.model.job import FINAL, Ask, JobSpec, JobState, TaskGroup
from muster.model.launch import Launch
from muster.model.value import ClusterName, JobId, UserName
from pretend_kubernetes.api import (
    NODES,
    PODS,
    Json,
    PretendApi,
    Refusal,
    ended,
    pod,
    runs,
)
from pretend_kubernetes.place import NLP, Place, a_place

IN_NLP = "/api/v1/namespaces/nlp/pods"
IN_DEFAULT = "/api/v1/namespaces/default/pods"
UNAVAILABLE, TOO_MANY, GONE, CONFLICT = 503, 429, 410, 409


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with a_place(tmp_path_factory.mktemp("answers")) as made:
        yield made


@pytest.fixture
def place(shared_place: Place) -> Iterator[Place]:
    """Nothing is there before and after."""
    yield shared_place
    shared_place.api.page = 0
    shared_place.clears_up()


def submits(place: Place, tasks: int = 1) -> JobId:
    """A job that Muster makes pods for."""
    group = TaskGroup(count=tasks, each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=1)))
    spec = JobSpec(
        name="own",
        user=UserName("root"),
        queue=NLP,
        groups=(group,),
        clusters=(ClusterName("lab"),),
        launch=Launch(argv=("true",), workdir="/"),
        max_attempts=1,
    )
    return place.muster.service.submit(ROOT, spec).result().jobs[0]


def pods_of(place: Place, job: JobId) -> list[Json]:
    listed = place.api.answer("GET", PODS, {})
    assert isinstance(listed, dict)
    found: list[Json] = listed["items"]
    return [each for each in found if _job_of(each) == str(job)]


def _job_of(pod: Json) -> str:
    labels: Json = pod["metadata"].get("labels") or {}
    return str(labels.get("muster.io/job", ""))


def bound_pods(place: Place, job: JobId, count: int = 1) -> list[Json]:
    def look() -> list[Json]:
        found = [each for each in pods_of(place, job) if each["spec"].get("nodeName")]
        return found if len(found) == count else []

    return place.until(look)


def state(place: Place, job: JobId) -> JobState:
    return place.muster.service.queries.jobs.detail(ROOT, job).view.job.state


def deletions(api: PretendApi) -> list[str]:
    return [each for each in api.asked if each.startswith("DELETE")]


# Gone: what is known is too old


def test_a_watch_that_is_too_old_costs_nothing_that_runs(place: Place) -> None:
    place.makes(pod("long", 2))
    place.bound("long")
    place.api.become(PODS, "nlp", "long", runs())
    place.until(lambda: place.job("long").job.state is JobState.RUNNING)
    before = deletions(place.api)

    place.api.forget()
    place.makes(pod("next", 2))

    place.bound("next")
    assert place.job("long").job.state is JobState.RUNNING
    assert deletions(place.api) == before


def test_an_end_that_no_watch_told_of_is_found_in_the_new_list(place: Place) -> None:
    place.makes(pod("ends"), pod("goes"))
    place.bound("ends", "goes")
    gone = place.job("goes").job.id
    for name in ("ends", "goes"):
        place.api.become(PODS, "nlp", name, runs())
        place.until(lambda name=name: place.job(name).job.state is JobState.RUNNING)

    place.api.refuse(Refusal(f"GET {PODS}", UNAVAILABLE, times=3))
    place.api.become(PODS, "nlp", "ends", ended(3))
    place.api.remove(PODS, "nlp", "goes")
    place.api.forget()

    place.until(lambda: place.job("ends").job.state is JobState.FAILED)
    place.until(lambda: state(place, gone) is not JobState.RUNNING)


def test_a_list_that_is_too_old_to_go_on_with_is_begun_again(place: Place) -> None:
    place.makes(*(pod(f"p{number}") for number in range(5)))
    place.bound(*(f"p{number}" for number in range(5)))
    place.api.page = 2

    place.api.refuse(Refusal(f"GET {PODS}", GONE))
    place.api.forget()
    place.makes(pod("next"))

    place.bound("next")
    assert all(place.job(f"p{number}").job.state not in FINAL for number in range(5))


def test_whoever_always_says_too_old_is_not_asked_without_a_pause(place: Place) -> None:
    asked, before, began = f"GET {PODS}", place.api.times(f"GET {PODS}"), time.monotonic()
    place.api.refuse(Refusal(asked, GONE, times=2))

    place.api.forget()

    place.until(lambda: place.api.times(asked) >= before + 3)
    assert time.monotonic() - began > 0.9


# Too many: it is asked for again, when it says so and not much later


@pytest.mark.parametrize("after_s", ["1", "3600", "never", ""])
def test_what_was_asked_too_often_is_asked_again_and_done_once(place: Place, after_s: str) -> None:
    place.api.refuse(Refusal(f"POST {IN_DEFAULT}", TOO_MANY, times=2, after_s=after_s))

    job = submits(place)

    (pod,) = bound_pods(place, job)
    place.api.become(PODS, "default", pod["metadata"]["name"], ended_own())
    place.until(lambda: state(place, job) is JobState.COMPLETED)


def test_a_binding_that_must_wait_keeps_its_job_no_longer_than_it_says(place: Place) -> None:
    place.api.refuse(Refusal(f"POST {IN_NLP}/p/binding", TOO_MANY, times=9, after_s="1"))

    place.makes(pod("p"))

    place.bound("p")


def test_pods_are_adopted_where_their_cluster_is_slow_when_muster_starts(place: Place) -> None:
    place.stop()
    place.api.refuse(Refusal(f"GET {NODES}", TOO_MANY, times=3, after_s="1"))

    place.start()

    place.makes(pod("p"))
    place.bound("p")


# Conflicts


def test_an_answer_that_was_lost_makes_no_second_pod(place: Place) -> None:
    place.api.refuse(Refusal(f"POST {IN_DEFAULT}", UNAVAILABLE, is_done=True))

    job = submits(place, tasks=3)

    pods = bound_pods(place, job, 3)
    assert len({each["metadata"]["uid"] for each in pods}) == 3
    for each in pods:
        place.api.become(PODS, "default", each["metadata"]["name"], ended_own())
    place.until(lambda: state(place, job) is JobState.COMPLETED)


def test_a_binding_whose_answer_was_lost_holds(place: Place) -> None:
    place.api.refuse(Refusal(f"POST {IN_NLP}/p/binding", UNAVAILABLE, is_done=True))

    place.makes(pod("p"))
    place.bound("p")
    place.api.become(PODS, "nlp", "p", runs())

    place.until(lambda: place.job("p").job.state is JobState.RUNNING)


def test_a_pod_that_has_the_name_of_one_that_went_is_another_job(place: Place) -> None:
    place.makes(pod("large", 4), pod("larger", 4))
    place.bound("large", "larger")
    place.makes(pod("again", 4))
    first = place.until(lambda: [each for each in place.jobs() if each.job.spec.name == "again"])

    place.api.remove(PODS, "nlp", "again")
    place.makes(pod("again", 4))
    place.api.become(PODS, "nlp", "large", runs())
    place.api.become(PODS, "nlp", "large", ended())

    place.bound("again")
    assert place.job("again").job.id != first[0].job.id


def test_a_conflict_that_was_none_of_the_uid_is_tried_again(place: Place) -> None:
    gates = {"schedulingGates": [{"name": "muster.io/admission"}]}
    place.api.refuse(Refusal(f"PATCH {IN_NLP}/p", CONFLICT))
    place.api.refuse(Refusal(f"POST {IN_NLP}/p/binding", CONFLICT))

    place.makes(pod("p", spec=gates))

    place.bound("p")


def ended_own() -> Json:
    """A pod that Muster made has come to its end."""
    at = "2026-01-01T00:00:01Z"
    said = {"exitCode": 0, "startedAt": at, "finishedAt": at}
    status = {"name": "job", "state": {"terminated": said}}
    return {"status": {"phase": "Succeeded", "containerStatuses": [status]}}
