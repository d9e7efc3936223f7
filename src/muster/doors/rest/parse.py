"""From what people write in a request to what is submitted."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from muster.api.jobs import GroupDocument, SubmitDocument
from muster.doors.mail_words import KNOWN, mail_of
from muster.doors.rest.arrays import array_of
from muster.doors.rest.bad import BadRequestError, bounded, read
from muster.doors.rest.launches import launch_of
from muster.doors.units import duration, instant, memory_mib, slice_of
from muster.model.gpu import GpuAsk
from muster.model.job import (
    ANYWHERE,
    Ask,
    Dependency,
    DependencyKind,
    JobSpec,
    LabelRule,
    RetryPolicy,
    Spot,
    TaskGroup,
    Together,
    Toleration,
    Where,
)
from muster.model.launch import Launch
from muster.model.mail import Mail
from muster.model.queue import PreemptMode
from muster.model.value import (
    ClassName,
    ClusterName,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
    replace,
)

E = TypeVar("E", bound=StrEnum)

MOST_TASKS = 100_000
MOST_CPUS = 1_000_000
MOST_PRIORITY = 1_000_000_000
MOST_ATTEMPTS = 1_000_000
MOST_GROUPS = 100
MOST_DEPENDENCIES = 1_000
ANY = "?"
LONGEST_NAME = 1_000


class Submitter(Value):
    """Who submits, where their jobs go unless they say otherwise, and when."""

    user: UserName
    queue: QueuePath
    now: Instant


class Wanted(Value):
    """What a submission comes to. No indices: it is one job and not an array."""

    spec: JobSpec
    indices: tuple[int, ...] = ()
    at_once: int | None = None
    held: bool = False


def wanted(document: SubmitDocument, by: Submitter) -> Wanted:
    """The submission as values; BadRequestError names the field that cannot be read."""
    launch = launch_of(document)
    indices, at_once = array_of(document.array)
    spec = JobSpec(
        name=_name(document, launch),
        user=by.user,
        queue=QueuePath(document.queue) if document.queue else by.queue,
        groups=_groups(document.groups),
        job_class=ClassName(document.job_class),
        pools=tuple(map(PoolName, document.pools)),
        clusters=tuple(map(ClusterName, document.clusters)),
        spot=chosen("spot", Spot, document.spot),
        priority=bounded("priority", document.priority, -MOST_PRIORITY, MOST_PRIORITY),
        time_limit=time_limit_of(document.time),
        begin_at=instant_of("begin", document.begin, by.now),
        deadline=instant_of("deadline", document.deadline, by.now),
        after=_dependencies(document.after),
        cancel_if_hopeless=document.cancel_if_hopeless,
        preemptible=document.preemptible,
        preempt_mode=_preempt_mode(document.preempt_mode),
        restart_cost=read("restart_cost", duration, document.restart_cost)
        if document.restart_cost
        else Duration(0),
        max_attempts=bounded("attempts", document.attempts, 1, MOST_ATTEMPTS),
        retry=_RETRIES if document.requeue else _NO_REQUEUE,
        labels=document.labels,
        mail=mail_wanted(document.mail_on, document.mail_to),
        launch=launch,
    )
    return Wanted(spec=spec, indices=indices, at_once=at_once, held=document.held)


def time_limit_of(text: int | str | None) -> Duration | None:
    """Seconds, or text with units."""
    return None if text is None else read("time", duration, text)


def instant_of(where: str, text: str | None, now: Instant) -> Instant | None:
    """RFC 3339, or `now+2h`."""
    return None if text is None else read(where, lambda written: instant(written, now), text)


def mail_wanted(words: tuple[str, ...], to: str | None) -> Mail:
    """When to send mail, and to whom; nobody in particular is the user."""
    for word in words:
        if word.strip().lower() not in KNOWN:
            known = ", ".join(f"`{each}`" for each in KNOWN)
            raise BadRequestError("mail_on", f"`{word}` is none of {known}")
    return mail_of(words, to or None)


def chosen(where: str, words: type[E], text: str) -> E:
    """One of the words that there are."""
    try:
        return words(text)
    except ValueError:
        known = ", ".join(f"`{word}`" for word in words)
        raise BadRequestError(where, f"`{text}` is none of {known}") from None


_RETRIES = RetryPolicy()
_NO_REQUEUE = RetryPolicy(requeue=False)


def _name(document: SubmitDocument, launch: Launch) -> str:
    name = document.name or (launch.argv[0].rpartition("/")[2] if launch.argv else "job")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise BadRequestError("name", f"write at most {LONGEST_NAME} characters that can be seen")
    return name


def _groups(documents: tuple[GroupDocument, ...]) -> tuple[TaskGroup, ...]:
    if len(documents) > MOST_GROUPS:
        raise BadRequestError("groups", f"a job may have {MOST_GROUPS} groups, not more")
    return tuple(_group(f"groups[{place}]", each) for place, each in enumerate(documents))


def _group(at: str, document: GroupDocument) -> TaskGroup:
    return TaskGroup(
        name=document.name,
        count=bounded(f"{at}.tasks", document.tasks, 1, MOST_TASKS),
        min_count=document.min_tasks,
        each=Ask(
            cpu_milli=_cpu_milli(at, document.cpus),
            memory_mib=_mib(f"{at}.memory", document.memory),
            gpus=_gpus(at, document),
        ),
        together=_together(document.together),
        where=_where(at, document),
    )


def _cpu_milli(at: str, cpus: float) -> int:
    if not 0 <= cpus <= MOST_CPUS:
        raise BadRequestError(f"{at}.cpus", f"write a number from 0 to {MOST_CPUS}, not {cpus}")
    return round(cpus * 1_000)


def _mib(where: str, text: int | str) -> int:
    return read(where, memory_mib, text) if text else 0


def _gpus(at: str, document: GroupDocument) -> GpuAsk | None:
    if not document.gpus and document.slice is None:
        if document.gpu_models or document.gpu_memory:
            raise BadRequestError(f"{at}.gpus", "say how many GPUs of that kind a task needs")
        return None
    return GpuAsk(
        count=bounded(f"{at}.gpus", document.gpus or 1, 1, MOST_TASKS),
        slice=None if document.slice is None else read(f"{at}.slice", slice_of, document.slice),
        models=tuple(map(GpuModel, document.gpu_models)),
        min_memory_mib=_mib(f"{at}.gpu_memory", document.gpu_memory),
    )


def _together(text: str | None) -> Together | None:
    """`rack` must be, `rack?` would rather."""
    if not text:
        return None
    return Together(level=text.removesuffix("?"), required=not text.endswith("?"))


def _where(at: str, document: GroupDocument) -> Where:
    if not _is_choosy(document):
        return ANYWHERE
    if document.max_per_node is not None:
        bounded(f"{at}.max_per_node", document.max_per_node, 1, MOST_TASKS)
    return Where(
        require=_rules(document.require),
        tolerate=tuple(map(_toleration, document.tolerate)),
        nodes=tuple(map(NodeId, document.nodes)),
        not_nodes=tuple(map(NodeId, document.not_nodes)),
        exclusive=document.exclusive,
        max_per_node=document.max_per_node,
    )


def _is_choosy(document: GroupDocument) -> bool:
    return bool(
        document.require
        or document.tolerate
        or document.nodes
        or document.not_nodes
        or document.exclusive
        or document.max_per_node is not None
    )


def _rules(labels: Mapping[str, str]) -> tuple[LabelRule, ...]:
    return tuple(LabelRule(key=key, values=(value,)) for key, value in sorted(labels.items()))


def _toleration(text: str) -> Toleration:
    """`key`, `key=value`, or `*` for every taint."""
    if text == "*":
        return Toleration()
    key, equals, value = text.partition("=")
    return Toleration(key=key, value=value if equals else None)


def _preempt_mode(text: str | None) -> PreemptMode | None:
    return None if text is None else chosen("preempt_mode", PreemptMode, text)


def _dependencies(texts: tuple[str, ...]) -> tuple[Dependency, ...]:
    found = _any_of(texts[0]) if len(texts) == 1 and ANY in texts[0] else _all_of(texts)
    if len(found) > MOST_DEPENDENCIES:
        raise BadRequestError("after", f"a job may wait for {MOST_DEPENDENCIES} others, not more")
    return found


def _all_of(texts: tuple[str, ...]) -> tuple[Dependency, ...]:
    if any(ANY in text for text in texts):
        raise BadRequestError(
            "after",
            f"a job waits for all or for any: join all with `{ANY}` in one, or leave it out",
        )
    return tuple(each for text in texts for each in _dependency(text))


def _any_of(text: str) -> tuple[Dependency, ...]:
    """`afterok:17?afterany:18`: each of them is enough."""
    found = (each for part in text.split(ANY) for each in _dependency(part))
    return tuple(replace(each, way=way) for way, each in enumerate(found))


def _dependency(text: str) -> tuple[Dependency, ...]:
    """`afterok:17`, `afterany:17:18`, `after:17+5m`, `singleton`."""
    word, *others = text.split(":")
    kind = chosen("after", DependencyKind, word)
    if kind is DependencyKind.SINGLETON and not others:
        return (Dependency(kind=kind),)
    if not others or kind is DependencyKind.SINGLETON:
        raise BadRequestError("after", f"`{text}` names no job; write `{word}:17` or `singleton`")
    return tuple(_on_job(kind, other, text) for other in others)


def _on_job(kind: DependencyKind, other: str, text: str) -> Dependency:
    job, plus, delay = other.partition("+")
    if not job.isascii() or not job.isdigit() or len(job) > 18:  # more is no number of ours
        raise BadRequestError("after", f"`{text}` names no job; write `{kind}:17`")
    # Slurm counts this delay in minutes when no unit is written.
    later = f"{delay}m" if delay.isdigit() else delay
    return Dependency(
        kind=kind,
        job=JobId(int(job)),
        delay=read("after", duration, later) if plus else Duration(0),
    )
