"""Metrics of jobs, queues, pools and devices, from what is committed and measured."""

from collections.abc import Iterable, Mapping

import pytest

from controller.desk import SITE, Desk
from muster.backends.base import Backend
from muster.backends.simulated.attempt import Behaviour
from muster.controller.loop.controller import LastPlan
from muster.controller.watching.device_source import DeviceSource
from muster.controller.watching.left_out import LeftOut
from muster.controller.watching.live_series import LiveSeries
from muster.controller.watching.pool_source import PoolSource
from muster.controller.watching.queue_names import QueueNames
from muster.controller.watching.queue_source import QueueSource
from muster.controller.watching.tally import Tally
from muster.controller.watching.watcher import Watcher
from muster.controller.watching.xids import Xids
from muster.model.cluster import NodeState
from muster.model.event import NodeSeen
from muster.model.gpu import DeviceState, Mig
from muster.model.job import Exited
from muster.model.launch import Launch
from muster.model.plan import Plan, Wait
from muster.model.pod import Container, PodLaunch
from muster.model.queue import Queue, Quota
from muster.model.reason import NoRoom
from muster.model.samples import DeviceSample, JobSample, Samples, Throttle
from muster.model.site import TelemetryRules
from muster.model.value import (
    MINUTE,
    SECOND,
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    QueuePath,
    replace,
)
from muster.telemetry.family import Family

Values = Mapping[tuple[str, ...], float]


class Metered:
    """A desk with its tally, as a leader has it."""

    def __init__(self, desk: Desk, most_queues: int = 1_000) -> None:
        self.desk = desk
        self.tally = Tally(desk.record)
        self.tally.begin()
        desk.simulation.journal.subscribers.add(self.tally.note)
        self.last_plan = LastPlan()
        names = QueueNames(most_queues)
        self.sources = (
            QueueSource(desk.record, self.tally, self.last_plan, names),
            PoolSource(desk.record, self.tally, self.last_plan),
        )

    def plans(self) -> None:
        plan, _ = self.desk.plans()
        self.last_plan.settle(plan, self.desk.simulation.now, 1)

    def values(self, name: str) -> Values:
        now = self.desk.simulation.now
        return values((each for source in self.sources for each in source(now)), name)


def values(families: Iterable[Family], name: str) -> Values:
    """By the values of the labels, without those of the pages' own."""
    return {
        (*(value for _, value in point.labels), *filter(None, [point.suffix])): point.value
        for family in families
        if family.name == name
        for point in family.points
    }


def test_jobs_are_counted_by_queue_and_state() -> None:
    metered = Metered(Desk(nodes=1, gpus=2))
    desk = metered.desk
    for _ in range(3):
        desk.submits("ada", gpus=1, queue="a/b", lasts=600)
    desk.lets_pass(10)

    jobs = metered.values("muster_jobs")

    assert jobs["a/b", "running"] == 2
    assert jobs["a/b", "pending"] == 1
    assert jobs["default", "running"] == 0
    assert metered.values("muster_jobs_submitted_total")["a/b", "simulator"] == 3
    assert metered.values("muster_jobs_submitted_total")["a/b", "slurm"] == 0
    assert metered.values("muster_queue_used_gpus")["a",] == 2


def test_what_was_there_before_is_counted_as_well() -> None:
    desk = Desk(nodes=1, gpus=2)
    desk.submits("ada", gpus=1, lasts=600)
    desk.lets_pass(10)

    metered = Metered(desk)

    assert metered.values("muster_jobs")["default", "running"] == 1
    assert metered.values("muster_queue_used_gpus")["default",] == 1


