"""Room on nodes and devices, and MIG layouts."""

import pytest

from muster.model.cluster import Abilities
from muster.model.gpu import Mig, MigInstance, MpsShare, Slice, TimeShare
from muster.model.job import Ask, JobState, Where
from muster.model.placement import Placement
from muster.model.plan import Repartition
from muster.model.policy import Policy
from muster.model.queue import PreemptMode
from muster.model.resources import Resources
from muster.model.value import DeviceId, JobId, NodeId
from unit.schedule.yard import (
    NOW,
    Yard,
    asking,
    at,
    claim_on,
    clear,
    group,
    preempt,
    resume,
    start,
)

HALF = MpsShare(milli=500)
TURN = TimeShare(replicas=2)
SMALL, LARGE = Mig(profile="1g.10gb"), Mig(profile="3g.40gb")
ALONE = group(1, where=Where(exclusive=True))


def only_cpu(cores: int, memory_gib: int = 1) -> Ask:
    return Ask(cpu_milli=cores * 1_000, memory_mib=memory_gib * 1_024)


def on(node: str, ask: Ask) -> Placement:
    amount = Resources(cpu_milli=ask.cpu_milli, memory_mib=ask.memory_mib)
    return at(node, "", amount=amount)


@pytest.mark.parametrize("ask", [only_cpu(3), only_cpu(1, 3)])
def test_cpu_and_memory_of_a_node_cannot_be_had_twice(ask: Ask) -> None:
    yard = Yard()
    placed = on("n1", ask)
    yard.runs(1, placed, groups=(group(1, ask),))
    yard.waits(2, group(1, ask))

    assert yard.judge(start(2, on("n2", ask))) == []
    assert yard.judge(start(2, placed)) == ["room"]


def test_a_node_that_shrank_under_its_jobs_is_not_the_plans_fault() -> None:
    yard = Yard()
    big = only_cpu(1, 9)
    yard.runs(1, on("n1", big), groups=(group(1, big),))
    none = only_cpu(1, 0)
    yard.waits(2, group(1, none))

    assert yard.judge(start(2, on("n1", none))) == []


def test_a_suspended_job_holds_only_its_memory() -> None:
    yard = Yard()
    most = only_cpu(4, 3)
    yard.runs(
        1,
        on("n1", most),
        groups=(group(1, most),),
        state=JobState.SUSPENDED,
    )
    little, much = only_cpu(4, 1), only_cpu(1, 2)
    yard.waits(2, group(1, little))
    yard.waits(3, group(1, much))
    on_little = start(2, on("n1", little))

    assert yard.judge(on_little) == []
    assert yard.judge(start(3, on("n1", much))) == ["room"]
    assert yard.judge(resume(1)) == []
    assert yard.judge(resume(1), on_little) == ["room"]


def test_claims_must_fit_when_their_victims_are_gone() -> None:
    yard = Yard()
    ask = only_cpu(3)
    placed = on("n1", ask)
    yard.job_class("normal", preempts=("low",), priority=2)
    yard.job_class("low")
    yard.runs(1, placed, groups=(group(1, ask),), job_class="low")
    yard.waits(2, group(1, ask))
    yard.waits(3, group(1, ask))

    cleared = clear(2, placed, victims=[1])
    assert yard.judge(cleared, preempt(1, 2)) == []
    assert yard.judge(cleared, preempt(1, 2), clear(3, placed)) == ["room"]


def test_a_victim_that_will_be_suspended_keeps_its_memory() -> None:
    yard = Yard()
    ask = only_cpu(1, 3)
    placed = on("n1", ask)
    yard.job_class("normal", preempts=("low",), priority=2)
    yard.job_class("low", preempt_mode=PreemptMode.SUSPEND)
    yard.runs(1, placed, groups=(group(1, ask),), job_class="low")
    yard.waits(2, group(1, ask))

    cleared = clear(2, placed, victims=[1])

    assert yard.judge(cleared, preempt(1, 2, mode=PreemptMode.SUSPEND)) == ["room"]


def test_nobody_starts_in_claimed_room_until_the_claim_runs_out() -> None:
    yard = Yard()
    yard.waits(1, claim=claim_on(at("n1"), victims=[9]))
    yard.waits(2)

    assert yard.judge(start(2, at("n1", "g1"))) == []
    assert yard.judge(start(2, at("n1"))) == ["device"]
    assert yard.judge(start(1, at("n1"))) == []

    yard.waits(1, claim=claim_on(at("n1"), victims=[9], until=NOW))
    assert yard.judge(start(2, at("n1"))) == []


def test_nobody_starts_in_the_room_of_a_victim_that_is_still_there() -> None:
    yard = Yard()
    yard.waits(1, claim=claim_on(at("n1"), victims=[2]))
    yard.runs(2, at("n1"), state=JobState.STOPPING)
    yard.waits(3)

    assert yard.judge(start(3, at("n1"))) == ["device"]


