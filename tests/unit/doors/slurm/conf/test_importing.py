"""Slurm's configuration files, read into rules and nodes."""

from muster.doors.config.show import site_text
from muster.doors.slurm.conf.association_file import entries_of
from muster.doors.slurm.conf.found import Files, Imported
from muster.doors.slurm.conf.importing import imported
from muster.doors.slurm.conf.lines import lines_of
from muster.doors.slurm.conf.queues_of import rows_of
from muster.model.queue import PreemptMode
from muster.model.value import DAY, HOUR, MINUTE, ClassName, GpuModel, PoolName, QueuePath, UserName

CONF = r"""
ClusterName=lab                     # a comment
SlurmctldHost=head
PriorityType=priority/multifactor
PriorityWeightFairshare=100000
PriorityWeightQOS=1000000
PriorityDecayHalfLife=1-0
PreemptType=preempt/qos
PreemptMode=REQUEUE
KillWait=5
DefMemPerCPU=4000
NodeName=DEFAULT CPUs=64 RealMemory=512000 \
         Features=ib
NodeName=node[01-04] Gres=gpu:a100:8
NodeName=old1 CPUs=16 RealMemory=64000 Gres=gpu:t4:2 Features=eth
PartitionName=DEFAULT State=UP MaxTime=2-0
PartitionName=gpu-research Nodes=node[01-04] AllowUsers=alice,bob Default=YES
PartitionName=old Nodes=old1 MaxTime=INFINITE DefaultTime=60 AllowAccounts=eng AllowGroups=staff
PartitionName=debug Nodes=node[01-02] MaxTime=30 PriorityTier=10
"""

DUMP = """
Cluster - 'lab':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'science':Description='s':Organization='lab':Fairshare=60:GrpTRES=gres/gpu=8
Account - 'eng':Description='e':Organization='lab':Fairshare=40:GrpJobs=5
Parent - 'science'
Account - 'physics':Description='p':Organization='lab':Fairshare=2
Parent - 'physics'
User - 'alice':DefaultAccount='physics':Fairshare=1:QOS='high,normal':Coordinator='science'
Parent - 'eng'
User - 'bob':DefaultAccount='eng':Fairshare=1:MaxJobs=3
"""

QOS = """\
Name|Priority|GraceTime|Preempt|PreemptMode|MaxWall|MaxTRESPU|UsageFactor
normal|10|00:00:00||cluster|||1.000000
high|100|00:00:30|normal|requeue|1-00:00:00|cpu=64,gres/gpu=4|2.000000
"""


def read(conf: str = CONF, *, gres: str = "", topology: str = "") -> Imported:
    files = Files(
        conf=tuple(lines_of(conf)),
        gres=tuple(lines_of(gres)),
        topology=tuple(lines_of(topology)),
        accounts=tuple(entries_of(DUMP)),
        classes=rows_of(QOS),
        models={"a100": GpuModel("A100-80GB")},
    )
    return imported(files)


def remarks(found: Imported) -> list[str]:
    return [f"{note.about}: {note.text}" for note in found.notes]


def test_partitions_with_nodes_of_their_own_are_pools_with_their_guests() -> None:
    pools = read().site.pools

    research, old = pools[PoolName("gpu-research")], pools[PoolName("old")]
    assert set(pools) == {"gpu-research", "old"}
    assert read().site.default_pool == "gpu-research"
    assert (research.users, research.max_time) == (("alice", "bob"), 2 * DAY)
    assert (old.queues, old.groups, old.users) == ((QueuePath("eng"),), ("staff",), ())
    assert (old.max_time, old.default_time) == (None, HOUR)


def test_a_partition_over_the_nodes_of_another_is_a_class_and_that_is_reported() -> None:
    found = read()

    debug = found.site.classes[ClassName("debug")]
    assert (debug.priority, debug.max_time) == (10, 30 * MINUTE)
    assert any("submit with --qos=debug" in text for text in remarks(found))


