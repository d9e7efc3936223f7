"""What other releases of Slurm print; lines as their users showed them, with other names."""

import pytest

from muster.backends.slurm.gres import gres_in
from muster.backends.slurm.nodes import Fleet, Partition, nodes
from muster.backends.slurm.version import caution, version_in
from muster.model.cluster import NodeState
from muster.model.value import ClusterName
from unit.backends.slurm.given import line, only

FLEET = Fleet(cluster=ClusterName("lab"), partitions=(Partition(name="main"),))

OF_21_08 = (
    "NodeName=gpu06 Arch=x86_64 CoresPerSocket=6 CPUAlloc=12 CPUTot=12 CPULoad=11.90"
    " AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:2 NodeAddr=gpu06 NodeHostName=gpu06"
    " Version=21.08.6 OS=Linux 3.10.0-1062.el7.x86_64 #1 SMP Wed Aug 7 18:08:02 UTC 2019"
    " RealMemory=254720 AllocMem=254712 FreeMem=9000 Sockets=2 Boards=1 State=ALLOCATED"
    " ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main"
    " BootTime=1719000000 SlurmdStartTime=1719000100 LastBusyTime=1720924000"
    " CfgTRES=cpu=12,mem=254720M,gres/gpu=2 AllocTRES=cpu=12,mem=254712M,gres/gpu=2"
    " CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0"
)
OF_24_11 = (
    "NodeName=node01 Arch=x86_64 CoresPerSocket=1 CPUAlloc=1 CPUEfctv=1 CPUTot=1 CPULoad=1.00"
    " AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) NodeAddr=10.1.15.103"
    " NodeHostName=node01 Version=24.11.5 OS=Linux 6.12.90+deb13-amd64 #1 SMP PREEMPT_DYNAMIC"
    " RealMemory=1800 AllocMem=0 FreeMem=76 Sockets=1 Boards=1 State=ALLOCATED ThreadsPerCore=1"
    " TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main BootTime=1780000000"
    " SlurmdStartTime=1780000800 LastBusyTime=1780035000 ResumeAfterTime=None"
    " CfgTRES=cpu=1,mem=1800M,billing=1 AllocTRES=cpu=1 CurrentWatts=0 AveWatts=0"
)
OF_25_05 = (
    "NodeName=cloud-1 Arch=aarch64 CoresPerSocket=1 CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.00"
    " AvailableFeatures=arm ActiveFeatures=arm Gres=(null) NodeAddr=10.3.140.69"
    " NodeHostName=ip-10-3-140-69 Version=25.05.5 OS=Linux 5.10.218 #1 SMP Tue Jun 4 16:52:10 UTC"
    " RealMemory=124518 AllocMem=0 FreeMem=110763 Sockets=64 Boards=1 State={}"
    " ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main"
    " BootTime=1719946809 SlurmdStartTime=1720466005 LastBusyTime=1720466005 ResumeAfterTime=None"
    " CfgTRES=cpu=64,mem=124518M,billing=64 AllocTRES= CapWatts=n/a CurrentWatts=0 AveWatts=0"
    " ExtSensorsJoules=n/a ExtSensorsWatts=0 ExtSensorsTemp=n/a"
    " Reason=Maintain Minimum Number Of Instances [root@1719946740]"
    " InstanceId=i-04927897a9ce3c143 InstanceType=hpc7g.16xlarge"
)


@pytest.mark.parametrize(
    ("said", "cpus", "memory_mib", "gpus"),
    [
        (OF_21_08, 12, 254_720, 2),
        (OF_24_11, 1, 1_800, 0),
        (OF_25_05.format("IDLE+CLOUD"), 64, 124_518, 0),
    ],
)
def test_a_node_is_read_whatever_else_is_told_of_it(
    said: str, cpus: int, memory_mib: int, gpus: int
) -> None:
    (found,) = nodes(said, FLEET)

    node = found.node
    assert (node.cpu_milli, node.memory_mib, len(node.devices)) == (1_000 * cpus, memory_mib, gpus)
    assert node.state is NodeState.UP


def test_what_follows_a_reason_is_no_part_of_it() -> None:
    (found,) = nodes(OF_25_05.format("DOWN+CLOUD+NOT_RESPONDING"), FLEET)

    assert found.node.state is NodeState.DOWN
    assert found.node.reason == "Maintain Minimum Number Of Instances"


@pytest.mark.parametrize("said", ["gpu:a100:2", "gres:gpu:a100:2", "gres/gpu:a100:2"])
def test_what_a_job_asked_each_node_for_was_told_in_three_ways(said: str) -> None:
    """Until 20.11, from 21.08 on, and from 23.02 on."""
    (found,) = gres_in(said)

    assert (found.name, found.type, found.count) == ("gpu", "a100", 2)


@pytest.mark.parametrize("prefix", ["", "gres:", "gres/"])
def test_instances_are_counted_in_each_of_them(prefix: str) -> None:
    held = only(line(tres_alloc="cpu=4", tres_per_node=f"{prefix}gpu:a100_1g.5gb:2")).holds

    assert held.mig == {"1g.5gb": 2}


def test_a_cluster_says_which_slurm_it_is() -> None:
    said = (
        "Configuration data as of 1795121309\nSLURM_CONF = /etc/slurm\nSLURM_VERSION  = 22.05.8\n"
    )

    assert version_in(said) == "22.05.8"
    assert version_in("slurm_load_ctl_conf error") == ""


@pytest.mark.parametrize("version", ["20.11.9", "22.05.8", "23.11.4", "24.05.2", "25.11.0-rc1"])
def test_of_a_slurm_that_we_know_nobody_is_warned(version: str) -> None:
    assert caution(version) == ""


@pytest.mark.parametrize(
    ("version", "what"),
    [("19.05.5", "older than 20.11"), ("26.05.0", "newer than 25.11"), ("", "which Slurm it is")],
)
def test_of_any_other_the_administrator_is(version: str, what: str) -> None:
    assert what in caution(version)
