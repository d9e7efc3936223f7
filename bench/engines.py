"""How many pods a second get their nodes: from Muster, and from Kubernetes' own scheduler.

Each has the same API server, nodes that nobody runs, and pods of one GPU each. Schedulers find
their pods there already, and time counts from the first that is bound to the last. Muster keeps a
quota meanwhile, and starts a quarter of them in gangs of four.
The last row counts from when jobs are asked for: there Muster also makes the pods, each with the
Secret that its variables are in. Kueue is not run here: what it admits was measured elsewhere.
"""

import argparse
import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from bench._http import Connection, Server
from bench._musters import Home, muster, until
from bench._real_kubernetes import programs, real_kubernetes
from bench.report import Row, report
from muster.backends.kubernetes.client import Client, KubernetesDownError
from muster.backends.kubernetes.kubeconfig import access_of

NODES, PODS, GPUS_EACH, GANG = 500, 2_000, 8, 4
PATIENCE_S = 900.0
TUNED = {"qps": 5_000, "burst": 5_000}

KUEUE: Row = {
    "who": "Kueue, jobs admitted (not run here)",
    "pods": 500,
    "seconds": 32.1,
    "bound each s": 15.6,
}

_CORE = "/api/v1"
_OURS = f"{_CORE}/namespaces/default/pods"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.engines", description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--nodes", type=int, default=NODES)
    asked = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="engines-") as made, real_kubernetes() as server:
        folder = Path(made)
        _write_kubeconfig(folder, server)
        _make_nodes(server, asked.nodes)
        for name, tuning in (("kube-scheduler", {}), ("kube-scheduler, tuned", TUNED)):
            rows.append(_row(name, asked.pods, _scheduled(folder, server, asked.pods, tuning)))
        rows.append(KUEUE)
        for name, place in (("", _adopted), (", which makes the pods", _placed)):
            with muster(nodes=1, gpus="1xT4-16GB") as home:
                _keep_quota(home, asked.pods)
                lasted = place(home, folder, server, asked.pods)
                rows.append(_row(f"Muster, gangs and quota{name}", asked.pods, lasted))
                _clear(home, server)
    tuned, ours, making = (float(rows[number]["bound each s"]) for number in (1, 3, 4))
    figures = {
        "Muster by tuned scheduler": round(ours / tuned, 2),
        "Muster making pods by tuned scheduler": round(making / tuned, 2),
    }
    report("engines", figures, rows)


def _row(name: str, pods: int, lasted_s: float) -> Row:
    rate = round(pods / lasted_s, 1)
    return {"who": name, "pods": pods, "seconds": round(lasted_s, 1), "bound each s": rate}


def _scheduled(folder: Path, server: Server, pods: int, tuning: dict[str, int]) -> float:
    """From the first that is bound to the last."""
    _all(server, (_pod(number) for number in range(pods)))
    with _bindings(folder) as bound:
        log = (folder / "scheduler.log").open("wb")
        words = [str(programs() / "kube-scheduler"), f"--config={_scheduler(folder, tuning)}"]
        process = subprocess.Popen([*words, "--secure-port=0"], stdout=log, stderr=log)  # noqa: S603
        try:
            _wait(lambda: len(bound) >= pods)
        finally:
            process.terminate()
            process.wait(60)
            log.close()
    _remove_pods(server)
    return max(bound) - min(bound)


def _keep_quota(home: Home, pods: int) -> None:
    rules = yaml.safe_load(home.client.site())
    queues = {**rules["queues"], "team": {"quotas": [{"limit": pods}]}}
    home.client.apply(yaml.safe_dump({**rules, "queues": queues}))


