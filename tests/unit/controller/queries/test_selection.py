import pytest

from muster.controller.messages import JobQuery
from muster.controller.queries.selection import select_jobs
from muster.model.job import ArrayPart, Ask, Job, JobSpec, JobState, TaskGroup
from muster.model.placement import Allocation, Placement
from muster.model.resources import NOTHING
from muster.model.value import (
    ClusterName,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)


def job(number: int, user: str, queue: str, name: str = "", *, array: int | None = None) -> Job:
    member = None if array is None else ArrayPart(array=JobId(array), index=number)
    spec = JobSpec(
        name=name,
        user=UserName(user),
        queue=QueuePath(queue),
        groups=(TaskGroup(each=Ask(cpu_milli=1_000)),),
        array=member,
    )
    state = JobState.RUNNING if number == 1 else JobState.PENDING
    return Job(id=JobId(number), spec=spec, state=state, submitted_at=Instant(0))


JOBS = (
    job(1, "ann", "acme/nlp", "train"),
    job(2, "bob", "acme/nlp/small"),
    job(3, "ann", "acmes", "train"),
    job(4, "bob", "acme", array=4),
)
HELD = {
    JobId(1): Allocation(
        job=JobId(1),
        attempt=1,
        cluster=ClusterName("here"),
        placements=(
            Placement(group="main", index=0, node=NodeId("n1"), pool=PoolName("p"), amount=NOTHING),
            Placement(group="main", index=1, node=NodeId("n2"), pool=PoolName("p"), amount=NOTHING),
        ),
        placed_at=Instant(0),
    )
}


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        (JobQuery(), [1, 2, 3, 4]),
        (JobQuery(states=(JobState.PENDING, JobState.HELD)), [2, 3, 4]),
        (JobQuery(users=(UserName("ann"),)), [1, 3]),
        (JobQuery(queues=(QueuePath("acme"),)), [1, 2, 4]),
        (JobQuery(queues=(QueuePath("acme/nlp"), QueuePath("acmes"))), [1, 2, 3]),
        (JobQuery(name="train"), [1, 3]),
        (JobQuery(arrays=(JobId(4),)), [4]),
        (JobQuery(nodes=(NodeId("n2"), NodeId("n9"))), [1]),
        (JobQuery(nodes=(NodeId("n9"),)), []),
        (JobQuery(users=(UserName("ann"),), name="train", states=(JobState.PENDING,)), [3]),
    ],
)
def test_everything_that_a_query_gives_must_hold(query: JobQuery, ids: list[int]) -> None:
    assert [each.id for each in select_jobs(JOBS, query, HELD)] == ids