def test_ends_are_counted_by_how_and_were_zero_before() -> None:
    metered = Metered(Desk(nodes=1, gpus=4))
    before = metered.values("muster_jobs_ended_total")
    desk = metered.desk
    bad = desk.submits(gpus=1)
    desk.will_go(bad, Behaviour(work=Duration(5 * SECOND), end=Exited(code=1)))
    desk.submits(gpus=1, lasts=20)
    desk.lets_all_end()

    ended = metered.values("muster_jobs_ended_total")

    assert before["default", "failed", "exited"] == 0
    assert ended["default", "failed", "exited"] == 1
    assert ended["default", "completed", "exited"] == 1
    assert metered.values("muster_jobs")["default", "running"] == 0
    assert metered.values("muster_queue_used_gpus")["default",] == 0
    assert metered.values("muster_job_run_seconds")["default", "_count"] == 2


def test_why_jobs_wait_is_told_by_its_tag() -> None:
    metered = Metered(Desk(nodes=1, gpus=2))
    desk = metered.desk
    desk.submits("ada", gpus=2, lasts=600)
    desk.lets_pass(10)
    desk.submits("bob", gpus=2, queue="a", lasts=600)
    desk.lets_pass(30)
    metered.plans()

    assert metered.values("muster_jobs_waiting") == {("a", "no_room"): 1}
    assert metered.values("muster_queue_ready_gpus")["a",] == 2
    assert metered.values("muster_queue_oldest_wait_seconds")["a",] >= 30
    assert metered.values("muster_queue_waiting_users")["a",] == 1


def test_preemptions_and_lost_time_are_counted() -> None:
    metered = Metered(Desk(nodes=1, gpus=2))
    desk = metered.desk
    desk.submits("ada", gpus=2, job_class="low", lasts=600)
    desk.lets_pass(100)
    desk.submits("bob", gpus=2, job_class="high", lasts=10)
    desk.lets_all_end()

    preempted = metered.values("muster_job_preemptions_total")
    assert sum(preempted.values()) == 1
    assert metered.values("muster_job_requeues_total")["default", "preempted"] == 1
    assert metered.values("muster_lost_gpu_seconds_total")["default", "preempted"] > 100
    assert metered.values("muster_lost_gpu_seconds_total")["default", "node_failed"] == 0


def test_every_gpu_of_a_pool_is_in_one_state() -> None:
    metered = Metered(Desk(nodes=2, gpus=4))
    desk = metered.desk
    desk.submits(gpus=3, lasts=600)
    desk.lets_pass(10)

    pool = metered.values("muster_pool_gpus")

    where = ("lab", "main", "A100-40GB")
    assert {key[-1]: value for key, value in pool.items()} == {
        "free": 5,
        "held": 3,
        "broken": 0,
        "drained": 0,
    }
    assert all(key[:3] == where for key in pool)


def test_gpus_of_a_node_that_drains_are_drained_once_nobody_holds_them() -> None:
    metered = Metered(Desk(nodes=1, gpus=4))
    desk = metered.desk
    desk.submits(gpus=3, lasts=600)
    desk.lets_pass(10)
    assert metered.values("muster_pool_gpus")["lab", "main", "A100-40GB", "drained"] == 0
    desk.record.nodes[NodeId("n1")] = replace(
        desk.record.nodes[NodeId("n1")], state=NodeState.DRAINING
    )
    desk.record.nodes_version += 1

    pool = metered.values("muster_pool_gpus")

    assert {key[-1]: value for key, value in pool.items()} == {
        "free": 0,
        "held": 3,
        "broken": 0,
        "drained": 1,
    }


def test_free_gpus_on_which_nobody_fits_who_waits_are_stranded_and_none_are_fillable() -> None:
    metered = Metered(Desk(nodes=2, gpus=4))
    desk = metered.desk
    for _ in range(2):
        desk.submits(gpus=3, lasts=600)
    desk.lets_pass(10)
    metered.plans()
    assert metered.values("muster_pool_stranded_gpus") == {("lab", "main"): 0}
    desk.submits(gpus=2, lasts=600)
    desk.lets_pass(10)

    metered.plans()

    assert metered.values("muster_pool_stranded_gpus") == {("lab", "main"): 2}
    assert metered.values("muster_pool_fillable_gpus") == {("lab", "main"): 0}


