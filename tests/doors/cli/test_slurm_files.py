"""`muster import` and `muster export slurm`: real files through the real command."""

from pathlib import Path

import pytest

from doors.cli.calling import Caller

CONF = """\
ClusterName=lab
Include nodes.conf
PartitionName=team-a Nodes=node[1-2] AllowUsers=alice,bob MaxTime=60
PartitionName=team-b Nodes=node3 AllowUsers=carol
JobSubmitPlugins=lua
Epilog=/etc/slurm/epilog.sh
"""


@pytest.fixture
def conf(tmp_path: Path) -> str:
    (tmp_path / "nodes.conf").write_text("NodeName=node[1-3] CPUs=8 RealMemory=64000 Gres=gpu:4\n")
    (tmp_path / "gres.conf").write_text("NodeName=node[1-3] Name=gpu Type=h100 Count=4\n")
    (tmp_path / "slurm.conf").write_text(CONF)
    return str(tmp_path)


def test_an_import_can_be_simulated_and_exported_again(
    muster: Caller, conf: str, tmp_path: Path
) -> None:
    nodes = tmp_path / "nodes.yaml"
    found = muster("import", f"{conf}/slurm.conf", f"{conf}/gres.conf", "--nodes", str(nodes))
    site = tmp_path / "cluster.yaml"
    site.write_text(found.out)
    trace = tmp_path / "jobs.csv"
    trace.write_text("submit_s,duration_s,gpus,user\n0,60,2,alice\n")

    simulated = muster("simulate", str(trace), "--site", str(site), "--cluster", str(nodes))
    out = tmp_path / "out"
    exported = muster("export", "slurm", str(out), "--site", str(site), "--nodes", str(nodes))

    assert (found.code, simulated.code, exported.code) == (0, 0, 0), simulated.err
    assert "team-a: {cluster: local, max_time: 1h, users: [alice, bob]}" in found.out
    assert "Epilog=/etc/slurm/epilog.sh: nothing is run after a job" in found.err
    assert "1 came, 1 completed" in simulated.out
    assert "NodeName=node[1-3] CPUs=8" in (out / "slurm.conf").read_text()
    assert "Type=h100 File=/dev/nvidia[0-3]" in (out / "gres.conf").read_text()


def test_a_file_that_is_no_dump_is_refused_with_its_line(muster: Caller, tmp_path: Path) -> None:
    dump = tmp_path / "lab.cfg"
    dump.write_text("Cluster - 'lab'\nnonsense\n")

    outcome = muster("import", str(dump))

    assert outcome.code == 1
    assert "line 2: 'nonsense' is no line of a sacctmgr dump" in outcome.err


def test_a_gpu_that_is_not_described_as_type_and_model_is_refused(
    muster: Caller, conf: str
) -> None:
    outcome = muster("import", f"{conf}/slurm.conf", "--gpu", "a100")

    assert outcome.code == 2
    assert "write TYPE=MODEL" in outcome.err
