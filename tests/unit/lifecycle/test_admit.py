"""What is refused, for which reason, and in which words."""

from collections.abc import Mapping
from typing import Any

import pytest

from muster.lifecycle.admit import admit
from muster.lifecycle.refusal import (
    Accepted,
    AsksForNothing,
    BadGroups,
    CannotRun,
    DeadlineTooSoon,
    MayNotSubmit,
    NoContainerTool,
    NoSuchJob,
    NoSuchLevel,
    NoSuchModel,
    NoSuchProfile,
    NoSuchReservation,
    NotOffered,
    NotYourReservation,
    NoUsablePool,
    PoolIsClosed,
    PoolTakesNothing,
    Reason,
    Refusal,
    SharingMode,
)
from muster.model.cluster import Ability, NodesReserved, NodeState
from muster.model.gpu import GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import (
    Ask,
    Dependency,
    DependencyKind,
    JobRule,
    JobSpec,
    Spot,
    TaskGroup,
    Together,
    Where,
)
from muster.model.launch import Launch
from muster.model.queue import UNNAMED, JobClass, Quota
from muster.model.reason import NeverFits, NoSuchClass, NoSuchPool, NoSuchQueue, TooLong
from muster.model.snapshot import Snapshot
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    GpuModel,
    Instant,
    JobId,
    PoolName,
    QueuePath,
    UserName,
    replace,
)
from unit.lifecycle.given import ANN, BOB, H100, NOW, group, pool_of, queue, spec, without, world

MINUTE = Duration(60_000)


def refused(spec: JobSpec, snapshot: Snapshot) -> Refusal:
    answer = admit(spec, snapshot)
    assert isinstance(answer, Refusal), answer
    return answer


def accepted(spec: JobSpec, snapshot: Snapshot) -> Accepted:
    answer = admit(spec, snapshot)
    assert isinstance(answer, Accepted), answer
    return answer


def test_a_plain_request_is_accepted_as_it_is() -> None:
    assert accepted(spec(), world()) == Accepted(spec=spec())


def test_a_pool_that_is_not_for_the_user_is_refused_by_name() -> None:
    given = world()
    a100 = replace(given.pools[PoolName("a100")], users=(UserName("bob"), UserName("cat")))
    closed = replace(given, pools={**given.pools, a100.name: a100})

    answer = admit(spec(pools=(a100.name,)), closed)

    assert isinstance(answer, Refusal)
    assert answer.reason == PoolIsClosed(pool=a100.name)
    assert "Pool a100 is for bob or cat." in answer.advice


def test_a_pool_that_takes_no_new_jobs_is_refused_by_name() -> None:
    given = world()
    a100 = replace(given.pools[PoolName("a100")], accepts=False)
    drained = replace(given, pools={**given.pools, a100.name: a100})

    answer = admit(spec(pools=(a100.name,)), drained)

    assert isinstance(answer, Refusal)
    assert answer.reason == PoolTakesNothing(pool=a100.name)


def test_a_reservation_must_be_there_and_for_the_job() -> None:
    given = world()
    kept = NodesReserved(
        name="demo",
        nodes=tuple(given.nodes)[:1],
        begins_at=given.now,
        ends_at=Instant(given.now + 60_000),
        for_users=(UserName("somebody else"),),
    )
    reserved = replace(given, reservations=(kept,))

    unknown = admit(spec(reservation="demo"), given)
    strange = admit(spec(reservation="demo"), reserved)

    assert isinstance(unknown, Refusal)
    assert unknown.reason == NoSuchReservation(reservation="demo")
    assert isinstance(strange, Refusal)
    assert strange.reason == NotYourReservation(reservation="demo")


def after(kind: str, job: int | None = None) -> dict[str, object]:
    named = None if job is None else JobId(job)
    return {"after": (Dependency(kind=DependencyKind(kind), job=named),)}


def tasks(**said: Any) -> dict[str, object]:
    return {"groups": (group(**said),)}