def _adopted(home: Home, folder: Path, server: Server, pods: int) -> float:
    """The pods name us as their scheduler; from the first that is bound to the last."""
    _all(server, (_pod(number, pods // 4 // GANG * GANG) for number in range(pods)))
    with _bindings(folder) as bound:
        _connect(home, folder, "--adopt", "default=team:user")
        _wait(lambda: len(bound) >= pods)
    return max(bound) - min(bound)


def _connect(home: Home, folder: Path, *words: str) -> None:
    kubeconfig = ("--kubeconfig", str(folder / "kubeconfig"))
    home.run("cluster", "add", "big", "--kubernetes", *kubeconfig, *words)
    _wait(lambda: any(node.cluster == "big" for node in home.client.nodes()))


def _placed(home: Home, folder: Path, _: Server, pods: int) -> float:
    """From when the jobs are asked for until the last of their pods is bound."""
    _connect(home, folder, "--image", "none")
    gangs = pods // 4 // GANG
    fields: dict[str, Any] = {"queue": "team", "pools": ("big",), "gpus": 1, "cpus": 1}
    with _bindings(folder) as bound:
        began = time.monotonic()
        home.client.submit(["true"], array=f"1-{pods - gangs * GANG}", **fields)
        home.client.submit(["true"], array=f"1-{gangs}", tasks=GANG, **fields)
        _wait(lambda: len(bound) >= pods)
    return max(bound) - began


@contextlib.contextmanager
def _bindings(folder: Path) -> Generator[list[float]]:
    """When each pod was seen to have a node: all from now on."""
    client = Client(access_of(folder / "kubeconfig"))
    _, version = client.listed(_OURS)
    seen: set[str] = set()
    times: list[float] = []
    watch = client.watch(_OURS, version)

    def follow() -> None:
        with contextlib.suppress(KubernetesDownError):
            for event in watch:
                found = event["object"]
                if event["type"] != "MODIFIED" or not found["spec"].get("nodeName"):
                    continue
                if found["metadata"]["uid"] not in seen:
                    seen.add(found["metadata"]["uid"])
                    times.append(time.monotonic())

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield times
    finally:
        watch.hang_up()
        thread.join(10)
        client.close()


def _clear(home: Home, server: Server) -> None:
    """No kubelet ends them: jobs are cancelled, and their pods taken away by force."""
    home.client.cancel([job.id for job in home.client.all_jobs()])

    def is_empty() -> bool:
        _remove_pods(server)
        return home.live() == 0

    until(is_empty, 1.0)


def _wait(is_so: Callable[[], bool]) -> None:
    if not until(is_so, 0.05, PATIENCE_S):
        raise RuntimeError("that took too long")


def _remove_pods(server: Server) -> None:
    connection = Connection(server)
    items = json.loads(connection.ask("GET", _OURS))["items"]
    connection.close()
    names = (each["metadata"]["name"] for each in items)
    now = {"gracePeriodSeconds": 0}
    _all(server, (("DELETE", f"{_OURS}/{name}", now) for name in names))


def _all(server: Server, calls: Iterable[tuple[str, str, Any]]) -> None:
    """Ask all of it, on sixteen connections."""
    own = threading.local()

    def ask(call: tuple[str, str, Any]) -> None:
        if not hasattr(own, "connection"):
            own.connection = Connection(server)
        with contextlib.suppress(RuntimeError) if call[0] == "DELETE" else contextlib.nullcontext():
            own.connection.ask(*call)

    with ThreadPoolExecutor(16) as hands:
        list(hands.map(ask, calls))


def _make_nodes(server: Server, count: int) -> None:
    """Without the taint that a new node has until a controller sees that it is ready."""
    connection = Connection(server)
    for number in range(count):
        made = json.loads(connection.ask("POST", f"{_CORE}/nodes", _node(number)))
        made["spec"].pop("taints", None)
        connection.ask("PUT", f"{_CORE}/nodes/{made['metadata']['name']}", made)
    connection.close()


def _node(number: int) -> Any:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS_EACH)}
    ready = {"type": "Ready", "status": "True", "reason": "Pretended", "message": ""}
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    metadata = {"name": f"n{number}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def _pod(number: int, in_gangs: int | None = None) -> tuple[str, str, Any]:
    """in_gangs: so many of Muster's start in gangs; None: it is kube-scheduler's."""
    amounts = {"nvidia.com/gpu": "1", "cpu": "1"}
    container = {"name": "job", "image": "none", "resources": {"limits": amounts}}
    spec: dict[str, Any] = {"containers": [container]}
    metadata: dict[str, Any] = {"name": f"p{number}"}
    if in_gangs is not None:
        spec["schedulerName"] = "muster"
    if in_gangs and number < in_gangs:
        gang = {"muster.io/gang": f"g{number // GANG}", "muster.io/gang-size": str(GANG)}
        metadata["annotations"] = gang
    return "POST", _OURS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _write_kubeconfig(folder: Path, server: Server) -> None:
    cluster = {"server": f"https://{server.host}:{server.port}", "insecure-skip-tls-verify": True}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "big", "cluster": cluster}],
        "users": [{"name": "me", "user": {"token": server.token}}],
        "contexts": [{"name": "big", "context": {"cluster": "big", "user": "me"}}],
        "current-context": "big",
    }
    (folder / "kubeconfig").write_text(json.dumps(document), encoding="utf-8")


def _scheduler(folder: Path, tuning: dict[str, int]) -> Path:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(folder / "kubeconfig"), **tuning},
        "leaderElection": {"leaderElect": False},
    }
    path = folder / "scheduler.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
