"""One run through what `muster up` runs: record, journal, SQLite, the planner's process, commit.

A script, not a module: `bench.planner` starts it once for each side of a comparison, with the code
of that side first on the path, and reads the JSON line that it writes at the end. The older side
may call its parts by older names; `_first_of` finds them.

What a cycle is: the snapshot, the wire, the plan and its verification in the planner's process,
and the commit. Starting and ending jobs is the backends' part and not measured.
"""

import argparse
import gc
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from bench.world import TICK, Size, world
from muster.model.event import JobEnded, JobStarted, JobSubmitted, NodeSeen, SiteChanged
from muster.model.job import ArrayPart, Exited, HeldBy, Job, JobState
from muster.model.policy import Policy
from muster.model.site import Site
from muster.model.value import Instant, JobId, UserName, replace
from muster.stores.base import Batch
from muster.stores.sqlite import SqliteStore

EACH_CYCLE = 100
"""So many jobs end, and so many come, before each later cycle."""

ARRAY = 50_000
NEW_BEFORE_COLLECTION, RARELY = 100_000, (50, 100)
"""As the daemon tunes the garbage collector of its own process."""


def _first_of(*names: str) -> Any:
    """The first of these that exists: modules by their path, names in them after a colon."""
    for name in names:
        path, _, attribute = name.partition(":")
        try:
            found: Any = import_module(path)
        except ModuleNotFoundError:
            continue
        if not attribute:
            return found
        if hasattr(found, attribute):
            return getattr(found, attribute)
    raise LookupError(names)


RECORD = _first_of("muster.controller.world.record:Record", "muster.controller.record:Record")
JOURNAL = _first_of("muster.controller.world.journal", "muster.controller.journal")
CYCLE = _first_of("muster.controller.loop.cycle", "muster.controller.cycle")
PLANNER = _first_of(
    "muster.controller.planner.process:ProcessPlanner",
    "muster.controller.thinker_process:ProcessThinker",
)
DRIVER = _first_of("muster.controller.loop.cycle:BackendDriver", "muster.controller.cycle:Hands")
TRIGGERS = _first_of(
    "muster.controller.loop.triggers:PlanTriggers", "muster.controller.attention:Attention"
)