def test_a_whole_device_goes_to_one_task() -> None:
    yard = Yard()
    yard.runs(1, at("n1"))
    yard.waits(2)
    yard.waits(3)

    assert yard.judge(start(2, at("n1", "g1"))) == []
    assert yard.judge(start(2, at("n1"))) == ["device"]
    assert yard.judge(start(2, at("n2")), start(3, at("n2"))) == ["device"]


def test_a_device_has_one_kind_of_use() -> None:
    yard = Yard()
    yard.runs(1, at("n1", "g0", HALF), groups=(group(1, asking(1, HALF)),))
    yard.waits(2, group(1, asking(1, TURN)))

    assert yard.judge(start(2, at("n1", "g1", TURN))) == []
    assert yard.judge(start(2, at("n1", "g0", TURN))) == ["device"]


def test_mps_shares_add_up_to_one_device() -> None:
    yard = Yard()
    yard.runs(1, at("n1", "g0", HALF), groups=(group(1, asking(1, HALF)),))
    for job, part in enumerate((HALF, MpsShare(milli=501), MpsShare(milli=500, memory_mib=50_000))):
        yard.waits(10 + job, group(1, asking(1, part)))
        placed = start(10 + job, at("n1", "g0", part))
        assert yard.judge(placed) == ([] if part is HALF else ["device"])


def test_time_shares_have_as_many_turns_as_were_agreed() -> None:
    yard = Yard()
    ask = asking(1, TURN)
    yard.runs(1, at("n1", "g0", TURN), groups=(group(1, ask),))
    yard.waits(2, group(1, ask))
    yard.waits(3, group(1, ask))
    other = TimeShare(replicas=3)
    yard.waits(4, group(1, asking(1, other)))

    assert yard.judge(start(2, at("n1", "g0", TURN))) == []
    both = [start(job, at("n1", "g0", TURN)) for job in (2, 3)]
    assert yard.judge(*both) == ["device"]
    assert yard.judge(start(4, at("n1", "g0", other))) == ["device"]


def test_mig_instances_exist_and_go_to_one_task_each() -> None:
    yard = Yard()
    ask = asking(1, SMALL)
    yard.device("n1", 0, mig=(MigInstance(profile="1g.10gb", start=0),))
    yard.waits(1, group(1, ask))
    yard.waits(2, group(1, ask))

    placed = at("n1", "g0", SMALL, starts=[0])
    assert yard.judge(start(1, placed)) == []
    assert yard.judge(start(1, placed), start(2, placed)) == ["device"]
    assert yard.judge(start(1, at("n1", "g0", SMALL, starts=[1]))) == ["device"]
    assert yard.judge(start(1, at("n2", "g0", SMALL, starts=[0]))) == ["device"]
    assert yard.judge(start(1, at("n1", "g0", SMALL))) == ["device"]


def test_only_mig_is_given_away_on_a_device_in_mig_mode() -> None:
    yard = Yard()
    yard.device("n1", 0, mig=())
    yard.waits(1)

    assert yard.judge(start(1, at("n1"))) == ["device"]


@pytest.mark.parametrize(
    ("part", "abilities"),
    [
        (SMALL, Abilities(mig=False)),
        (HALF, Abilities(mps=False)),
        (TURN, Abilities(time_share=False)),
    ],
)
def test_the_cluster_must_offer_the_slice(
    part: Mig | MpsShare | TimeShare, abilities: Abilities
) -> None:
    yard = Yard()
    yard.cluster(abilities=abilities)
    if isinstance(part, Mig):
        yard.device("n1", 0, mig=(MigInstance(profile="1g.10gb", start=0),))
    yard.waits(1, group(1, asking(1, part)))
    starts = [0] if isinstance(part, Mig) else []

    assert yard.judge(start(1, at("n1", "g0", part, starts=starts))) == ["ability"]


def test_an_exclusive_task_has_its_node_alone() -> None:
    yard = Yard()
    yard.waits(1, ALONE)
    yard.waits(2)
    yard.runs(3, at("n2"))

    assert yard.judge(start(1, at("n1")), start(2, at("n2", "g1"))) == []
    assert yard.judge(start(1, at("n1")), start(2, at("n1", "g1"))) == ["exclusive"]
    assert yard.judge(start(1, at("n2", "g1"))) == ["exclusive"]


def test_nobody_joins_an_exclusive_task_that_runs_or_claims() -> None:
    yard = Yard()
    yard.runs(1, at("n1"), groups=(ALONE,))
    yard.waits(2, ALONE, claim=claim_on(at("n2"), victims=[9]))
    yard.waits(3)

    assert yard.judge(start(3, at("n1", "g1"))) == ["exclusive"]
    assert yard.judge(start(3, at("n2", "g1"))) == ["exclusive"]


def test_tasks_of_one_job_and_suspended_jobs_do_not_disturb() -> None:
    yard = Yard()
    yard.waits(1, group(2, where=Where(exclusive=True)))
    yard.runs(2, at("n1"), state=JobState.SUSPENDED)

    assert yard.judge(start(1, at("n1"), at("n1", "g1"))) == []


def cut(
    *instances: tuple[str, int], node: str = "n1", device: str = "g0", job: int = 1
) -> Repartition:
    return Repartition(
        node=NodeId(node),
        device=DeviceId(device),
        instances=tuple(MigInstance(profile=profile, start=at) for profile, at in instances),
        for_job=JobId(job),
    )


