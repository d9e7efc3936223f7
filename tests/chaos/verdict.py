"""What must be true in the end. Whatever is not is named, with the job it happened to."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chaos.evidence import Written, written_by_all
from chaos.house import DAEMON, PLANNER, SPAWNER, House, pids, state, wait_until
from chaos.load import Answers
from muster.api.jobs import AttemptDocument, JobDocument
from muster.api.pages import JobFilter
from muster.client.calls import Client

QUIET_PATIENCE_S = 20.0
ENDED = frozenset({"completed", "failed", "cancelled"})
UNWRITTEN = frozenset({"node_failed", "cancelled", "requeued"})
"""An attempt that ended so may have been over before its job could say a word."""


@dataclass(kw_only=True)
class Verdict:
    """What was broken, by kind; nothing, if all is well."""

    acknowledged: int
    ended: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    leaked: list[str] = field(default_factory=list[str])
    zombies: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])

    @property
    def broken(self) -> list[str]:
        kinds = ("lost", "doubled", "leaked", "zombies", "wrong")
        return [f"{kind}: {each}" for kind in kinds for each in getattr(self, kind)]


def verdict(house: House, answers: Answers) -> Verdict:
    """Ask Muster, the jobs' own evidence and the machine, and compare."""
    found = Verdict(acknowledged=len(answers.acknowledged))
    found.wrong += answers.strange
    with house.client() as client:
        over = list(client.all_jobs(JobFilter(ended=True, states=tuple(sorted(ENDED)))))
        live = list(client.all_jobs())
        documents = {job.id: client.job(job.id) for job in over}
        judge_ends(found, answers, over, live)
        found.doubled += _ended_twice(client)
        found.leaked += _held_amounts(client)
    written = written_by_all(house.evidence)
    _judge_evidence(found, documents, written)
    _judge_machine(found, house, written)
    found.wrong += _damage(house.home / "muster.db")
    return found


def judge_ends(
    found: Verdict, answers: Answers, over: list[JobDocument], live: list[JobDocument]
) -> None:
    times = Counter(job.id for job in over)
    found.ended = sum(times[id] == 1 for id in answers.acknowledged)
    found.doubled += [f"job {id} is {n} times in the history" for id, n in times.items() if n > 1]
    found.lost += [f"job {job.id} has not ended: {job.state}" for job in live]
    known = times.keys() | {job.id for job in live}
    found.lost += [f"job {id} is unknown" for id in answers.acknowledged if id not in known]
    for job in over:
        if job.name in answers.refused:
            found.wrong.append(f"job {job.id} ({job.name}) is there, though it was refused")
        elif job.id not in answers.acknowledged and job.name not in answers.lost:
            found.wrong.append(f"job {job.id} ({job.name}) is there, and no user asked for it")


def _ended_twice(client: Client) -> Iterator[str]:
    """Every attempt ends once in the log, and nothing happens to a job after its end."""
    ends = Counter[tuple[int, int]]()
    after = 0
    while (page := client.event_page(after=after)).events:
        after = page.next
        ends.update(
            (event.job, event.fact["attempt"])
            for event in page.events
            if event.kind == "job_ended" and event.job is not None
        )
    return (
        f"attempt {attempt} of job {job} ended {times} times"
        for (job, attempt), times in ends.items()
        if times > 1
    )


def _held_amounts(client: Client) -> Iterator[str]:
    for node in client.nodes():
        held = (node.cpus_used, node.memory_used_mib, node.gpus_used)
        if any(held) or node.jobs:
            yield f"node {node.id} still holds {held} for jobs {node.jobs}"
        for device in node.devices:
            if device.used_milli or device.jobs:
                yield f"device {device.id} is still used by jobs {device.jobs}"


def _judge_evidence(
    found: Verdict, documents: Mapping[int, JobDocument], written: Mapping[int, Written]
) -> None:
    nothing = Written()
    found.wrong += [f"job {id} ran and is not recorded" for id in written if id not in documents]
    for id, job in documents.items():
        mine = written.get(id, nothing)
        found.doubled += [f"job {id}: {line}" for line in mine.overlaps]
        found.doubled += [
            f"job {id}: attempt {attempt} (rank {rank}) began {times} times"
            for (attempt, rank), times in mine.starts.items()
            if times > 1
        ]
        found.wrong += disagreements(job, mine)


def disagreements(job: JobDocument, written: Written) -> Iterator[str]:
    numbers = [attempt.number for attempt in job.attempts]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"job {job.id} has the attempts {numbers}"
    for unrecorded in sorted(written.attempts - set(numbers)):
        yield f"job {job.id} ran attempt {unrecorded}, which is not recorded"
    for attempt in job.attempts:
        yield from _untrue(job.id, attempt, written)
    if job.exit_code is not None and not (
        numbers and written.ended_with(numbers[-1], job.exit_code)
    ):
        yield f"job {job.id} is recorded with exit code {job.exit_code}, and wrote of no such end"
    if (job.state == "completed") is not (job.exit_code == 0):
        yield f"job {job.id} is recorded as {job.state} with exit code {job.exit_code}"


def _untrue(job: int, attempt: AttemptDocument, written: Written) -> Iterator[str]:
    kind = attempt.reason.kind if attempt.reason else "nothing"
    if attempt.number not in written.attempts and kind not in UNWRITTEN:
        yield f"job {job}: attempt {attempt.number} ended ({kind}) and wrote nothing"
    if kind not in UNWRITTEN | {"exited"}:
        text = attempt.reason.text if attempt.reason else ""
        yield f"job {job}: attempt {attempt.number} ended as no user asked for: {kind}: {text}"


def _judge_machine(found: Verdict, house: House, written: Mapping[int, Written]) -> None:
    wait_until(
        lambda: not (house.attempts() or house.marked() or house.busy_supervisors()),
        QUIET_PATIENCE_S,
    )
    found.leaked += [f"{key} lies in the spool" for key in house.attempts()]
    found.leaked += [f"process {pid} of a job runs" for pid in house.marked()]
    found.leaked += [f"control group {group} is there" for group in house.groups()]
    found.leaked += [f"supervisor {pid} has no attempt" for pid in house.busy_supervisors()]
    for module in (DAEMON, PLANNER):
        running = house.processes(module)
        if len(running) > 1:
            found.leaked.append(f"{len(running)} processes run {module}: {running}")
    ours = {pid for each in (DAEMON, PLANNER, SPAWNER) for pid in house.processes(each)}
    mine = {pid for each in written.values() for pid in each.pids}
    for pid in pids():
        known = state(pid)
        if known is not None and known[0] == "Z" and (known[1] in ours or pid in mine):
            found.zombies.append(f"process {pid} waits for {known[1]} to reap it")


def _damage(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        rows = connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()
    return [f"database: {text}" for (text,) in rows if text != "ok"]
