from properties.kubernetes_world import KubernetesWorld, pod


def test_a_quota_says_how_much_of_it_is_used() -> None:
    world = KubernetesWorld()
    hard = {"pods": "3", "count/configmaps": "5", "services": "1", "nvidia.com/gpu": "4"}
    quota = world.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "team"},
            "spec": {"hard": hard},
        }
    )
    held = world.create(pod("a"))
    world.create(pod("b"))
    world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    world.settles()
    assert world.fresh(quota)["status"] == {
        "hard": hard,
        "used": {"pods": "2", "count/configmaps": "1", "services": "0", "nvidia.com/gpu": "0"},
    }

    world.ends(held)
    world.settles()

    assert world.fresh(quota)["status"]["used"]["pods"] == "1"
