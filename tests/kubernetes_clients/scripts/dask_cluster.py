"""A user of dask-kubernetes: a cluster of two workers, a computation on it, and one worker more."""

import os
import socket
import sys

from dask.distributed import Client
from dask_kubernetes.operator import KubeCluster, make_cluster_spec

PLACE, IMAGE, ENVIRONMENT = sys.argv[1:4]
FOLDERS = ("/usr", "/lib", "/lib64", os.path.realpath(sys.base_prefix), ENVIRONMENT)
"""Of this machine: the image has no Python."""
DASK = (f"{ENVIRONMENT}/bin/python", "-m", "dask")
HERE = "127.0.0.1"
PATIENCE_S = 200


def main() -> None:
    with (
        KubeCluster(
            namespace=PLACE,
            custom_cluster_spec=spec(*two_free_ports()),
            shutdown_on_close=True,
            quiet=True,
            resource_timeout=PATIENCE_S,
        ) as cluster,
        Client(cluster, timeout=PATIENCE_S) as client,
    ):
        client.wait_for_workers(2, timeout=PATIENCE_S)
        print("sum", client.submit(sum, range(10)).result(timeout=PATIENCE_S))
        hosts = client.run(os.getpid)
        print("workers", len(hosts))
        cluster.scale(3)
        client.wait_for_workers(3, timeout=PATIENCE_S)
        print("scaled", len(client.scheduler_info()["workers"]))


def two_free_ports() -> tuple[int, int]:
    """Pods share the network of their machine, where others may use the ports that are usual."""
    with socket.socket() as one, socket.socket() as other:
        one.bind((HERE, 0))
        other.bind((HERE, 0))
        return one.getsockname()[1], other.getsockname()[1]


def spec(port: int, dashboard: int) -> dict[str, object]:
    made = make_cluster_spec(name="dc", image=IMAGE, n_workers=2)
    worker, scheduler = made["spec"]["worker"]["spec"], made["spec"]["scheduler"]["spec"]
    named = ("--name", "$(DASK_WORKER_NAME)", "--no-dashboard", "--no-nanny", "--nthreads", "1")
    of_workers = [*DASK, "worker", f"tcp://{HERE}:{port}", *named]
    at = ("--host", HERE, "--port", str(port), "--dashboard-address", f"{HERE}:{dashboard}")
    of_schedulers = [*DASK, "scheduler", *at]
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
    opened, served = scheduler["containers"][0]["ports"], made["spec"]["scheduler"]["service"]
    for number, inside, outside in zip((port, dashboard), opened, served["ports"], strict=True):
        inside["containerPort"] = outside["port"] = number
    return made


if __name__ == "__main__":
    main()
