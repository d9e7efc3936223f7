"""A user of dask-kubernetes: a cluster of two workers, a computation on it, and one worker more."""

import os
import sys

from dask.distributed import Client
from dask_kubernetes.operator import KubeCluster, make_cluster_spec

PLACE, IMAGE, ENVIRONMENT = sys.argv[1:4]
FOLDERS = ("/usr", "/lib", "/lib64", os.path.realpath(sys.base_prefix), ENVIRONMENT)
"""Of this machine: the image has no Python."""
DASK = f"{ENVIRONMENT}/bin/dask"

# Pods share the network of their machine.
SCHEDULER = "tcp://127.0.0.1:8786"


def main() -> None:
    with (
        KubeCluster(
            namespace=PLACE, custom_cluster_spec=spec(), shutdown_on_close=True, quiet=True
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        print("sum", client.submit(sum, range(10)).result(timeout=60))
        hosts = client.run(os.getpid)
        print("workers", len(hosts))
        cluster.scale(3)
        client.wait_for_workers(3, timeout=120)
        print("scaled", len(client.scheduler_info()["workers"]))


def spec() -> dict[str, object]:
    made = make_cluster_spec(name="dc", image=IMAGE, n_workers=2)
    worker, scheduler = made["spec"]["worker"]["spec"], made["spec"]["scheduler"]["spec"]
    named = ("--name", "$(DASK_WORKER_NAME)", "--no-dashboard", "--no-nanny", "--nthreads", "1")
    of_workers = [DASK, "worker", SCHEDULER, *named]
    of_schedulers = [DASK, "scheduler", "--host", "127.0.0.1"]
    for pod, args in ((worker, of_workers), (scheduler, of_schedulers)):
        folders = [each for each in dict.fromkeys(FOLDERS) if os.path.isdir(each)]
        container = pod["containers"][0]
        container["args"] = args
        container["volumeMounts"] = [
            {"name": f"f{place}", "mountPath": each, "readOnly": True}
            for place, each in enumerate(folders)
        ]
        pod["volumes"] = [
            {"name": f"f{place}", "hostPath": {"path": each}} for place, each in enumerate(folders)
        ]
    del worker["containers"][0]["ports"]
    return made


if __name__ == "__main__":
    main()
