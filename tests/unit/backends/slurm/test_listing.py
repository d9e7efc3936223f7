from muster.backends.attempts import Phase
from muster.backends.fleet import Taken
from muster.backends.slurm.listing import Key, held_by_others, key_in, listed
from muster.model.resources import Resources
from muster.model.value import NodeId
from unit.backends.slurm.given import line


def test_a_line_says_what_a_job_is_and_has() -> None:
    (job,) = listed(line())

    assert (job.id, job.phase, job.started_s, job.ended_s) == ("12", Phase.RUNS, 100, None)
    assert job.nodes == (NodeId("node1"),)
    assert job.holds == Resources(cpu_milli=4_000, memory_mib=8_192, gpu_milli=2_000)
    assert job.key == Key(site="here", job=7, attempt=1)


def test_what_is_no_line_of_a_job_is_left_out() -> None:
    assert not list(listed("slurm_load_jobs error: something\n\n"))


def test_states_that_slurm_may_add_later_are_ends() -> None:
    (job,) = listed(line(State="LAUNCH_FAILED"))

    assert job.phase is Phase.OVER


def test_only_our_own_mark_is_a_key() -> None:
    key = Key(site="here", job=7, attempt=2)

    assert key_in(key.mark) == key
    for comment in ("", "(null)", "muster", "muster:here:7", "muster::7.1", "other:here:7.1"):
        assert key_in(comment) is None


def test_what_others_hold_is_spread_over_their_nodes() -> None:
    text = "\n".join(
        (
            line(JobID="1", Comment="(null)", NodeList="node[1-2]"),
            line(JobID="2", Comment="(null)", State="PENDING", NodeList="(null)"),
        )
    )

    each = Taken(amount=Resources(cpu_milli=2_000, memory_mib=4_096, gpu_milli=1_000))
    assert held_by_others(listed(text)) == {NodeId("node1"): each, NodeId("node2"): each}
