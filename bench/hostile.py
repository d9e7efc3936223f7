"""How quick the API is for a polite user while another user floods it.

One Muster with jobs that wait. A polite user asks again and again, first alone and then while one
other user does all this at once, without pauses: holds 1,500 silent connections and replaces
those that are closed, lists all jobs, rehearses submissions, submits, has a job of theirs diagnosed
and drawn, and asks for the report of the fleet and for all metrics. Quiet and flood take turns, so
that both see the same machine. The bar is a p99 of three times that of quiet.
It must run as root, to be two users. Times are by the wall clock of the polite user.
"""

import argparse
import contextlib
import multiprocessing
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from multiprocessing.synchronize import Barrier, Event

import msgspec

from bench._clients import NOTHING, SLEEP
from bench._musters import Home, job, muster, percentile, tidy_when_told_to_end, until
from bench.report import Cell, Row, report
from muster.api.pages import JobFilter, RehearsalAsked
from muster.client.calls import Client
from muster.model.value import replace

POLITE, FLOODER = 65_533, 65_534
SILENT = 1_500
THREADS = 16
"""Of each kind of flood."""
NODES, GPUS_PER_NODE = 4, 8
BAR = 3.0
PAUSE_S = 0.005

Times = dict[str, list[float]]


def main() -> None:
    options = _options()
    tidy_when_told_to_end()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    quiet: Times = {}
    flood: Times = {}
    with muster(nodes=NODES, gpus=f"{GPUS_PER_NODE}xA100-40GB") as home:
        os.chmod(home.folder, 0o711)  # noqa: S103 -- other users pass to the socket
        for _ in range(NODES):
            home.client.submit_document(job(SLEEP, gpus=GPUS_PER_NODE))
        # Else short jobs of the array go first, and what is measured is how they run.
        until(lambda: home.client.status().jobs.get("running", 0) == NODES, 0.1)
        home.client.submit_document(job(NOTHING, array=f"1-{options.pending}"))
        until(lambda: home.client.status().jobs.get("pending", 0) >= options.pending, 0.1)
        path = f"{home.folder}/muster.sock"
        _asked(path, 50, {})
        counts: dict[str, int] = dict.fromkeys(FLOODS, 0)
        for _ in range(options.rounds):
            _asked(path, options.samples, quiet)
            with _flooded(path, counts):
                _asked(path, options.samples, flood)
        # What the flooder asked for last is still being answered.
        until(lambda: _are_cancelled(home), 0.5)
    report("hostile", _figures(quiet, flood, counts, options.pending), _rows(quiet, flood))


def _are_cancelled(home: Home) -> bool:
    home.client.cancel([each.id for each in home.client.all_jobs(JobFilter(limit=20_000))])
    return home.live() == 0


def _figures(
    quiet: Times, flood: Times, counts: Mapping[str, int], pending: int
) -> dict[str, Cell]:
    every = [time for times in quiet.values() for time in times]
    under = [time for times in flood.values() for time in times]
    return {
        "quiet_p99_ms": round(percentile(every, 99), 1),
        "flood_p99_ms": round(percentile(under, 99), 1),
        "ratio_p99": round(percentile(under, 99) / percentile(every, 99), 2),
        "ratio_p50": round(percentile(under, 50) / percentile(every, 50), 2),
        "bar": BAR,
        "pending": pending,
        **{f"flood_{kind}": count for kind, count in counts.items()},
    }


def _rows(quiet: Times, flood: Times) -> list[Row]:
    return [
        {
            "asked": kind,
            "samples": len(quiet[kind]),
            "quiet p50 ms": round(percentile(quiet[kind], 50), 1),
            "quiet p99 ms": round(percentile(quiet[kind], 99), 1),
            "flood p50 ms": round(percentile(flood[kind], 50), 1),
            "flood p99 ms": round(percentile(flood[kind], 99), 1),
            "ratio p99": round(percentile(flood[kind], 99) / percentile(quiet[kind], 99), 2),
        }
        for kind in quiet
    ]


def _asked(path: str, samples: int, into: Times) -> None:
    """What the polite user sees, in a process of theirs."""
    mine, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.Process(target=_ask, args=(path, samples, theirs.send))
    child.start()
    # So that one who fails is noticed: nobody else holds this end then.
    theirs.close()
    found: Times = mine.recv()
    child.join()
    for kind, times in found.items():
        into.setdefault(kind, []).extend(times)