def test_a_device_is_cut_for_a_job_that_starts_on_it() -> None:
    yard = Yard()
    yard.waits(1, group(1, asking(1, LARGE)))
    placed = start(1, at("n1", "g0", LARGE, starts=[4]))

    assert yard.judge(placed, cut(("3g.40gb", 4))) == []
    assert yard.judge(placed) == ["device"]
    assert yard.judge(placed, cut(("3g.40gb", 4)), cut(node="n2")) == ["repartition"]
    assert yard.judge(placed, cut(("3g.40gb", 4), job=2)) == ["repartition"]
    assert yard.judge(placed, cut(("3g.40gb", 4)), cut(("3g.40gb", 4))) == ["repartition"]
    assert yard.judge(placed, cut(("3g.40gb", 4)), cut(device="g9")) == ["repartition"]


def test_a_layout_must_be_possible() -> None:
    yard = Yard()
    yard.waits(1, group(1, asking(1, LARGE)))
    placed = start(1, at("n1", "g0", LARGE, starts=[4]))

    assert yard.judge(placed, cut(("3g.40gb", 4), ("7g.80gb", 0))) == ["repartition"]
    assert yard.judge(placed, cut(("3g.40gb", 4), ("9g.99gb", 0))) == ["repartition"]


def test_cutting_must_be_allowed() -> None:
    yard = Yard()
    yard.waits(1, group(1, asking(1, LARGE)))
    placed = start(1, at("n1", "g0", LARGE, starts=[4]))

    yard.policy = Policy(repartition=False)
    assert yard.judge(placed, cut(("3g.40gb", 4))) == ["repartition"]

    yard.policy = Policy()
    yard.cluster(abilities=Abilities(repartition=False))
    assert yard.judge(placed, cut(("3g.40gb", 4))) == ["repartition"]


def test_instances_in_use_stay_where_they_are() -> None:
    yard = Yard()
    yard.device("n1", 0, mig=(MigInstance(profile="1g.10gb", start=0),))
    yard.runs(2, at("n1", "g0", SMALL, starts=[0]), groups=(group(1, asking(1, SMALL)),))
    yard.waits(1, group(1, asking(1, LARGE)))
    placed = start(1, at("n1", "g0", LARGE, starts=[4]))

    assert yard.judge(placed, cut(("3g.40gb", 4), ("1g.10gb", 0))) == []
    assert yard.judge(placed, cut(("3g.40gb", 4))) == ["repartition"]


def test_mig_mode_is_switched_only_on_a_device_nobody_uses() -> None:
    yard = Yard()
    yard.runs(2, at("n1", "g0", HALF), groups=(group(1, asking(1, HALF)),))
    yard.waits(1, group(1, asking(1, LARGE)))
    placed = start(1, at("n1", "g0", LARGE, starts=[4]))

    assert yard.judge(placed, cut(("3g.40gb", 4))) == ["device", "repartition"]


def test_mig_mode_is_switched_off_for_a_whole_device() -> None:
    yard = Yard()
    yard.device("n1", 0, mig=())
    yard.waits(1)
    off = Repartition(node=NodeId("n1"), device=DeviceId("g0"), instances=None, for_job=JobId(1))

    assert yard.judge(start(1, at("n1")), off) == []


def test_a_claim_may_count_on_a_cut_that_will_be_possible() -> None:
    yard = Yard()
    small = MigInstance(profile="1g.10gb", start=0)
    yard.device("n1", 0, mig=(small, MigInstance(profile="3g.40gb", start=4)))
    yard.runs(2, at("n1", "g0", SMALL, starts=[0]), groups=(group(1, asking(1, SMALL)),))
    yard.waits(1, group(1, asking(1, LARGE)))

    assert yard.judge(clear(1, at("n1", "g0", LARGE, starts=[4]))) == []
    assert yard.judge(clear(1, at("n1", "g0", LARGE, starts=[0]))) == ["device"]

    yard.policy = Policy(repartition=False)
    yard.device("n1", 0, mig=(small,))
    assert yard.judge(clear(1, at("n1", "g0", LARGE, starts=[4]))) == ["device"]


@pytest.mark.parametrize(
    ("by_mps", "part"), [(True, MpsShare(milli=250)), (False, TimeShare(replicas=4))]
)
def test_of_a_device_that_is_split_for_good_a_task_has_one_of_its_parts(
    by_mps: bool, part: Slice
) -> None:
    others = (HALF, TURN, MpsShare(milli=250, memory_mib=1), TimeShare(replicas=4))
    for wrong in (None, *(each for each in others if each != part)):
        yard = Yard()
        yard.device("n1", 0, turns=4, mps=by_mps, split=True)
        yard.waits(1, group(1, asking(1, part)))
        yard.waits(2, group(1, asking(1, wrong)))

        assert yard.judge(start(1, at("n1", "g0", part))) == []
        assert yard.judge(start(2, at("n1", "g0", wrong))) == ["device"]
