"""`muster cluster`: what is asked of the installation."""

from doors.cli.calling import Caller
from muster.doors.cli.daemon.port import AddClusterOptions, ClustersOptions, RemoveClusterOptions


def test_a_slurm_cluster_is_added_with_what_was_said(muster: Caller) -> None:
    outcome = muster(
        *("cluster", "add", "big", "--slurm", "--conf", "/etc/slurm/slurm.conf", "--delegate"),
        *("--partition", "gpu", "--partition", "dgx", "--model", "a100=A100-80GB"),
        *("--containers", "pyxis"),
    )

    assert outcome.code == 0
    assert muster.daemon.calls == [
        AddClusterOptions(
            name="big",
            conf="/etc/slurm/slurm.conf",
            delegate=True,
            partitions=("gpu", "dgx"),
            containers="pyxis",
            models=(("a100", "A100-80GB"),),
        )
    ]


def test_a_model_without_its_type_is_refused(muster: Caller) -> None:
    outcome = muster("cluster", "add", "big", "--slurm", "--model", "A100-80GB")

    assert outcome.code == 2
    assert "write TYPE=MODEL" in outcome.err
    assert muster.daemon.calls == []


def test_clusters_are_listed_and_removed(muster: Caller) -> None:
    muster("cluster", "list")
    muster("cluster", "remove", "big")

    assert muster.daemon.calls == [ClustersOptions(), RemoveClusterOptions(name="big")]