REFUSED: dict[str, tuple[Mapping[str, object], Reason, str]] = {
    "a queue that does not exist": (
        {"queue": QueuePath("acme/nlpp")},
        NoSuchQueue(queue=QueuePath("acme/nlpp")),
        "There is no queue acme/nlpp. Did you mean acme/nlp",
    ),
    "a class that does not exist": (
        {"job_class": ClassName("norml")},
        NoSuchClass(job_class=ClassName("norml")),
        "There is no class norml. Did you mean normal?",
    ),
    "a pool that does not exist": (
        {"pools": (PoolName("a100"), PoolName("zzz"))},
        NoSuchPool(name="zzz"),
        "There is no pool zzz. There is a100 or spot.",
    ),
    "a cluster that does not exist": (
        {"clusters": (ClusterName("hare"),)},
        NoSuchPool(name="hare"),
        "There is no cluster hare. Did you mean here?",
    ),
    "pools that its spot rule forbids": (
        {"pools": (PoolName("spot"),)},
        NoUsablePool(spot_only=False),
        "No pool is left",
    ),
    "spot only where there is none": (
        {"pools": (PoolName("a100"),), "spot": Spot.ONLY},
        NoUsablePool(spot_only=True),
        "No pool is left",
    ),
    "a GPU model that no node has": (
        tasks(gpus=1, models=(GpuModel("A100-80GB"),)),
        NoSuchModel(model=GpuModel("A100-80GB")),
        "There is no GPU model A100-80GB. Did you mean H100-80GB or A100-40GB?",
    ),
    "a model that only forbidden pools have": (
        tasks(gpus=1, models=(H100,)),
        NeverFits(group="main", wanted=1, at_most=0),
        "No node in the pools that this job may use has what this job asks for.",
    ),
    "a MIG profile of another model": (
        tasks(gpus=1, part=Mig(profile="1g.10g")),
        NoSuchProfile(group="main", profile="1g.10g"),
        "There is no MIG profile 1g.10g. Did you mean 1g.10gb",
    ),
    "a topology level that no pool has": (
        {"groups": (replace(group(gpus=1), together=Together(level="rak")),)},
        NoSuchLevel(group="main", level="rak"),
        "There is no topology level rak. Did you mean rack?",
    ),
    "a level in a rule about neighbours": (
        {
            "groups": (
                replace(
                    group(gpus=1),
                    where=Where(apart=(JobRule(key="app", value="web", level="room"),)),
                ),
            )
        },
        NoSuchLevel(group="main", level="room"),
        "There is no topology level room. There is node, rack or zone.",
    ),
    "a dependency on a job that never was": (
        after("afterok", 99),
        NoSuchJob(kind=DependencyKind.AFTER_OK, job=JobId(99)),
        "names job 99, which does not exist",
    ),
    "a dependency on no job": (
        after("afterany"),
        NoSuchJob(kind=DependencyKind.AFTER_ANY, job=None),
        "names no job",
    ),
    "no groups": ({"groups": ()}, BadGroups(), "has no tasks"),
    "two groups of one name": (
        {"groups": (group(gpus=1), group())},
        BadGroups(twice="main"),
        "Two groups are called main.",
    ),
    "a task larger than any node": (
        tasks(gpus=9),
        NeverFits(group="main", wanted=1, at_most=0),
        "No node has 9 GPUs; the most that one has is 8.",
    ),
    "more tasks than all nodes could take": (
        tasks(gpus=4, tasks=5),
        NeverFits(group="main", wanted=5, at_most=4),
        "Ask for at most 4.",
    ),
    "more tasks than may share the nodes": (
        {"groups": (replace(group(gpus=1, tasks=5), where=Where(max_per_node=2)),)},
        NeverFits(group="main", wanted=5, at_most=4),
        "Ask for at most 4.",
    ),
    "more GPU memory than any has": (
        {"groups": (TaskGroup(each=Ask(gpus=GpuAsk(count=1, min_memory_mib=50_000))),)},
        NeverFits(group="main", wanted=1, at_most=0),
        "No GPU here has 50000 MiB; the largest has 40 GiB.",
    ),
    "a deadline in the past": (
        {"deadline": Instant(NOW - 1)},
        DeadlineTooSoon(late_by=Duration(2)),
        "could end 2ms after its deadline",
    ),
    "a begin after the deadline": (
        {"deadline": Instant(NOW + MINUTE), "begin_at": Instant(NOW + 2 * MINUTE)},
        DeadlineTooSoon(late_by=Duration(MINUTE + 1)),
        "1m 1ms after its deadline",
    ),
    "a time limit that goes past the deadline": (
        {"deadline": Instant(NOW + MINUTE), "time_limit": Duration(2 * MINUTE)},
        DeadlineTooSoon(late_by=MINUTE),
        "1m after its deadline",
    ),
}


