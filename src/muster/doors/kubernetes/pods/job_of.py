"""From a pod to the job that it is: pure, and the same spec that the other doors give."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import click

from muster.api.requests import JobFile
from muster.client.sending import Origin, sent
from muster.doors.kubernetes.objects.errors import (
    Cause,
    StatusError,
    forbidden,
    invalid,
    invalid_object,
)
from muster.doors.kubernetes.objects.hidden import HIDDEN
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    labels_of,
    name_of,
    part,
)
from muster.doors.kubernetes.pods import resources, support
from muster.doors.kubernetes.pods.admission import SYSTEM_CLASSES
from muster.doors.kubernetes.pods.gang_marks import GANG, GANG_JOB, GANG_LEADER, GANG_SIZE
from muster.doors.kubernetes.pods.launch_of import READINESS, pod_launch
from muster.doors.kubernetes.pods.links import Links, with_links
from muster.doors.kubernetes.pods.queue_marks import QueueMark, queue_mark
from muster.doors.kubernetes.pods.where_of import Place, place_of
from muster.doors.request.bad import BadRequestError
from muster.doors.request.lines import parsed
from muster.doors.request.overlay import OF_GPUS, overlaid
from muster.doors.request.parse import Submitter, Wanted
from muster.doors.request.parse import wanted as read_request
from muster.model.gpu import GpuAsk, Mig
from muster.model.job import ANYWHERE, Ask, JobSpec, RetryPolicy, TaskGroup
from muster.model.launch import AdoptedPod, Launch
from muster.model.value import (
    SECOND,
    ClassName,
    Duration,
    GpuModel,
    QueuePath,
    Value,
    replace,
)

OUR_PREFIX = "muster.io/"
"""Annotations that begin so ask for what Kubernetes has no word for: `muster.io/time: 2h`."""

OUR_SCHEDULER = "default-scheduler"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
WARNINGS = "muster.io/warnings"
"""What was asked for and has no effect."""

ADMITTED = "muster.io/admitted-job"
"""Of a pod: the Job of batch/v1 that stands again when its pods must make room."""

TOLD_JOB = "muster.io/job"
"""Of a pod that was given its node: which job it is."""

OUR_OWN = frozenset(
    {READINESS, *HIDDEN, WARNINGS, GANG, GANG_SIZE, GANG_LEADER, GANG_JOB, ADMITTED, TOLD_JOB}
)
"""Annotations of ours that are no requests."""

NOT_OF_PODS = frozenset({"array", "tasks", "min_tasks", "env_only"})
"""What `muster submit` can ask for and a pod cannot."""

_ANYTHING = ("true",)
"""Stands for what runs, of which the pod's own words tell."""

_MIB = Decimal(1_024**2)


class PodWorld(Value):
    """What a pod is read against.

    by: who submits and when; its queue is the namespace's. queues: by how they are named.
    classes: job classes by the names of PriorityClasses. products: GPU models by node labels.
    """

    by: Submitter
    origin: Origin
    queues: Mapping[QueueMark, QueuePath] = {}
    classes: Mapping[str, ClassName] = {}
    products: Mapping[str, GpuModel] = {}
    links: Links = ()


def job_of(pod: JsonObject, world: PodWorld) -> Wanted:
    """What to submit for the pod; StatusError says what of it cannot be had."""
    spec = part(pod, "spec")
    wanted = _asked(pod, world, support.refusals(spec))
    launched = replace(wanted.spec, launch=launch_of(pod, world.links))
    warnings = (*support.warnings(spec), *wanted.warnings, *_left_out(spec))
    job = replace(wanted, spec=launched, held=is_held_back(spec), warnings=warnings)
    return _in_our_words(pod, job, world)


def job_elsewhere(pod: JsonObject, adopts: AdoptedPod, world: PodWorld) -> Wanted:
    """The same for a pod that another Kubernetes runs: only its turn and its room are ours.

    Nothing of ours begins it again: whose it is may make another.
    """
    wanted = _asked(pod, world, ())
    containers = items(part(pod, "spec"), "containers")
    argv = [*items(containers[0], "command"), *items(containers[0], "args")] if containers else []
    spec = replace(
        wanted.spec,
        retry=RetryPolicy(requeue=False),
        launch=Launch(argv=tuple(map(str, argv)), adopts=(adopts,)),
    )
    return _in_our_words(pod, replace(wanted, spec=spec), world)


def _asked(pod: JsonObject, world: PodWorld, refused: tuple[Cause, ...]) -> Wanted:
    """What it needs and where, without what runs in it. refused: what is known to be too much."""
    spec = part(pod, "spec")
    place = place_of(spec, world.products)
    refused = (*refused, *place.refused)
    if refused:
        raise invalid_object(POD, name_of(pod), refused)
    group = TaskGroup(
        each=_ask(pod, place),
        where=ANYWHERE if place.where == ANYWHERE else place.where,
    )
    job = JobSpec(
        name=name_of(pod),
        user=world.by.user,
        queue=_queue(pod, world),
        groups=(group,),
        job_class=_class(pod, world),
        pools=place.pools or (),
        time_limit=_time_limit(spec),
        labels=labels_of(pod),
    )
    return Wanted(spec=job, held=False, warnings=place.warnings)


def is_held_back(spec: JsonObject) -> bool:
    """Is it for others to say when it may start, or where: by gates, or by another scheduler?"""
    is_gated = bool(items(spec, "schedulingGates"))
    return is_gated or (is_for_others(spec) and not spec.get("nodeName"))


def is_for_others(spec: JsonObject) -> bool:
    """Does another scheduler find its place?"""
    return spec.get("schedulerName", OUR_SCHEDULER) != OUR_SCHEDULER