def test_a_planner_that_says_no_room_where_there_is_some_is_found_out() -> None:
    metered = Metered(Desk(nodes=1, gpus=4))
    desk = metered.desk
    desk.submits(gpus=2, lasts=600)
    desk.lets_pass(10)
    waiting = (desk.submits(gpus=2), desk.submits(gpus=4))
    wrong = Plan(
        snapshot_version=desk.record.version,
        policy=SITE.policy,
        waits={
            job: Wait(job=job, why=NoRoom(group="main", placed=0, wanted=1, nodes=1))
            for job in waiting
        },
    )
    metered.last_plan.settle(wrong, desk.simulation.now, 1)
    assert metered.values("muster_pool_fillable_gpus") == {("lab", "main"): 2}

    # What was freed or taken after the plan is not held against it.
    metered.last_plan.settle(replace(wrong, snapshot_version=0), desk.simulation.now, 1)

    assert metered.values("muster_pool_fillable_gpus") == {("lab", "main"): 0}


def test_quotas_are_told_with_what_is_borrowed() -> None:
    queues = {
        QueuePath("a"): Queue(path=QueuePath("a"), quotas=(Quota(guaranteed=1_000, limit=3_000),))
    }
    metered = Metered(Desk(nodes=1, gpus=4, site=replace(SITE, queues={**SITE.queues, **queues})))
    metered.desk.submits(queue="a", gpus=2, lasts=600)
    metered.desk.lets_pass(10)

    assert metered.values("muster_queue_guaranteed_gpus")["a",] == 1
    assert metered.values("muster_queue_limit_gpus")["a",] == 3
    assert metered.values("muster_queue_borrowed_gpus")["a",] == 1


def test_a_job_near_its_limit_without_a_checkpoint_is_late() -> None:
    metered = Metered(Desk(nodes=1, gpus=4))
    metered.desk.submits(gpus=1, lasts=600, limit_s=100)
    metered.desk.lets_pass(85)
    assert metered.values("muster_jobs_late")["default",] == 0

    metered.desk.lets_pass(10)

    assert metered.values("muster_jobs_late")["default",] == 1


def test_a_job_that_has_more_time_than_it_had_is_not_late_any_more() -> None:
    metered = Metered(Desk(nodes=1, gpus=4))
    job = metered.desk.submits(gpus=1, lasts=600, limit_s=100)
    metered.desk.lets_pass(95)
    assert metered.values("muster_jobs_late")["default",] == 1
    held = metered.desk.record.allocations[job]

    metered.desk.record.allocations[job] = replace(held, checkpointed_at=Instant(90_000))

    assert metered.values("muster_jobs_late")["default",] == 0


def test_queues_one_too_many_are_told_together_and_nothing_is_lost() -> None:
    paths = [QueuePath(f"t{number % 3}/q{number}") for number in range(30)]
    queues = {path: Queue(path=path) for path in (*paths, *map(QueuePath, ("t0", "t1", "t2")))}
    site = replace(SITE, queues={**SITE.queues, **queues})
    metered = Metered(Desk(nodes=1, gpus=4, site=site), most_queues=5)
    for path in paths:
        metered.desk.submits(queue=path, gpus=1, lasts=600)
    metered.desk.lets_pass(10)

    jobs = metered.values("muster_jobs")

    assert sum(jobs.values()) == 30
    assert len({queue for queue, _ in jobs}) <= 5 + 4
    assert any(queue == "t0/*" for queue, _ in jobs)


class Look:
    """A cluster of devices that say what a test wants."""

    def __init__(self, *devices: DeviceSample, jobs: tuple[JobSample, ...] = ()) -> None:
        self.devices, self.jobs = devices, jobs
        self.secondhand = False

    def samples(self, now: Instant) -> Samples:
        return Samples(
            at=now,
            devices=tuple(replace(each, at=now) for each in self.devices),
            jobs=tuple(replace(each, at=now) for each in self.jobs),
            secondhand=self.secondhand,
        )


