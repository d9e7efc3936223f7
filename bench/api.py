"""How quick the API is while 100,000 jobs wait and plans are being made.

One Muster, its 4 nodes of 8 pretend GPUs taken, and the jobs behind them of many sizes, users,
queues and time limits. Another process then asks: it submits, lists and filters in turn, without
pauses; every submission wants a new plan, so that the planner never rests. The bar is a p99 of
100 ms for every kind of request. Times are by the wall clock of the client, over the unix socket.
"""

import argparse
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from bench._clients import NOTHING, SLEEP
from bench._musters import Home, job, muster, percentile, tidy_when_told_to_end, until
from bench.report import Cell, Row, report
from muster.api.pages import JobFilter
from muster.api.requests import GroupDocument, SubmitDocument
from muster.api.site import TokenAsked
from muster.client.calls import Client
from muster.model.value import replace

NODES, GPUS_PER_NODE = 4, 8
BAR_MS = 100
USERS = tuple(f"user{at}" for at in range(10))
QUEUES = tuple(f"team{at // 4}/part{at % 4}" for at in range(16))
JOBS_PER_ARRAY = 100
CLIENT_PATIENCE_S = 1_800.0
PLAN_PATIENCE_S = 300.0
FEWEST_PLANS = 5

Times = dict[str, list[float]]
"""By kind of request, how long each took, in ms."""


def main() -> None:
    options = _options()
    tidy_when_told_to_end()
    load = os.getloadavg()[0]
    with muster(nodes=NODES, gpus=f"{GPUS_PER_NODE}xA100-40GB") as home:
        fill_s = fill(home, options.pending, options.seed)
        times, plans = _measured(home.url, options.samples)
        status = home.client.status()
    figures: dict[str, Cell] = {
        "worst_p99_ms": max(percentile(each, 99) for each in times.values()),
        "submit_p99_ms": percentile(times["submit"], 99),
        "list_p99_ms": max(percentile(times[kind], 99) for kind in times if kind != "submit"),
        "bar_ms": BAR_MS,
        "pending": status.jobs.get("pending", 0),
        "samples_of_each": len(times["submit"]),
        "plans_seen": len(plans),
        "plan_ms_median": int(percentile(plans, 50)),
        "plan_ms_longest": int(max(plans)),
        "fill_jobs_per_s": int(options.pending / fill_s),
        "load_before": load,
        "store": f"{status.store}: WAL, synchronous=FULL; acknowledged when on the disk",
    }
    report("api", figures, rows(times), list_as="rows")


def fill(home: Home, pending: int, seed: int) -> float:
    """Take every GPU, then let jobs wait; how long handing them in took."""
    client = home.client
    client.apply(_site(client.site()))
    for _ in range(NODES):
        client.submit_document(job(SLEEP, gpus=GPUS_PER_NODE))
    assert until(lambda: client.status().gpus_used == NODES * GPUS_PER_NODE, 0.1)
    people = [Client(home.url, token=_token(client, user)) for user in USERS]
    began = time.monotonic()
    last = 0
    for at, document in enumerate(_wishes(pending, random.Random(seed))):
        last = people[at % len(people)].submit_document(document).ids[-1]
    taken = time.monotonic() - began
    for each in people:
        each.close()
    assert until(lambda: _is_planned(client, last), 0.5, PLAN_PATIENCE_S)
    return taken


def rows(times: Mapping[str, Sequence[float]]) -> list[Row]:
    """One row for each kind of request."""
    return [
        {
            "metric": f"{kind}, ms",
            "value": round(percentile(each, 99), 1),
            "bar": BAR_MS,
            "p50": round(percentile(each, 50), 1),
            "max": round(max(each), 1),
            "samples": len(each),
        }
        for kind, each in ((f"{name} p99", times[name]) for name in times)
    ]


def _site(text: str) -> str:
    """The rules as they are by default, with more queues."""
    teams: dict[str, list[str]] = {}
    for path in QUEUES:
        team, _, part = path.partition("/")
        teams.setdefault(team, []).append(part)
    lines = [
        f"  {team}:\n    queues:\n" + "".join(f"      {part}: {{}}\n" for part in parts)
        for team, parts in teams.items()
    ]
    return text.replace("  default: {}\n", "  default: {}\n" + "".join(lines))


def _is_planned(client: Client, job_id: int) -> bool:
    """Has a plan looked at it?"""
    reason = client.job(job_id).reason
    return reason is not None and reason.kind != "new"


def _token(client: Client, user: str) -> str:
    secret = client.make_token(TokenAsked(user=user)).secret
    assert secret is not None
    return secret


def _wishes(pending: int, chance: random.Random) -> Iterator[SubmitDocument]:
    """Arrays, each of another kind."""
    for begin in range(0, pending, JOBS_PER_ARRAY):
        count = min(JOBS_PER_ARRAY, pending - begin)
        yield replace(
            _wish(chance),
            array=f"0-{count - 1}" if count > 1 else None,
        )


def _wish(chance: random.Random) -> SubmitDocument:
    group = GroupDocument(
        gpus=chance.choice((1, 1, 1, 2, 4, 8)),
        cpus=chance.choice((1, 2, 4)),
        tasks=chance.choice((1, 1, 1, 2)),
    )
    return replace(
        job(NOTHING),
        name=f"kind{chance.randrange(50)}",
        queue=chance.choice(QUEUES),
        groups=(group,),
        time=60 * chance.randrange(5, 24 * 60),
        priority=chance.randrange(3),
    )


def _measured(url: str, samples: int) -> tuple[Times, list[int]]:
    """Asked from a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as other:
        return other.submit(_ask_in_turn, url, samples).result(CLIENT_PATIENCE_S)


def _ask_in_turn(url: str, samples: int) -> tuple[Times, list[int]]:
    chance = random.Random(2)
    plans: dict[str | None, int] = {}
    with Client(url) as client:
        kinds = _kinds(client, chance)
        times: Times = {kind: [] for kind in kinds}
        while not _is_enough(len(times["submit"]), samples, len(plans)):
            for kind, ask in kinds.items():
                began = time.perf_counter()
                ask()
                times[kind].append((time.perf_counter() - began) * 1_000)
            status = client.status()
            plans[status.planned_at] = status.plan_ms
    return times, list(plans.values())


def _is_enough(asked: int, samples: int, plans: int) -> bool:
    """So many samples, and so many plans that began and ended meanwhile; or far too many."""
    return asked >= samples and (plans >= FEWEST_PLANS or asked >= 4 * samples)


def _kinds(client: Client, chance: random.Random) -> Mapping[str, Callable[[], object]]:
    def listed(**filters: object) -> Callable[[], object]:
        return lambda: client.jobs(JobFilter(**filters))  # type: ignore[arg-type]

    return {
        "submit": lambda: client.submit_document(_wish(chance)),
        "list 100": listed(limit=100),
        "list 1,000": listed(limit=1_000),
        "list 100 of a user": listed(limit=100, users=(USERS[-1],)),
        "list 100 of a queue, pending": listed(limit=100, queues=("team3",), states=("pending",)),
        "list 100 of a name that is rare": listed(limit=100, name="no such name"),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the API while much waits and is planned.")
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
