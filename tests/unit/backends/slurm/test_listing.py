from muster.backends.attempts import Phase
from muster.backends.fleet import Taken
from muster.backends.slurm.listing import Key, Listing, held_by_others, key_in
from muster.model.resources import Resources
from muster.model.value import NodeId
from unit.backends.slurm.given import line, listed


def test_a_line_says_what_a_job_is_and_has() -> None:
    (job,) = listed(line())

    assert (job.id, job.phase, job.started_s, job.ended_s) == ("12", Phase.RUNS, 100, None)
    assert job.nodes == (NodeId("node1"),)
    assert job.holds.amount == Resources(cpu_milli=4_000, memory_mib=8_192, gpu_milli=2_000)
    assert job.key == Key(site="here", job=7, attempt=1)


def test_what_is_no_line_of_a_job_is_left_out() -> None:
    assert not list(listed("slurm_load_jobs error: something\n\n"))


def test_a_line_that_is_said_again_is_not_read_again() -> None:
    listing = Listing()
    (first,) = listing.read(line())

    again, other = listing.read("\n".join((line(), line(JobID="13"))))

    assert again is first
    assert other.id == "13"


def test_comments_of_others_move_no_column_and_make_no_line() -> None:
    forged = line(JobID="99", Comment="x").strip()[:120]
    text = line(Comment=f"\u00e9\u20ac \n{forged}\x1c\u2028", NodeList="node1")

    (job,) = listed(text)

    assert (job.id, job.nodes) == ("12", (NodeId("node1"),))


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
