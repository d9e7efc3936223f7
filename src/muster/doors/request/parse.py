"""From what people write in a request to what is submitted."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from muster.api.requests import SubmitDocument, TaskRequest
from muster.doors.mail_words import KNOWN, mail_of
from muster.doors.request.arrays import array_of
from muster.doors.request.bad import BadRequestError, bounded, chosen, read
from muster.doors.request.dependencies import Meant, by_number, dependencies
from muster.doors.request.launches import launch_of
from muster.doors.units import duration, instant, memory_mib, slice_of, span_with_unit
from muster.model.gpu import GpuAsk
from muster.model.job import (
    ANYWHERE,
    Ask,
    JobRule,
    JobSpec,
    LabelRule,
    Operator,
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
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)

E = TypeVar("E", bound=StrEnum)

MOST_TASKS = 100_000
MOST_CPUS = 1_000_000
MOST_PRIORITY = 1_000_000_000
LONGEST_KEY = 128
MOST_ATTEMPTS = 1_000_000
MOST_GROUPS = 100
MOST_FACTOR = 100
LONGEST_NAME = 1_000


class Submitter(Value):
    """Who submits and when, where their jobs go by default, and which jobs they mean."""

    user: UserName
    queue: QueuePath
    now: Instant
    meant: Meant = by_number


class Wanted(Value):
    """What a submission comes to. No indices: it is one job and not an array.

    warnings: what was asked for and has no effect.
    """

    spec: JobSpec
    indices: tuple[int, ...] = ()
    at_once: int | None = None
    held: bool = False
    warnings: tuple[str, ...] = ()


def wanted(document: SubmitDocument, by: Submitter) -> Wanted:
    """The submission as values; BadRequestError names the field that cannot be read."""
    launch = launch_of(document)
    indices, at_once = array_of(document.array)
    spec = JobSpec(
        name=_name(document, launch),
        user=UserName(document.user) if document.user else by.user,
        queue=QueuePath(document.queue) if document.queue else by.queue,
        groups=_groups(document),
        job_class=ClassName(document.job_class),
        pools=tuple(map(PoolName, document.pools)),
        clusters=tuple(map(ClusterName, document.clusters)),
        spot=chosen("spot", Spot, document.spot),
        priority=bounded("priority", document.priority, -MOST_PRIORITY, MOST_PRIORITY),
        time_limit=time_limit_of(document.time),
        begin_at=instant_of("begin", document.begin, by.now),
        deadline=instant_of("deadline", document.deadline, by.now),
        reservation=document.reservation or None,
        after=dependencies(document.after, by.meant, indices),
        cancel_if_hopeless=document.cancel_if_hopeless,
        preemptible=document.preemptible,
        preempt_mode=_preempt_mode(document.preempt_mode),
        restart_cost=_span("restart_cost", document.restart_cost),
        max_attempts=bounded("attempts", document.attempts, 1, MOST_ATTEMPTS),
        retry=_retry(document),
        labels=document.labels,
        mail=mail_wanted(document.mail_on, document.mail_to),
        launch=launch,
    )
    return Wanted(spec=spec, indices=indices, at_once=at_once, held=document.held)


def request_key_of(key: str | None) -> str | None:
    """What a client calls its request, so that it can send it again."""
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        raise BadRequestError("request_key", f"write 1 to {LONGEST_KEY} printable characters")
    return key


def time_limit_of(text: int | str | None) -> Duration | None:
    """Seconds, or text with units: a bare number of text would be minutes to users of sbatch."""
    if text is None:
        return None
    return read("time", span_with_unit if isinstance(text, str) else duration, text)


def instant_of(where: str, text: str | None, now: Instant) -> Instant | None:
    """RFC 3339, or `now+2h`."""
    return None if text is None else read(where, lambda written: instant(written, now), text)


def mail_wanted(words: tuple[str, ...], to: str | None) -> Mail:
    """When to send mail, and to whom; to the user if no address is named."""
    for word in words:
        if word.strip().lower() not in KNOWN:
            known = ", ".join(f"`{each}`" for each in KNOWN)
            raise BadRequestError("mail_on", f"`{word}` must be one of {known}")
    return mail_of(words, to or None)


def _name(document: SubmitDocument, launch: Launch) -> str:
    name = document.name or (launch.argv[0].rpartition("/")[2] if launch.argv else "job")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise BadRequestError("name", f"write at most {LONGEST_NAME} characters that can be seen")
    return name


def _span(where: str, text: int | str) -> Duration:
    return read(where, duration, text) if text else Duration(0)


def _retry(document: SubmitDocument) -> RetryPolicy:
    return RetryPolicy(
        base=_span("retry_pause", document.retry_pause),
        factor=bounded("retry_factor", document.retry_factor, 1, MOST_FACTOR),
        cap=_span("retry_longest", document.retry_longest),
        requeue=document.requeue,
    )


def _groups(document: SubmitDocument) -> tuple[TaskGroup, ...]:
    """Those that are named; or one, of which everything is said for the job as a whole."""
    if not document.groups:
        return (_group("", document, "main"),)
    if len(document.groups) > MOST_GROUPS:
        raise BadRequestError("groups", f"a job may have {MOST_GROUPS} groups, not more")
    for field in TaskRequest.__struct_fields__:
        if getattr(document, field) != getattr(_NO_NEEDS, field):
            raise BadRequestError(field, "the job has several `groups`: say it for each of them")
    return tuple(
        _group(f"groups[{place}].", each, each.name) for place, each in enumerate(document.groups)
    )


_NO_NEEDS = TaskRequest()


def _group(at: str, asked: TaskRequest, name: str) -> TaskGroup:
    return TaskGroup(
        name=name,
        count=bounded(f"{at}tasks", asked.tasks, 1, MOST_TASKS),
        min_count=asked.min_tasks,
        each=Ask(
            cpu_milli=_cpu_milli(at, asked.cpus),
            memory_mib=_mib(f"{at}memory", asked.memory),
            gpus=_gpus(at, asked),
        ),
        together=_together(asked.together),
        where=_where(at, asked),
    )


def group_wanted(asked: TaskRequest) -> TaskGroup:
    """The only group of a job that asks for this."""
    return _group("", asked, "main")


def _cpu_milli(at: str, cpus: float) -> int:
    if not 0 <= cpus <= MOST_CPUS:
        raise BadRequestError(f"{at}cpus", f"write a number from 0 to {MOST_CPUS}, not {cpus}")
    return round(cpus * 1_000)


def _mib(where: str, text: int | str) -> int:
    return read(where, memory_mib, text) if text else 0


def _gpus(at: str, asked: TaskRequest) -> GpuAsk | None:
    if not asked.gpus and asked.slice is None:
        if asked.gpu_models or asked.gpu_memory:
            raise BadRequestError(f"{at}gpus", "say how many GPUs of that kind a task needs")
        return None
    return GpuAsk(
        count=bounded(f"{at}gpus", asked.gpus or 1, 1, MOST_TASKS),
        slice=None if asked.slice is None else read(f"{at}slice", slice_of, asked.slice),
        models=tuple(map(GpuModel, asked.gpu_models)),
        min_memory_mib=_mib(f"{at}gpu_memory", asked.gpu_memory),
    )


def _together(text: str | None) -> Together | None:
    """`rack` must be, `rack?` prefers it."""
    if not text:
        return None
    return Together(level=text.removesuffix("?"), required=not text.endswith("?"))


def _where(at: str, asked: TaskRequest) -> Where:
    if asked.max_per_node is not None:
        bounded(f"{at}max_per_node", asked.max_per_node, 1, MOST_TASKS)
    where = Where(
        require=_label_rules(asked.require),
        prefer=_label_rules(asked.prefer),
        tolerate=tuple(map(_toleration, asked.tolerate)),
        nodes=tuple(map(NodeId, asked.nodes)),
        not_nodes=tuple(map(NodeId, asked.not_nodes)),
        near=tuple(_job_rule(f"{at}near", each) for each in asked.near),
        apart=tuple(_job_rule(f"{at}apart", each) for each in asked.apart),
        exclusive=asked.exclusive,
        max_per_node=asked.max_per_node,
    )
    # Nearly all jobs may run anywhere: they share one value.
    return ANYWHERE if where == ANYWHERE else where


def _label_rules(labels: Mapping[str, str]) -> tuple[LabelRule, ...]:
    return tuple(_label_rule(key, text) for key, text in sorted(labels.items()))


def _label_rule(key: str, text: str) -> LabelRule:
    """`a`, `a|b`, `*` for any value; with `!` before it the opposite."""
    wanted, negated = text.removeprefix("!"), text.startswith("!")
    if wanted == "*":
        return LabelRule(key=key, operator=Operator.ABSENT if negated else Operator.EXISTS)
    operator = Operator.NOT_IN if negated else Operator.IN
    return LabelRule(key=key, operator=operator, values=tuple(wanted.split("|")))


def _job_rule(where: str, text: str) -> JobRule:
    """`app=db` on one node, `app=db@rack` in one rack."""
    key, equals, rest = text.partition("=")
    value, at, level = rest.rpartition("@")
    if not key or not equals or (at and not level):
        raise BadRequestError(where, f"`{text}` cannot be read; write `label=value@rack`")
    return JobRule(key=key, value=value, level=level) if at else JobRule(key=key, value=rest)


def _toleration(text: str) -> Toleration:
    """`key`, `key=value`, or `*` for every taint."""
    if text == "*":
        return Toleration()
    key, equals, value = text.partition("=")
    return Toleration(key=key, value=value if equals else None)


def _preempt_mode(text: str | None) -> PreemptMode | None:
    return None if text is None else chosen("preempt_mode", PreemptMode, text)