@pytest.mark.parametrize(("asked", "reason", "words"), REFUSED.values(), ids=REFUSED)
def test_what_could_never_run_is_refused_with_advice(
    asked: Mapping[str, object], reason: Reason, words: str
) -> None:
    refusal = refused(spec(**asked), world())

    assert refusal.reason == reason
    assert words in refusal.advice


def test_the_nearest_list_decides_who_may_submit() -> None:
    snapshot = world(
        queue("acme", may_submit=(ANN, BOB)), queue("acme/nlp", may_submit=(BOB,)), queue("lab")
    )

    assert refused(spec(), snapshot) == Refusal(
        reason=MayNotSubmit(
            user=ANN, queue=QueuePath("acme/nlp"), decided_by=QueuePath("acme/nlp")
        ),
        advice="ann may not submit to queue acme/nlp: acme/nlp has a list of who may. "
        "Use acme, or ask for ann to be added to it.",
    )
    assert accepted(spec(queue=QueuePath("acme")), snapshot)
    assert accepted(spec(queue=QueuePath("lab")), snapshot)


def test_a_list_further_up_decides_where_there_is_none() -> None:
    snapshot = world(queue("acme", may_submit=(BOB,)), queue("acme/nlp"))

    refusal = refused(spec(), snapshot)

    assert isinstance(refusal.reason, MayNotSubmit)
    assert refusal.reason.decided_by == "acme"
    assert refusal.advice.endswith("Ask for ann to be added to it.")


def test_a_job_without_a_class_gets_that_of_the_nearest_queue() -> None:
    urgent = ClassName("urgent")
    snapshot = world(
        queue("acme", default_class=urgent),
        queue("acme/nlp"),
        queue("lab"),
        classes={name: JobClass(name=name) for name in (urgent, ClassName("normal"))},
    )

    assert accepted(spec(job_class=UNNAMED), snapshot).spec.job_class == urgent
    assert accepted(spec(), snapshot).spec.job_class == "normal"
    elsewhere = spec(job_class=UNNAMED, queue=QueuePath("lab"))
    assert accepted(elsewhere, snapshot).spec.job_class == "normal"


def test_a_class_for_spot_only_sends_the_job_to_spot_pools() -> None:
    cheap = ClassName("cheap")
    snapshot = world(classes={cheap: JobClass(name=cheap, spot_only=True)})

    assert accepted(spec(job_class=cheap, **tasks(gpus=4, models=(H100,))), snapshot)
    assert refused(spec(job_class=cheap, pools=(PoolName("a100"),)), snapshot).reason == (
        NoUsablePool(spot_only=True)
    )


@pytest.mark.parametrize(
    ("part", "ability", "sharing"),
    [
        (Mig(profile="1g.5gb"), "mig", SharingMode.MIG),
        (MpsShare(milli=500), "mps", SharingMode.MPS),
        (TimeShare(replicas=4), "time_share", SharingMode.TIME),
    ],
)
def test_a_way_to_share_must_be_offered_by_some_cluster(
    part: Mig | MpsShare | TimeShare, ability: str, sharing: SharingMode
) -> None:
    asked = spec(**tasks(gpus=1, part=part))

    assert accepted(asked, world())
    assert refused(asked, world(clusters=without(**{ability: False}))).reason == NotOffered(
        group="main", sharing=sharing
    )