def launch_of(pod: JsonObject, links: Links = ()) -> Launch:
    """What runs: of several containers, lists show the first one's command."""
    first = items(part(pod, "spec"), "containers")[0]
    return Launch(
        argv=(*items(first, "command"), *items(first, "args")),
        image=first.get("image"),
        env={
            str(each["name"]): str(each.get("value") or "")
            for each in items(first, "env")
            if "valueFrom" not in each
        },
        workdir=first.get("workingDir") or None,
        pod=with_links(pod_launch(pod), links),
    )


def ask_of(amounts: Mapping[str, Decimal], models: tuple[GpuModel, ...]) -> Ask:
    """What one task needs on its node; ValueError names a resource that nothing offers."""
    gpus = [name for name, count in amounts.items() if count and _is_gpu(name)]
    others = [name for name, count in amounts.items() if count and name not in resources.STANDARD]
    unknown = sorted(set(others) - set(gpus))
    if unknown:
        raise ValueError(f"no node offers {', '.join(unknown)}")
    if len(gpus) > 1:
        raise ValueError(f"{' and '.join(sorted(gpus))} cannot be had together")
    return Ask(
        cpu_milli=_rounded_up(amounts.get(resources.CPU, Decimal(0)) * 1_000),
        memory_mib=_rounded_up(amounts.get(resources.MEMORY, Decimal(0)) / _MIB),
        gpus=_gpus(gpus[0], int(amounts[gpus[0]]), models) if gpus else None,
    )


def _ask(pod: JsonObject, place: Place) -> Ask:
    """What it requests; of memory its limit, where that is more: Muster promises none twice."""
    spec = part(pod, "spec")
    wanted, limits = resources.requests_of(spec), resources.limits_of(spec)
    memory = max(wanted.get(resources.MEMORY, Decimal(0)), limits.get(resources.MEMORY, Decimal(0)))
    try:
        return ask_of({**wanted, resources.MEMORY: memory}, place.models or ())
    except ValueError as problem:
        raise forbidden(POD, name_of(pod), str(problem)) from problem


def _gpus(name: str, count: int, models: tuple[GpuModel, ...]) -> GpuAsk:
    if name == resources.GPU:
        return GpuAsk(count=count, models=models)
    profile = name.removeprefix(resources.MIG_PREFIX)
    return GpuAsk(count=count, slice=Mig(profile=profile), models=models)


def _is_gpu(name: str) -> bool:
    return name == resources.GPU or name.startswith(resources.MIG_PREFIX)


def _rounded_up(number: Decimal) -> int:
    return -int(-number // 1)


def _queue(pod: JsonObject, world: PodWorld) -> QueuePath:
    mark = queue_mark(pod)
    if mark is None:
        return world.by.queue
    found = world.queues.get(mark)
    if found is None and mark.may_be_missing:
        return world.by.queue
    if found is None:
        raise forbidden(POD, name_of(pod), f'{mark.kind} "{mark.name}" not found')
    return found


def _class(pod: JsonObject, world: PodWorld) -> ClassName:
    named = str(part(pod, "spec").get("priorityClassName") or "")
    named = named or labels_of(pod).get(PRIORITY_LABEL, "")
    if not named or named in SYSTEM_CLASSES:
        # The queue's usual class is put in its place when it is submitted.
        return ClassName(JobFile().job_class)
    found = world.classes.get(named)
    if found is None:
        why = f"no PriorityClass with name {named} was found"
        raise forbidden(POD, name_of(pod), why)
    return found


def _time_limit(spec: JsonObject) -> Duration | None:
    seconds = spec.get("activeDeadlineSeconds")
    return None if seconds is None else Duration(int(seconds) * SECOND)


def _left_out(spec: JsonObject) -> tuple[str, ...]:
    """Resources that are asked for and not kept."""
    if not resources.requests_of(spec).get(resources.STORAGE):
        return ()
    return (f"{resources.STORAGE} has no effect: the disk is not shared out",)


def _in_our_words(pod: JsonObject, job: Wanted, world: PodWorld) -> Wanted:
    """The pod, with what its annotations ask for in the words of `muster submit`."""
    said = {
        key.removeprefix(OUR_PREFIX): str(value)
        for key, value in annotations_of(pod).items()
        if key.startswith(OUR_PREFIX) and key not in OUR_OWN
    }
    if not said:
        return job
    try:
        fields = parsed([word for key in sorted(said) for word in _option(key, said[key])])
        for name in NOT_OF_PODS & fields.keys():
            raise BadRequestError(name, "a pod is one task of one job; create several pods")
        some = {} if fields.keys().isdisjoint(OF_GPUS) else {"gpus": 1}
        written: dict[str, Any] = {**some, **fields, "command": _ANYTHING, "env_only": ()}
        asked = read_request(sent(JobFile(**written), world.origin), world.by)
        found = overlaid(job, asked, fields)
    except (click.UsageError, BadRequestError) as wrong:
        raise _bad_annotation(pod, wrong) from wrong
    return replace(found, warnings=job.warnings)


def _option(key: str, value: str) -> tuple[str, ...]:
    """As `muster submit` takes it: what is on or off has no value there."""
    return {"true": (f"--{key}",), "false": ()}.get(value, (f"--{key}={value}",))


def _bad_annotation(pod: JsonObject, wrong: Exception) -> StatusError:
    text = wrong.format_message() if isinstance(wrong, click.UsageError) else str(wrong)
    cause = invalid("metadata.annotations", OUR_PREFIX, text)
    return invalid_object(POD, name_of(pod), (cause,))
