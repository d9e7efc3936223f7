"""CPU and memory of nodes, and who wants a node to himself."""

from collections.abc import Iterator

from muster.model.value import JobId
from muster.schedule.verify.additions import group_of
from muster.schedule.verify.case import Case
from muster.schedule.verify.moments import Seats
from muster.schedule.verify.violation import Violation


def cpu_and_memory_suffice(case: Case) -> Iterator[Violation]:
    """On each node, CPU and memory of all that is held and new fit its capacity, now and then."""
    for moment in case.moments:
        for seats in moment.seats.values():
            node = seats.node
            held, asleep = [*seats.held, *seats.claimed], seats.memory_only
            new_cpu, new_memory = _added(seats)
            cpu_milli = new_cpu + sum([each.amount.cpu_milli for _, each in held])
            memory_mib = new_memory + sum([each.amount.memory_mib for _, each in held])
            memory_mib += sum([each.amount.memory_mib for _, each in asleep])
            if new_cpu and cpu_milli > node.cpu_milli:
                text = f"{cpu_milli} CPU milli do not fit in {node.cpu_milli}{moment.words}."
                yield Violation(rule="room", subject=f"node {node.id}", text=text)
            if new_memory and memory_mib > node.memory_mib:
                text = f"{memory_mib} MiB do not fit in {node.memory_mib}{moment.words}."
                yield Violation(rule="room", subject=f"node {node.id}", text=text)


def exclusive_tasks_are_alone(case: Case) -> Iterator[Violation]:
    """An exclusive task's node holds nothing of another job, and nothing else new.

    Other tasks of the same job may be there, and so may jobs that are suspended.
    """
    for moment in case.moments:
        for seats in moment.seats.values():
            alone = _exclusive(seats)
            if not alone:
                continue
            jobs = {job.id for job, _ in (*seats.held, *seats.claimed)}
            jobs.update(task.job.id for task in seats.added)
            for job_id in sorted(alone) if len(jobs) > 1 else ():
                text = f"It wants node {seats.node.id} alone, with {len(jobs) - 1} other jobs there"
                yield Violation(
                    rule="exclusive", subject=f"job {job_id}", text=f"{text}{moment.words}."
                )


def _added(seats: Seats) -> tuple[int, int]:
    cpu_milli = memory_mib = 0
    for task in seats.added:
        amount = task.placement.amount
        cpu_milli += amount.cpu_milli
        memory_mib += amount.memory_mib
    return cpu_milli, memory_mib


def _exclusive(seats: Seats) -> set[JobId]:
    """The jobs there that want the node to themselves."""
    alone = {task.job.id for task in seats.added if task.group.where.exclusive}
    for job, placement in (*seats.held, *seats.claimed):
        group = group_of(job, placement.group)
        if group is not None and group.where.exclusive:
            alone.add(job.id)
    return alone