@pytest.mark.parametrize("ability", [each for each in Ability if each is not Ability.COMMANDS])
def test_what_running_the_job_takes_must_be_there_in_some_cluster(ability: Ability) -> None:
    asked = spec(takes=(ability,), launch=Launch(image="torch"))
    lacking = world(clusters=without(**{ability.value: False}))

    assert accepted(asked, world(clusters=without(**{ability.value: True})))
    answer = refused(asked, lacking)
    if ability in {Ability.IMAGES, Ability.IMAGE_FILES}:
        assert answer.reason == NoContainerTool(image="torch")
    else:
        assert answer.reason == CannotRun(ability=ability)


def test_a_plain_command_needs_a_cluster_that_runs_those() -> None:
    lacking = world(clusters=without(commands=False))

    assert refused(spec(), lacking).reason == CannotRun(ability=Ability.COMMANDS)
    assert accepted(spec(takes=(Ability.IMAGES,)), lacking)


@pytest.mark.parametrize(
    ("part", "most"),
    [
        (Mig(profile="1g.5gb"), 56),
        (Mig(profile="3g.20gb"), 16),
        (MpsShare(milli=300), 24),
        (MpsShare(milli=10, memory_mib=20_480), 16),
        (TimeShare(replicas=4), 32),
    ],
    ids=repr,
)
def test_one_node_gives_so_many_parts_of_its_eight_gpus(
    part: Mig | MpsShare | TimeShare, most: int
) -> None:
    def asked(count: int) -> JobSpec:
        gpus = GpuAsk(count=count, slice=part)
        return spec(groups=(TaskGroup(each=Ask(gpus=gpus)),), pools=(PoolName("a100"),))

    assert accepted(asked(most), world())
    assert refused(asked(most + 1), world()).reason == NeverFits(group="main", wanted=1, at_most=0)


def test_an_elastic_group_needs_room_only_for_its_fewest() -> None:
    elastic = replace(group(gpus=8, tasks=10), min_count=2)

    assert accepted(spec(groups=(elastic,)), world())


def test_nodes_that_are_down_still_count_as_places_to_run() -> None:
    down = {name: replace(each, state=NodeState.DOWN) for name, each in world().nodes.items()}

    assert accepted(spec(), world(nodes=down))


def timed(default: int | None = None, most: int | None = None) -> Snapshot:
    pool = pool_of("a100", default_time=default, max_time=most)
    normal = JobClass(name=ClassName("normal"), max_time=Duration(50))
    return world(pools={pool.name: pool}, classes={normal.name: normal})


def test_a_time_limit_must_be_one_that_class_and_some_pool_allow() -> None:
    refusal = refused(spec(time_limit=Duration(40)), timed(most=30))

    assert refusal.reason == TooLong(asked=Duration(40), allowed=Duration(30))
    assert "may run for 30ms; this job asks for 40ms" in refusal.advice
    assert refused(spec(time_limit=Duration(60)), timed()).reason == TooLong(
        asked=Duration(60), allowed=Duration(50)
    )
    assert accepted(spec(time_limit=Duration(30)), timed(most=30))


@pytest.mark.parametrize(
    ("default", "most", "expected"),
    [(None, 30, 30), (None, None, 50), (20, 30, None), (60, 70, 50)],
)
def test_a_job_without_a_time_limit_gets_the_longest_unless_a_pool_has_a_default(
    default: int | None, most: int | None, expected: int | None
) -> None:
    assert accepted(spec(), timed(default=default, most=most)).spec.time_limit == expected


def test_one_pool_without_a_maximum_is_enough_for_a_long_job() -> None:
    pools = (pool_of("a100"), pool_of("short", max_time=Duration(30)))
    snapshot = world(pools={pool.name: pool for pool in pools})

    assert accepted(spec(time_limit=Duration(40)), snapshot)
    assert accepted(spec(), snapshot).spec.time_limit is None


def test_a_request_for_nothing_is_refused_where_there_are_quotas() -> None:
    nothing = spec(groups=(TaskGroup(),))
    counted = world(queue("acme", quotas=(Quota(limit=8_000),)), queue("acme/nlp"))

    assert refused(nothing, counted).reason == AsksForNothing(group="main")
    assert accepted(nothing, world())
