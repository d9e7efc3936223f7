from hypothesis import given
from hypothesis import strategies as st

from muster.doors.kubernetes.controllers.jobs.sync import is_finished
from properties.kubernetes_world import KubernetesWorld, job

LATER = st.lists(st.sampled_from([1, 5, 29, 30, 31, 600]), max_size=6)


@given(
    ttl_s=st.sampled_from([None, 0, 1, 30, 60]),
    runs_s=st.integers(min_value=0, max_value=100),
    code=st.sampled_from([0, 1]),
    later=LATER,
)
def test_a_job_goes_when_its_time_after_its_end_is_up_and_not_before(
    ttl_s: int | None, runs_s: int, code: int, later: list[int]
) -> None:
    world = KubernetesWorld()
    made = world.create(job(backoffLimit=0, ttlSecondsAfterFinished=ttl_s))
    world.settles()

    world.passes(runs_s)
    world.settles()
    assert world.is_there(made)

    world.ends(world.pods()[0], code=code)
    world.settles()
    since = 0
    for seconds in (0, *later):
        world.passes(seconds)
        world.settles()
        since += seconds
        is_kept = ttl_s is None or since < ttl_s
        assert world.is_there(made) is is_kept
        assert bool(world.pods()) is is_kept
        assert not is_kept or is_finished(world.fresh(made))


@given(ttl_s=st.integers(min_value=0, max_value=100), later=LATER)
def test_a_job_that_is_not_over_never_goes(ttl_s: int, later: list[int]) -> None:
    world = KubernetesWorld()
    made = world.create(job(ttlSecondsAfterFinished=ttl_s))
    world.settles()

    for seconds in later:
        world.passes(seconds)
        world.settles()

    assert world.is_there(made)
