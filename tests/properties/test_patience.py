"""Nobody waits beyond the bound of the docs, however many come after them."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model.policy import OrderWeights, Policy, PreemptPolicy
from muster.model.value import MINUTE, Duration, JobId
from properties.easy import Gang, Yard, planned

PATIENCE = 30
LONGEST = 10
FLOOD = 60


def impatient(patience: int) -> Policy:
    """Small jobs go first, and bets are lost: nothing is known of any job but a wrong guess."""
    return Policy(
        order=OrderWeights(job_class=0, fair_share=0, queue=0),
        preempt=PreemptPolicy(by_class=False, reclaim=False),
        patience=Duration(patience * MINUTE),
    )


@st.composite
def floods(draw: st.DrawFn) -> Yard:
    """Small jobs come every minute and fill all nodes; a few gangs come among them."""
    nodes = draw(st.integers(2, 4))
    small = [
        Gang(at=at, id=0, nodes=1, limit=1, lasts=draw(st.integers(2, LONGEST)))
        for at in range(FLOOD)
        for _ in range(draw(st.integers(0, 1)) + (at < nodes))
    ]
    large = [
        Gang(
            at=draw(st.integers(nodes, FLOOD // 2)),
            id=0,
            nodes=draw(st.integers(2, nodes)),
            limit=draw(st.integers(1, 500)),
            lasts=draw(st.integers(1, LONGEST)),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    rows = sorted([*small, *large])
    return Yard(
        nodes,
        tuple(
            Gang(at=each.at, id=number, nodes=each.nodes, limit=each.limit, lasts=each.lasts)
            for number, each in enumerate(rows, start=1)
        ),
    )


def waits(yard: Yard, patience: int) -> dict[JobId, tuple[int, int]]:
    """How long each job waited, and how many that came before it were waiting when it came."""
    started = planned(yard, impatient(patience), has_limits=False)
    found: dict[JobId, tuple[int, int]] = {}
    for gang in yard.gangs:
        before = sum(other.id < gang.id and started[other.id] > gang.at for other in yard.gangs)
        found[JobId(gang.id)] = (started[gang.id] - gang.at, before)
    return found


@given(floods())
def test_no_job_waits_beyond_its_bound(yard: Yard) -> None:
    for waited, before in waits(yard, PATIENCE).values():
        assert waited <= PATIENCE + LONGEST * (before + 1)


def test_without_patience_a_gang_waits_as_long_as_small_jobs_come() -> None:
    small = [Gang(at=at, id=at + 1, nodes=1, limit=1, lasts=4) for at in range(2)]
    rest = [Gang(at=at, id=at + 2, nodes=1, limit=1, lasts=4) for at in range(3, FLOOD, 2)]
    gang = Gang(at=2, id=3, nodes=2, limit=500, lasts=5)
    rows = sorted([*small, gang, *rest])
    yard = Yard(
        2,
        tuple(
            Gang(at=each.at, id=number, nodes=each.nodes, limit=each.limit, lasts=each.lasts)
            for number, each in enumerate(rows, start=1)
        ),
    )

    assert max(waited for waited, _ in waits(yard, 0).values()) > PATIENCE + 2 * LONGEST
    assert max(waited for waited, _ in waits(yard, PATIENCE).values()) <= PATIENCE + 2 * LONGEST