def test_qos_are_classes() -> None:
    classes = read().site.classes

    high = classes[ClassName("high")]
    assert (high.priority, high.preempts, high.preempt_mode) == (
        100,
        (ClassName("normal"),),
        PreemptMode.REQUEUE,
    )
    assert (high.grace, high.max_time) == (30_000, DAY)
    assert (high.per_user.gpu_milli, high.per_user.cpu_milli) == (4_000, 64_000)
    assert classes[ClassName("normal")].grace == 5_000


def test_accounts_are_queues_in_their_tree_and_users_have_their_places() -> None:
    site = read().site

    physics, science = site.queues[QueuePath("science/physics")], site.queues[QueuePath("science")]
    assert (physics.weight, physics.may_submit) == (2, (UserName("alice"),))
    assert [line.limit for line in science.quotas] == [8_000]
    assert site.queues[QueuePath("eng")].max_jobs == 5
    assert site.users[UserName("alice")].default_queue == "science/physics"
    assert [str(grant.role) for grant in site.users[UserName("root")].grants] == ["admin"]
    assert site.users[UserName("alice")].grants[0].queue == "science"


def test_weights_and_half_life_are_taken_over() -> None:
    policy = read().site.policy

    assert (policy.order.job_class, policy.order.fair_share, policy.order.age) == (
        1_000_000,
        100_000,
        0,
    )
    assert policy.order.short == 0, "Slurm gives no priority for what a job is expected to take"
    assert policy.share.half_life == DAY
    assert policy.preempt.by_class


def test_without_multifactor_priority_first_come_is_first_served() -> None:
    policy = read("NodeName=n1 CPUs=2\nPartitionName=p Nodes=ALL").site.policy

    order = policy.order
    assert (order.job_class, order.fair_share, order.age, order.short) == (0, 0, 1_000, 0)
    assert not policy.preempt.by_class


def test_nodes_are_racks_of_those_that_are_alike() -> None:
    racks = read().racks

    assert [(rack.names, rack.gpus, rack.pool) for rack in racks] == [
        (("node01", "node02", "node03", "node04"), "8xA100-80GB", "gpu-research"),
        (("old1",), "2xT4-16GB", "old"),
    ]
    assert (racks[0].cpus, racks[0].memory_gib, racks[0].labels) == (64, 500, {"ib": "true"})


def test_mig_types_and_uuids_are_read_and_reported() -> None:
    conf = (
        "NodeName=nodex CPUs=8 RealMemory=64000 Gres=gpu:MIG-GPU-0:1,gpu:a100_1g.5gb:7\n"
        "PartitionName=p Nodes=nodex"
    )
    found = read(conf, gres="Name=gpu Type=MIG-GPU-0 UUID=GPU-abc123 Count=1")

    assert found.racks[0].gpus == "1xGPU-40GB+1xA100-80GB"
    assert any("UUID=GPU-abc123" in text for text in remarks(found))
    assert any("cut as jobs ask" in text for text in remarks(found))


def test_switches_are_places() -> None:
    topology = (
        "SwitchName=s1 Nodes=node[01-02]\nSwitchName=s2 Nodes=node[03-04],old1\n"
        "SwitchName=top Switches=s[1-2]"
    )
    found = read(topology=topology)

    assert found.site.pools[PoolName("old")].levels == ("spine", "leaf")
    assert {rack.where for rack in found.racks} == {("top", "s1"), ("top", "s2")}


def test_what_has_no_counterpart_is_listed_with_what_to_do() -> None:
    found = remarks(read())

    assert any(
        text.startswith("DefMemPerCPU=4000: a job that asks for no memory") for text in found
    )
    assert "QOS high: usagefactor=2.000000 has no counterpart" in found
    assert any(text.startswith("User bob in eng: maxjobs=3") for text in found)
    assert not any("SlurmctldHost" in text for text in found)


def test_the_rules_can_be_written_as_a_configuration_file() -> None:
    assert "gpu-research: {cluster: local" in site_text(read().site)