def _ask(path: str, samples: int, tell: Callable[[Times], None]) -> None:
    _become(POLITE)
    found: Times = {}
    with Client(f"unix:{path}") as client:
        own = client.submit_document(job(NOTHING, held=True)).id
        kinds: Mapping[str, Callable[[], object]] = {
            "me": client.me,
            "show": lambda: client.job(own),
            "list own": lambda: client.jobs(JobFilter(users=("nobody",), limit=10)),
            "list 100": lambda: client.jobs(JobFilter(limit=100)),
            "status": client.status,
            "submit": lambda: client.submit_document(job(NOTHING, held=True)),
        }
        for _ in range(samples):
            for kind, ask in kinds.items():
                began = time.perf_counter()
                ask()
                found.setdefault(kind, []).append((time.perf_counter() - began) * 1_000)
                time.sleep(PAUSE_S)
    tell(found)


@contextlib.contextmanager
def _flooded(path: str, counts: dict[str, int]) -> Generator[None]:
    """While the other user floods, each kind of flood in a process of its own."""
    ended = multiprocessing.Event()
    begun = multiprocessing.Barrier(len(FLOODS) + 1)
    pipes = {kind: multiprocessing.Pipe(duplex=False) for kind in FLOODS}
    children = [
        multiprocessing.Process(target=_flood, args=(path, kind, begun, ended, pipes[kind][1].send))
        for kind in FLOODS
    ]
    for child in children:
        child.start()
    begun.wait()
    try:
        yield
    finally:
        ended.set()
        for kind, (mine, _) in pipes.items():
            counts[kind] += mine.recv()
        for child in children:
            child.join()


def _flood(path: str, kind: str, begun: Barrier, ended: Event, tell: Callable[[int], None]) -> None:
    # What the flooder's own programs take of the CPUs here is not what is measured.
    os.nice(19)
    _become(FLOODER)
    count = [0]
    # Threads that end with the process could hold the lock of an event of all processes.
    over = threading.Event()
    work = FLOODS[kind]
    threads = [
        threading.Thread(target=work, args=(path, over, count), daemon=True)
        for _ in range(1 if kind == "connections" else THREADS)
    ]
    begun.wait()
    for thread in threads:
        thread.start()
    ended.wait()
    over.set()
    tell(count[0])


def _hold_silent(path: str, ended: threading.Event, count: list[int]) -> None:
    held: list[socket.socket] = []
    while not ended.is_set():
        while len(held) < SILENT and not ended.is_set():
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with contextlib.suppress(OSError):
                made.connect(path)
                made.setblocking(False)  # noqa: FBT003 -- the socket's own word
                held.append(made)
                count[0] += 1
        time.sleep(0.2)
        held = [each for each in held if _is_open(each)]


def _is_open(connection: socket.socket) -> bool:
    try:
        is_open = connection.recv(4_096) != b""
    except BlockingIOError:
        return True
    except OSError:
        is_open = False
    if not is_open:
        connection.close()
    return is_open


def _of_own(tail: str) -> Callable[[str, threading.Event, list[int]], None]:
    """Ask again and again for something of a job of one's own."""

    def work(path: str, ended: threading.Event, count: list[int]) -> None:
        with Client(f"unix:{path}") as client:
            own = client.submit_document(job(NOTHING, held=True)).id
        _repeat(_request("GET", f"/v1/jobs/{own}/{tail}"))(path, ended, count)

    return work


def _repeat(request: bytes) -> Callable[[str, threading.Event, list[int]], None]:
    """Send the same request again and again, and take every answer."""

    def work(path: str, ended: threading.Event, count: list[int]) -> None:
        while not ended.is_set():
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with made, contextlib.suppress(OSError):
                made.connect(path)
                made.sendall(request)
                while made.recv(1_048_576):
                    pass
                count[0] += 1

    return work


def _request(method: str, target: str, document: object = None) -> bytes:
    body = b"" if document is None else msgspec.json.encode(document)
    head = f"{method} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


_WISH = replace(job(NOTHING), held=False)

FLOODS: Mapping[str, Callable[[str, threading.Event, list[int]], None]] = {
    "connections": _hold_silent,
    "listings": _repeat(_request("GET", "/v1/jobs?limit=20000")),
    "rehearsals": _repeat(_request("POST", "/v1/rehearsals", RehearsalAsked(submit=_WISH))),
    "submits": _repeat(_request("POST", "/v1/jobs", replace(_WISH, held=True))),
    "efficiency": _of_own("efficiency"),
    "timelines": _of_own("timeline"),
    "reports": _repeat(_request("GET", "/v1/report")),
    "metrics": _repeat(_request("GET", "/metrics")),
}


def _become(uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pending", type=int, default=5_000, help="jobs that wait")
    parser.add_argument("--samples", type=int, default=200, help="of each kind, in each phase")
    parser.add_argument("--rounds", type=int, default=3, help="of quiet and flood")
    return parser.parse_args()


if __name__ == "__main__":
    main()