def sample(device: str, **fields: object) -> DeviceSample:
    plain = DeviceSample(
        device=DeviceId(device), node=NodeId("n1"), at=Instant(0), index=0, busy_milli=500
    )
    return replace(plain, **fields)


class Watched:
    """A desk whose devices are looked at."""

    def __init__(self, desk: Desk, seen: Look) -> None:
        self.desk, self.seen = desk, seen
        backends: dict[ClusterName, Backend] = {ClusterName("lab"): seen}  # pyright: ignore[reportAssignmentType]
        self.watcher = Watcher(desk.record, backends, lambda: desk.simulation.now)
        self.source = DeviceSource(self.watcher, desk.record, LeftOut(), Xids())
        self.live = LiveSeries()
        self.watcher.subscribers.append(self.live.look)

    def looks(self) -> None:
        self.watcher.look(self.desk.simulation.now)

    def families(self, later: int = 0) -> list[Family]:
        return list(self.source(Instant(self.desk.simulation.now + later * SECOND)))


def test_what_no_longer_answers_disappears() -> None:
    watched = Watched(Desk(), Look(sample("n1/gpu0"), sample("n1/gpu1")))
    watched.looks()
    assert len(values(watched.families(), "DCGM_FI_DEV_GPU_UTIL")) == 2

    watched.seen.devices = watched.seen.devices[:1]
    watched.looks()

    assert len(values(watched.families(), "DCGM_FI_DEV_GPU_UTIL")) == 1


def test_an_old_look_is_not_told_again() -> None:
    watched = Watched(Desk(), Look(sample("n1/gpu0")))
    watched.looks()

    assert watched.families(later=45)
    assert not any(each.points for each in watched.families(later=46))


def test_what_somebody_else_measured_is_not_exported_again() -> None:
    watched = Watched(Desk(), Look(sample("n1/gpu0")))
    watched.seen.secondhand = True
    watched.looks()

    assert values(watched.families(), "DCGM_FI_DEV_GPU_UTIL") == {}


def test_devices_are_joined_with_their_jobs_beside_and_not_in_their_labels() -> None:
    desk = Desk(nodes=1, gpus=1)
    job = desk.submits("ada", gpus=1, queue="a/b", lasts=600)
    desk.lets_pass(10)
    watched = Watched(desk, Look(sample("n1/gpu0")))
    watched.looks()

    (holder,) = values(watched.families(), "muster_device_job_info")
    (labels,) = values(watched.families(), "DCGM_FI_DEV_GPU_UTIL")

    assert holder[:7] == ("n1/gpu0", "", "n1", str(job), "1", "ada", "a/b")
    assert "ada" not in labels


def test_rules_may_have_devices_say_which_job_has_them() -> None:
    desk = Desk(nodes=1, gpus=1, site=replace(SITE, telemetry=TelemetryRules(job_labels=True)))
    job = desk.submits(gpus=1, lasts=600)
    desk.lets_pass(10)
    watched = Watched(desk, Look(sample("n1/gpu0")))
    watched.looks()

    (labels,) = values(watched.families(), "DCGM_FI_DEV_GPU_UTIL")

    assert labels[-1] == str(job)


def test_a_pod_is_named_as_dcgm_exporter_names_it() -> None:
    desk = Desk(nodes=1, gpus=1)
    pod = PodLaunch(
        namespace="team", name="train-0", uid="u", containers=(Container(name="main", image="x"),)
    )
    labels = {"kubernetes/pod": "team/train-0"}
    desk.submits(gpus=1, lasts=600, labels=labels, launch=Launch(argv=("x",), pod=pod))
    desk.lets_pass(10)
    watched = Watched(desk, Look(sample("n1/gpu0")))
    watched.looks()

    (labels,) = values(watched.families(), "DCGM_FI_DEV_GPU_UTIL")

    assert labels[-2:] == ("team", "train-0")


