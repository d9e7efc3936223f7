"""`muster cluster`: what is asked of the installation."""

from pathlib import Path

from doors.cli.calling import Caller
from muster.doors.cli.daemon.port import (
    AddClusterOptions,
    AddKubernetesOptions,
    ClustersOptions,
    RemoveClusterOptions,
)


def test_a_slurm_cluster_is_added_with_what_was_said(muster: Caller) -> None:
    outcome = muster(
        *("cluster", "add", "big", "--slurm", "--conf", "/etc/slurm/slurm.conf", "--delegate"),
        *("--partition", "gpu", "--partition", "dgx", "--model", "a100=A100-80GB"),
        *("--containers", "pyxis", "--queue-account", "acme/nlp=science"),
        *("--queue-account", "acme=eng", "--queue-qos", "acme=high"),
    )

    assert outcome.code == 0
    assert muster.daemon.calls == [
        AddClusterOptions(
            name="big",
            conf="/etc/slurm/slurm.conf",
            delegate=True,
            partitions=("gpu", "dgx"),
            accounts=(("acme/nlp", "science"), ("acme", "eng")),
            qualities=(("acme", "high"),),
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


def test_a_kubernetes_cluster_is_added_with_what_was_said(muster: Caller) -> None:
    outcome = muster(
        *("cluster", "add", "gke", "--kubernetes", "--kubeconfig", "/etc/gke", "--context", "gke"),
        *("--namespace", "jobs", "--queue-namespace", "acme/nlp=nlp", "--image", "python:3.12"),
        *("--queue-image", "acme/nlp=torch", "--mount", "/data", "--mount", "home:/home"),
        *("--level", "topology.kubernetes.io/zone"),
    )

    assert outcome.code == 0
    assert muster.daemon.calls == [
        AddKubernetesOptions(
            name="gke",
            kubeconfig=Path("/etc/gke"),
            context="gke",
            namespace="jobs",
            namespaces=(("acme/nlp", "nlp"),),
            image="python:3.12",
            images=(("acme/nlp", "torch"),),
            mounts=("/data", "home:/home"),
            levels=("topology.kubernetes.io/zone",),
        )
    ]


def test_options_of_the_other_kind_are_refused(muster: Caller) -> None:
    slurm = muster("cluster", "add", "big", "--slurm", "--image", "torch")
    kubernetes = muster("cluster", "add", "big", "--kubernetes", "--conf", "/etc/slurm.conf")
    neither = muster("cluster", "add", "big")

    assert "--image is for Kubernetes clusters" in slurm.err
    assert "--conf is for Slurm clusters" in kubernetes.err
    assert "which kind of cluster" in neither.err
    assert muster.daemon.calls == []