class Clocks:
    """Wall time, and processor time of this process and of the planner's."""

    def __init__(self, planner: Any) -> None:
        self._planner = planner
        self.laps: dict[str, dict[str, float]] = {}

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        wall, own, theirs = time.perf_counter(), time.process_time(), self._theirs()
        done = work()
        self.laps[name] = {
            "wall_s": time.perf_counter() - wall,
            "controller_cpu_s": time.process_time() - own,
            "planner_cpu_s": self._theirs() - theirs,
        }
        return done

    def _theirs(self) -> float:
        pid = self._planner.pid
        if pid is None:
            return 0.0
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # Its own time, and that of the copies of it that have answered questions and ended.
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Deployed:
    """One installation with pretend backends, whose clock goes on between cycles."""

    def __init__(self, size: Size, seed: int, home: Path) -> None:
        self.rng = Random(seed)
        start = world(size, seed)
        self.now = start.now
        site = Site(
            queues=start.queues,
            classes=start.classes,
            pools=start.pools,
            reservations=start.reservations,
            policy=Policy(),
        )
        store = SqliteStore(home / "muster.db")
        store.append(
            Batch(
                version=1,
                next_job=JobId(max(start.jobs) + 1),
                jobs=tuple(start.jobs.values()),
                clusters=tuple(start.clusters.values()),
                nodes=tuple(start.nodes.values()),
                site=site,
                used=start.used_lately,
                usual=start.usual,
            )
        )
        del start
        self.record = RECORD(store.load(), {}, site)
        self.journal = JOURNAL.Journal(store, self.record, lambda: self.now)
        self.writer = JOURNAL.Writer(self.journal)
        self.planner = PLANNER()
        fields = {
            "store": store,
            "history": store,
            "record": self.record,
            "write": self.writer.write,
            "backends": {},
        }
        named = "planner" if "planner" in CYCLE.Parts.__struct_fields__ else "thinker"
        self.parts = CYCLE.Parts(**fields, **{named: self.planner})
        self._follow_commits()
        gc.collect()
        gc.freeze()
        gc.set_threshold(NEW_BEFORE_COLLECTION, *RARELY)

    def _follow_commits(self) -> None:
        """As the controller does: find out what backends must do, and when to plan again."""
        driver, triggers = DRIVER(self.parts), TRIGGERS(self.record)
        subscribers = getattr(self.journal, "subscribers", None) or self.journal.told
        subscribers.add(driver.note)

        def note(batch: Batch, changes: tuple[Any, ...]) -> None:
            triggers.note(batch, changes, self.now)

        subscribers.add(note)

    def write(self, events: Sequence[Any]) -> None:
        def command(transaction: Any) -> None:
            apply = getattr(transaction, "apply", None) or transaction.tell
            for event in events:
                apply(event)

        self.writer.write(command).result()

    def decide(self) -> Any:
        return CYCLE.decide(self.parts, self.now)

    def let_pass(self) -> None:
        """Backends carry out what was decided; some jobs end, and some come."""
        self.now = Instant(self.now + TICK)
        self.write([*self._carried_out(), *self._ended(), *self._submitted()])

    def _carried_out(self) -> Iterable[Any]:
        jobs = self.record.jobs
        for held in tuple(self.record.allocations.values()):
            job: Job = jobs[held.job]
            if job.state is JobState.STARTING:
                yield JobStarted(at=self.now, job=job.id, attempt=held.attempt)
            elif job.state is JobState.STOPPING and not isinstance(job.why, HeldBy | None):
                yield JobEnded(at=self.now, job=job.id, attempt=held.attempt, why=job.why)

    def _ended(self) -> Iterable[Any]:
        running = [each for each in self.record.allocations.values() if self._runs(each.job)]
        for held in self.rng.sample(running, min(EACH_CYCLE, len(running))):
            yield JobEnded(at=self.now, job=held.job, attempt=held.attempt, why=Exited(code=0))

    def _runs(self, job: JobId) -> bool:
        return self.record.jobs[job].state in {JobState.RUNNING, JobState.STARTING}

    def _submitted(self) -> Iterable[Any]:
        """The same people ask for the same again."""
        plain = [job for job in self.record.jobs.values() if not job.spec.after]
        first = self.record.next_job
        for number, like in enumerate(self.rng.sample(plain, EACH_CYCLE)):
            spec = replace(like.spec, begin_at=None, array=None)
            yield JobSubmitted(at=self.now, job=JobId(first + number), spec=spec)
        self._use_ids(first + EACH_CYCLE)

    def _use_ids(self, first: int) -> None:
        self.record.next_job = JobId(first)

    def edit_node(self, edit: str) -> None:
        self.now = Instant(self.now + TICK)
        node = self.rng.choice(list(self.record.nodes.values()))
        match edit:
            case "resized":
                node = replace(node, memory_mib=node.memory_mib + 1_024)
            case "relabelled":
                node = replace(node, labels={**node.labels, "bench": "edited"})
            case _:
                node = replace(node, id=type(node.id)("added"), devices=())
        self.write([NodeSeen(at=self.now, node=node)])

    def edit_queue(self) -> None:
        self.now = Instant(self.now + TICK)
        site = self.record.site
        path = self.rng.choice(sorted(site.queues))
        queue = site.queues[path]
        queues = {**site.queues, path: replace(queue, weight=queue.weight + 1)}
        new = replace(site, queues=queues)
        self.write([SiteChanged(at=self.now, site=new, by=UserName("root"))])

    def submit_array(self, tasks: int) -> None:
        self.now = Instant(self.now + TICK)
        like = next(
            job.spec
            for job in self.record.jobs.values()
            if len(job.spec.groups) == 1 and job.spec.groups[0].each.gpus and not job.spec.after
        )
        first = self.record.next_job
        self.write(
            [
                JobSubmitted(
                    at=self.now,
                    job=JobId(first + index),
                    spec=replace(like, begin_at=None, array=ArrayPart(array=first, index=index)),
                )
                for index in range(tasks)
            ]
        )
        self._use_ids(first + tasks)

    def close(self) -> None:
        self.writer.close()
        self.planner.close()


