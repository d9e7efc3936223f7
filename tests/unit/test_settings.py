"""What settings say together with those of another state folder."""

from pathlib import Path

from muster.settings import KubernetesCluster, Settings, clusters_of, keep_settings, made_home

LAB = KubernetesCluster(name="lab", kubeconfig="", adopts={"nlp": "nlp"})


def test_a_standby_has_the_clusters_of_the_muster_for_which_it_stands_by(tmp_path: Path) -> None:
    leader = made_home(tmp_path / "leader")
    keep_settings(leader, Settings(clusters=(LAB,)))

    standby = Settings(standby_for=str(leader))

    assert clusters_of(tmp_path / "standby", standby) == (LAB,)
    assert clusters_of(leader, Settings(clusters=())) == ()