def test_pods_of_a_private_queue_are_not_named() -> None:
    queue = QueuePath("default")
    private = {**SITE.queues, queue: replace(SITE.queues[queue], private=True)}
    desk = Desk(nodes=1, gpus=1, site=replace(SITE, queues=private))
    pod = PodLaunch(
        namespace="team", name="train-0", uid="u", containers=(Container(name="main", image="x"),)
    )
    labels = {"kubernetes/pod": "team/train-0"}
    desk.submits(gpus=1, lasts=600, labels=labels, launch=Launch(argv=("x",), pod=pod))
    desk.lets_pass(10)
    watched = Watched(desk, Look(sample("n1/gpu0")))
    watched.looks()

    assert "train-0" not in repr(tuple(watched.families()))


def test_reasons_of_low_clocks_are_counted_for_five_minutes() -> None:
    watched = Watched(Desk(), Look(sample("n1/gpu0", throttles=(Throttle.POWER_CAP,))))
    for _ in range(3):
        watched.looks()
        watched.desk.lets_pass(15)
    watched.seen.devices = (sample("n1/gpu0", throttles=()),)
    watched.looks()

    counts = values(watched.families(), "DCGM_EXP_CLOCK_EVENTS_COUNT")
    assert {key[-1]: count for key, count in counts.items() if count} == {"power_cap": 3}

    watched.desk.lets_pass(5 * MINUTE // SECOND)
    watched.looks()
    assert not any(values(watched.families(), "DCGM_EXP_CLOCK_EVENTS_COUNT").values())


@pytest.mark.parametrize(
    ("state", "status"),
    [(DeviceState.WELL, 0), (DeviceState.SUSPECT, 10), (DeviceState.RETIRED, 20)],
)
def test_how_far_a_gpu_is_trusted_is_told_in_dcgm_exporters_words(
    state: DeviceState, status: int
) -> None:
    watched = Watched(Desk(), Look(sample("n1/gpu0")))
    now = watched.desk.simulation.now
    node = watched.desk.record.nodes[NodeId("n1")]
    first, *others = node.devices
    judged = replace(node, devices=(replace(first, judged=state), *others))
    watched.desk.applies(NodeSeen(at=now, node=judged))
    watched.looks()

    (told,) = values(watched.families(), "DCGM_EXP_GPU_HEALTH_STATUS").items()

    assert (told[0][-1], told[1]) == ("ALL", status)


def test_an_instance_is_known_by_where_it_begins() -> None:
    desk = Desk(nodes=1, gpus=1)
    desk.submits("ada", gpus=1, slice=Mig(profile="1g.5gb"), lasts=600)
    desk.submits("bob", gpus=1, slice=Mig(profile="1g.5gb"), lasts=600)
    desk.lets_pass(60)
    starts = sorted(
        (each.start or 0, job)
        for job, held in desk.holds().items()
        for each in held.placements[0].devices
    )
    parts = [
        sample("n1/gpu0", instance=7 + place, profile="1g.5gb", start=start)
        for place, (start, _) in enumerate(starts)
    ]
    watched = Watched(desk, Look(*parts))
    watched.looks()

    holders = values(watched.families(), "muster_device_job_info")

    assert {(key[1], key[3]) for key in holders} == {
        (str(7 + place), str(job)) for place, (_, job) in enumerate(starts)
    }


@pytest.mark.parametrize("signal", ["busy", "cpu"])
def test_what_a_job_used_is_kept_for_an_hour(signal: str) -> None:
    desk = Desk(nodes=1, gpus=1)
    job = desk.submits(gpus=1, lasts=6_000)
    desk.lets_pass(10)
    usage = JobSample(
        job=job,
        attempt=1,
        node=NodeId("n1"),
        at=Instant(0),
        cpu_granted_milli=2_000,
        cpu_used_milli=1_000,
    )
    watched = Watched(desk, Look(sample("n1/gpu0"), jobs=(usage,)))
    for _ in range(3):
        watched.looks()
        desk.lets_pass(15)

    found = {each.key.signal: each.values for each in watched.live.of(job)}

    assert [value for _, value in found[signal]] == [0.5] * 3
    assert watched.live.of(JobId(99)) == ()
