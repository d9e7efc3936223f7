"""How quick the Kubernetes door is, beside a real kube-apiserver in the same run.

Pods created per second by 16 clients, how quickly 100 watches hear of what happens, and how long a
list of all pods as a Table takes. Pods wait behind a gate on both sides: nothing runs. Both write
to the same disk and sync it. Rounds of both sides take turns, so that both see the same machine;
the last column is ours as a part of theirs, more is better everywhere.
"""

import argparse
import asyncio
import json
import multiprocessing
import threading
import time
from pathlib import Path

from bench._http import Connection, Server, is_ready, unchecked
from bench._musters import Home, muster, percentile, tidy_when_told_to_end, until
from bench._real_kubernetes import real_kubernetes
from bench.report import Cell, Row, report

CLIENTS, PROCESSES = 16, 4
WATCHERS, TOLD = 100, 50
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LISTS = 5
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"

Figures = dict[str, list[float]]


def main() -> None:
    options = _options()
    tidy_when_told_to_end()
    ours: Figures = {}
    theirs: Figures = {}
    with muster(nodes=2, gpus="4xA100-40GB") as home, real_kubernetes() as real:
        sides = ((_door(home), ours), (real, theirs))
        for number in range(options.rounds):
            for server, found in sides:
                _note(found, "pods created/s", _created(server, options.pods, f"r{number}"))
                _note(found, "events heard/s", _heard(server, f"r{number}"))
        for server, found in sides:
            _filled(server, options.listed)
            for _ in range(LISTS):
                _note(found, "lists/s", _listed(server, options.listed))
    report("kubernetes-door", _figures(ours, theirs, options), _rows(ours, theirs))


def _door(home: Home) -> Server:
    """The door of this Muster; it is served from now on."""
    home.run("down")
    home.run("up", "--kubernetes", "127.0.0.1:0")
    entry = json.loads(home.said("kubeconfig", "--credential"))
    config = Path(home.folder) / "kubeconfig"
    home.run("kubeconfig", "--file", str(config))
    address = next(
        line.split()[-1].removeprefix("https://")
        for line in config.read_text(encoding="utf-8").splitlines()
        if "server:" in line
    )
    host, _, port = address.rpartition(":")
    server = Server(host=host, port=int(port), token=entry["status"]["token"])
    until(lambda: is_ready(server), 0.2)
    return server


def _note(found: Figures, name: str, value: float) -> None:
    found.setdefault(name, []).append(value)


def _pod(name: str) -> dict[str, object]:
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    spec = {
        "containers": [container],
        "schedulingGates": [{"name": "bench"}],
        "automountServiceAccountToken": False,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _created(server: Server, count: int, prefix: str) -> float:
    """Pods per second, by 16 clients in a few processes: one alone could not ask so quickly."""
    each = count // CLIENTS
    began = time.perf_counter()
    children = [
        multiprocessing.Process(target=_create_all, args=(server, each, f"{prefix}-{number}"))
        for number in range(PROCESSES)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
        if child.exitcode:
            raise RuntimeError("a client failed")
    return each * CLIENTS / (time.perf_counter() - began)


def _create_all(server: Server, count: int, prefix: str) -> None:
    def create(number: int) -> None:
        connection = Connection(server)
        for place in range(count):
            connection.ask("POST", PODS, _pod(f"{prefix}-{number}-{place}"))
        connection.close()

    threads = [
        threading.Thread(target=create, args=(number,)) for number in range(CLIENTS // PROCESSES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _heard(server: Server, prefix: str) -> float:
    """Events per second that reach their watchers, all of them together."""
    return asyncio.run(_fan_out(server, prefix))


async def _fan_out(server: Server, prefix: str) -> float:
    version = json.loads(Connection(server).ask("GET", f"{MAPS}?limit=1"))["metadata"]
    path = f"{MAPS}?watch=true&resourceVersion={version['resourceVersion']}"
    watches = [await _watch(server, path) for _ in range(WATCHERS)]
    listening = [asyncio.create_task(_until_told(reader)) for reader, _ in watches]
    began = time.perf_counter()
    await asyncio.to_thread(_tell, server, prefix)
    await asyncio.wait_for(asyncio.gather(*listening), 300)
    took = time.perf_counter() - began
    for _, writer in watches:
        writer.close()
    return WATCHERS * TOLD / took


async def _watch(server: Server, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(
        server.host, server.port, ssl=unchecked(), limit=1 << 24
    )
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    writer.write(head.encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _until_told(reader: asyncio.StreamReader) -> None:
    seen, rest = 0, b""
    while seen < TOLD:
        more = await reader.read(1 << 16)
        if not more:
            raise RuntimeError("a watch ended early")
        rest += more
        seen += rest.count(b'"type":"ADDED"')
        rest = rest[-13:] if b'"type":"ADDED"' in rest else rest[-64:]


def _tell(server: Server, prefix: str) -> None:
    connection = Connection(server)
    for number in range(TOLD):
        meta = {"name": f"{prefix}-{number}"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}
        connection.ask("POST", MAPS, body)
    connection.close()


def _filled(server: Server, wanted: int) -> None:
    there = len(json.loads(Connection(server).ask("GET", PODS))["items"])
    if there < wanted:
        _created(server, -(-(wanted - there) // CLIENTS) * CLIENTS, "fill")


def _listed(server: Server, wanted: int) -> float:
    connection = Connection(server)
    began = time.perf_counter()
    said = connection.ask("GET", PODS, accept=TABLE)
    took = time.perf_counter() - began
    if len(json.loads(said)["rows"]) < wanted:
        raise RuntimeError("the list is not whole")
    connection.close()
    return 1 / took


def _rows(ours: Figures, theirs: Figures) -> list[Row]:
    middle = {name: (percentile(ours[name], 50), percentile(theirs[name], 50)) for name in ours}
    return [
        {
            "what": name,
            "Muster": round(mine, 2),
            "kube-apiserver": round(real, 2),
            "ratio": round(mine / real, 3),
        }
        for name, (mine, real) in middle.items()
    ]


def _figures(ours: Figures, theirs: Figures, options: argparse.Namespace) -> dict[str, Cell]:
    return {
        "clients": CLIENTS,
        "watchers": WATCHERS,
        "rounds": options.rounds,
        "pods_a_round": options.pods,
        "pods_listed": options.listed,
        "list_ms": round(1_000 / percentile(ours["lists/s"], 50)),
        "list_ms_of_kube_apiserver": round(1_000 / percentile(theirs["lists/s"], 50)),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=480, help="created in each round")
    parser.add_argument("--listed", type=int, default=10_000, help="pods in the list")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