def measured(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    size = Size(nodes=options.nodes, pending=options.pending, queues=options.queues)
    deployed = Deployed(size, options.seed, home)
    clocks = Clocks(deployed.planner)
    found: dict[str, Any] = {}
    try:
        plan = clocks.time("first", deployed.decide)
        found["started"] = len(plan.moves)
        found["waiting"] = len(plan.waits)
        for number in range(options.cycles + 1):
            deployed.let_pass()
            name = "second" if number == 0 else f"later-{number}"
            plan = clocks.time(name, deployed.decide)
            found["later_started"] = len(plan.moves)
        for edit in ("resized", "relabelled", "added") if options.edits else ():
            deployed.edit_node(edit)
            clocks.time(f"node-{edit}", deployed.decide)
        if options.edits:
            deployed.edit_queue()
            clocks.time("queue-edit", deployed.decide)
        if options.array:
            deployed.submit_array(options.array)
            clocks.time("array-first", deployed.decide)
            for number in range(3):
                deployed.let_pass()
                plan = clocks.time(f"array-later-{number}", deployed.decide)
        _ask(deployed, clocks, plan)
        found["controller_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10
        found["planner_rss_mib"] = _peak_mib(deployed.planner.pid)
    finally:
        deployed.close()
    return found | {"laps": clocks.laps}


def _ask(deployed: Deployed, clocks: Clocks, plan: Any) -> None:
    """Explanations of jobs that wait, and rehearsals of the same requests, as a person asks."""
    waiting = [job for job in plan.waits if job in deployed.record.waiting]
    asked = deployed.rng.sample(waiting, min(5, len(waiting)))
    for number, job in enumerate(asked):
        clocks.time(f"answer-{number}", lambda job=job: deployed.planner.explain(job))
    for number, job in enumerate(asked[:2] if _can_rehearse() else ()):
        clocks.time(f"rehearsal-{number}", lambda job=job: _rehearse(deployed, job))


def _can_rehearse() -> bool:
    """An older checkout is asked in another way, and is not measured."""
    try:
        return bool(_first_of("muster.controller.planner.client:World"))
    except LookupError:
        return False


def _rehearse(deployed: Deployed, job: JobId) -> None:
    """What would become of one more job like this one?"""
    world = _first_of("muster.controller.planner.client:World")
    with_values = _first_of("muster.model.versioned:with_values")
    snapshot = deployed.record.snapshot(deployed.now)
    new = replace(snapshot.jobs[job], id=deployed.record.next_job)
    jobs = with_values(snapshot.jobs, {new.id: new})
    usual = world(snapshot=snapshot, policy=deployed.record.site.policy)
    changed = replace(usual, snapshot=replace(snapshot, jobs=jobs))
    deployed.planner.rehearse(usual, changed, new.id)


def _peak_mib(pid: int | None) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description="One run; prints one JSON line.")
    size = Size()
    parser.add_argument("--nodes", type=int, default=size.nodes)
    parser.add_argument("--pending", type=int, default=size.pending)
    parser.add_argument("--queues", type=int, default=size.queues)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--array", type=int, default=ARRAY)
    parser.add_argument("--no-edits", dest="edits", action="store_false")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as home:
        sys.stdout.write(json.dumps(measured(options, Path(home))) + "\n")


if __name__ == "__main__":
    main()
