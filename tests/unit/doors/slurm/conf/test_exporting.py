"""Rules and nodes, written as Slurm's files: read again, they say the same."""

from hypothesis import given
from hypothesis import strategies as st

from muster.doors.slurm.conf.association_file import entries_of
from muster.doors.slurm.conf.exporting import Exported, exported
from muster.doors.slurm.conf.found import Files
from muster.doors.slurm.conf.importing import imported
from muster.doors.slurm.conf.lines import lines_of
from muster.doors.slurm.conf.queues_of import rows_of
from muster.model.cluster import Pool
from muster.model.policy import OrderWeights, Policy, PreemptPolicy
from muster.model.queue import Ceiling, JobClass, Queue, Quota
from muster.model.rack import Rack
from muster.model.site import Grant, Role, Site, User
from muster.model.value import (
    DAY,
    MINUTE,
    SECOND,
    ClassName,
    ClusterName,
    Duration,
    PoolName,
    QueuePath,
    UserName,
)
from muster.simulator.nodes import made

NORMAL, HIGH = ClassName("normal"), ClassName("high")
ADA = UserName("ada")


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Rules that Slurm's files can say completely."""
    spans = st.integers(1, 10_000).map(lambda seconds: Duration(seconds * SECOND))
    weights = st.integers(0, 10**6)
    classes = {
        name: JobClass(
            name=name,
            priority=priority,
            preempts=(NORMAL,) if name == HIGH and draw(st.booleans()) else (),
            grace=draw(spans),
            min_run=draw(spans),
            max_time=draw(st.none() | spans),
            per_user=Ceiling(
                gpu_milli=draw(st.none() | st.integers(1, 64).map(lambda count: count * 1_000)),
                jobs=draw(st.none() | st.integers(1, 99)),
            ),
        )
        for name, priority in ((NORMAL, 10), (HIGH, 100))
    }
    paths = [QueuePath("a"), QueuePath("a/b"), QueuePath("c")]
    queues = {
        path: Queue(
            path=path,
            weight=draw(st.integers(1, 99)),
            quotas=(Quota(limit=draw(st.integers(1, 99)) * 1_000),) if draw(st.booleans()) else (),
            max_jobs=draw(st.none() | st.integers(1, 99)),
            may_submit=(ADA,) if path != "c" else (),
        )
        for path in paths
    }
    pool = Pool(
        name=PoolName("p"),
        cluster=ClusterName("local"),
        levels=("spine", "leaf"),
        default_time=draw(st.none() | spans),
        max_time=draw(st.none() | spans),
        queues=(QueuePath("c"),) if draw(st.booleans()) else (),
        classes=(HIGH,) if draw(st.booleans()) else (),
        accepts=draw(st.booleans()),
        starts=draw(st.booleans()),
    )
    return Site(
        queues=queues,
        classes=classes,
        pools={pool.name: pool},
        users={
            ADA: User(
                name=ADA,
                grants=(Grant(role=Role.QUEUE_ADMIN, queue=QueuePath("a")),),
                default_queue=QueuePath("a/b"),
            ),
            UserName("root"): User(name=UserName("root"), grants=(Grant(role=Role.ADMIN),)),
        },
        default_queue=QueuePath("a"),
        default_pool=draw(st.none() | st.just(pool.name)),
        policy=Policy(
            order=OrderWeights(
                job_class=draw(weights),
                fair_share=draw(weights),
                age=draw(weights),
                short=0,
                queue=draw(weights),
                age_full=Duration(3 * DAY),
            ),
            preempt=PreemptPolicy(
                by_class=any(each.preempts for each in classes.values()), reclaim=False
            ),
        ),
    )


RACKS = (
    Rack(
        names=("n1", "n2"), gpus="8xA100-40GB", cpus=64, memory_gib=512, pool="p", where=("s", "a")
    ),
    Rack(names=("n3",), gpus="2xT4-16GB", cpus=8, memory_gib=64, pool="p", where=("s", "b")),
)


def written(site: Site) -> Exported:
    return exported(site, tuple(made(RACKS, site)), "lab")


def read_again(files: Exported) -> Files:
    text = files.files
    return Files(
        conf=tuple(lines_of(text["slurm.conf"])),
        gres=tuple(lines_of(text["gres.conf"])),
        topology=tuple(lines_of(text["topology.conf"])),
        accounts=tuple(entries_of(text["associations.cfg"])),
        classes=rows_of(text["qos.txt"]),
    )


@given(sites())
def test_what_is_exported_and_imported_is_the_same(site: Site) -> None:
    again = imported(read_again(written(site)))

    assert again.site == site
    assert [(rack.names, rack.gpus, rack.cpus) for rack in again.racks] == [
        (rack.names, rack.gpus, rack.cpus) for rack in RACKS
    ]


def test_what_slurms_files_cannot_say_is_reported_to_the_user() -> None:
    pool = Pool(
        name=PoolName("p"),
        cluster=ClusterName("local"),
        users=(ADA,),
        groups=("lab",),
        gpu_hour_micros=1,
        spot=True,
    )
    queue = Queue(path=QueuePath("a"), quotas=(Quota(guaranteed=4_000),))

    found = written(Site(queues={queue.path: queue}, pools={pool.name: pool}))

    texts = [f"{note.about}: {note.text}" for note in found.notes]
    assert texts == [
        "pool p: Slurm knows no AllowUsers: put ada into group muster-p",
        "pool p: price and spot are not known to Slurm",
        "queue a: guarantees and lending are not known to Slurm",
        "policy.order.short: Slurm does not learn how long jobs take",
    ]
    assert "AllowGroups=lab,muster-p " in found.files["slurm.conf"]


def test_times_are_written_to_the_second() -> None:
    site = Site(
        classes={NORMAL: JobClass(name=NORMAL, max_time=Duration(90 * SECOND + 30 * MINUTE))},
        pools={PoolName("p"): Pool(name=PoolName("p"), cluster=ClusterName("local"))},
    )

    assert "normal|0|00:00:30||||00:31:30" in written(site).files["qos.txt"].replace("requeue", "")


def test_what_a_queue_may_borrow_bounds_its_account() -> None:
    line = Quota(guaranteed=4_000, borrow_limit=2_000)
    queue = Queue(path=QueuePath("a"), quotas=(line,))

    pool = Pool(name=PoolName("p"), cluster=ClusterName("local"))
    found = written(Site(queues={queue.path: queue}, pools={pool.name: pool}))

    assert "GrpTRES=gres/gpu=6" in found.files["associations.cfg"].replace("'", "")
