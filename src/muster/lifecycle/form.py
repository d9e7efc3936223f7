"""Rules about the request alone: its numbers and names make sense."""

from collections.abc import Iterator

from muster.lifecycle.refusal import (
    BadAddress,
    BadGroups,
    BadNumber,
    DeadlineTooSoon,
    Refusal,
)
from muster.lifecycle.submission import Submission
from muster.model.gpu import GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import JobSpec, TaskGroup
from muster.model.mail import Mail, is_address
from muster.model.value import HOUR, Duration
from muster.model.words import exact_span

LONGEST_RESTART = Duration(HOUR)
"""Who claims to lose more would be spared when room is made, at the cost of those who do not."""

SPANS = frozenset(("restart_cost", "retry.base", "retry.cap", "time_limit"))
"""Numbers of milliseconds, which people read as times."""


def groups_are_named_once(asked: Submission) -> Refusal | None:
    names = [group.name for group in asked.spec.groups]
    if not names:
        return Refusal(
            reason=BadGroups(), advice="The job has no tasks. Give it at least one group."
        )
    for name in names:
        if names.count(name) > 1:
            return Refusal(
                reason=BadGroups(twice=name),
                advice=f"Two groups are called {name}. Give each group a different name.",
            )
    return None


def numbers_make_sense(asked: Submission) -> Refusal | None:
    for bound in _of_job(asked.spec):
        if bound.value < bound.least or (bound.most is not None and bound.value > bound.most):
            return Refusal(reason=bound, advice=_advice(bound))
    return None


def deadline_can_be_met(asked: Submission) -> Refusal | None:
    spec = asked.spec
    if spec.deadline is None:
        return None
    begins_at = max(asked.snapshot.now, spec.begin_at or 0)
    # Without a time limit the duration is unknown, but it is more than nothing.
    late_by = Duration(begins_at + (spec.time_limit or 1) - spec.deadline)
    if late_by <= 0:
        return None
    return Refusal(
        reason=DeadlineTooSoon(late_by=late_by),
        advice=f"The job could end {exact_span(late_by)} after its deadline at the earliest. "
        "Set a later deadline, an earlier begin or a shorter time limit.",
    )


def mail_has_an_address(asked: Submission) -> Refusal | None:
    return wrong_address(asked.spec.mail)


def wrong_address(mail: Mail) -> Refusal | None:
    """Why nothing can be sent to whom this names."""
    if mail.to is None or is_address(mail.to):
        return None
    return Refusal(
        reason=BadAddress(address=mail.to),
        advice=f"{mail.to!r} is no mail address. Write ann@example.org, or the name of a user; "
        "several with commas between them.",
    )


def _of_job(spec: JobSpec) -> Iterator[BadNumber]:
    """Every number of the job with its bounds, good or bad."""
    yield BadNumber(what="max_attempts", value=spec.max_attempts, least=1)
    yield BadNumber(what="restart_cost", value=spec.restart_cost, least=0, most=LONGEST_RESTART)
    yield BadNumber(what="retry.base", value=spec.retry.base, least=0)
    yield BadNumber(what="retry.factor", value=spec.retry.factor, least=1)
    yield BadNumber(what="retry.cap", value=spec.retry.cap, least=0)
    if spec.time_limit is not None:
        yield BadNumber(what="time_limit", value=spec.time_limit, least=1)
    if spec.array is not None and spec.array.at_once is not None:
        yield BadNumber(what="array.at_once", value=spec.array.at_once, least=1)
    for dependency in spec.after:
        yield BadNumber(what=f"{dependency.kind}.delay", value=dependency.delay, least=0)
    for group in spec.groups:
        yield from _of_group(group)


def _of_group(group: TaskGroup) -> Iterator[BadNumber]:
    name = group.name
    yield BadNumber(what=f"{name}.count", value=group.count, least=1)
    yield BadNumber(what=f"{name}.min_count", value=group.fewest, least=1, most=group.count)
    yield BadNumber(what=f"{name}.cpu_milli", value=group.each.cpu_milli, least=0)
    yield BadNumber(what=f"{name}.memory_mib", value=group.each.memory_mib, least=0)
    if group.where.max_per_node is not None:
        yield BadNumber(what=f"{name}.max_per_node", value=group.where.max_per_node, least=1)
    if group.each.gpus is not None:
        yield from _of_gpus(name, group.each.gpus)


def _of_gpus(name: str, gpus: GpuAsk) -> Iterator[BadNumber]:
    yield BadNumber(what=f"{name}.gpus.count", value=gpus.count, least=1)
    yield BadNumber(what=f"{name}.gpus.min_memory_mib", value=gpus.min_memory_mib, least=0)
    match gpus.slice:
        case MpsShare(milli=milli, memory_mib=memory_mib):
            yield BadNumber(what=f"{name}.mps.milli", value=milli, least=1, most=1_000)
            yield BadNumber(what=f"{name}.mps.memory_mib", value=memory_mib, least=0)
        case TimeShare(replicas=replicas):
            # One turn of one is a whole GPU; more than a thousand would count as nothing.
            yield BadNumber(what=f"{name}.replicas", value=replicas, least=2, most=1_000)
        case Mig() | None:
            return


def _advice(bad: BadNumber) -> str:
    least = _amount(bad, bad.least)
    bounds = (
        f"at least {least}" if bad.most is None else f"from {least} to {_amount(bad, bad.most)}"
    )
    return f"{bad.what} is {_amount(bad, bad.value)}; it must be {bounds}."


def _amount(bad: BadNumber, value: int) -> str:
    is_span = bad.what in SPANS and value > 0
    return exact_span(Duration(value)) if is_span else str(value)
