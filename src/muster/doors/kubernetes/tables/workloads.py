"""Jobs, CronJobs, Deployments and what else makes pods, as rows."""

from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.owning import controller_of
from muster.doors.kubernetes.controllers.pods import is_leaving
from muster.doors.kubernetes.controllers.selecting import selector_of, shown_selector
from muster.doors.kubernetes.objects.rules import Aged, Column, Printing
from muster.doors.kubernetes.objects.times import instant
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from muster.doors.kubernetes.tables.cells import (
    AGE,
    NAME,
    NONE,
    WORKLOAD,
    Cell,
    age,
    containers,
    count,
    duration,
    number,
    shown_labels,
    since,
    text,
    wide,
)
from muster.model.value import SECOND


def job_cells(job: JsonObject) -> list[Cell]:
    return [
        name_of(job),
        _job_status(job),
        _completions(job),
        _job_duration(job),
        age(job),
        *_template_cells(job),
    ]


JOBS = Printing(
    columns=(NAME, text("Status"), text("Completions"), text("Duration"), AGE, *WORKLOAD),
    cells=job_cells,
)


def cron_job_cells(cron_job: JsonObject) -> list[Cell]:
    spec = part(cron_job, "spec")
    last = part(cron_job, "status").get("lastScheduleTime")
    inner = part(cron_job, "spec", "jobTemplate", "spec")
    return [
        name_of(cron_job),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        _boolean(spec.get("suspend")),
        len(items(cron_job, "status", "active")),
        since(last) if last else NONE,
        age(cron_job),
        *containers(part(inner, "template", "spec")),
        shown_selector(inner.get("selector")),
    ]


CRON_JOBS = Printing(
    columns=(
        NAME,
        text("Schedule"),
        text("Timezone"),
        Column(name="Suspend", type="boolean"),
        number("Active"),
        text("Last Schedule"),
        AGE,
        *WORKLOAD,
    ),
    cells=cron_job_cells,
)


def replica_set_cells(replica_set: JsonObject) -> list[Cell]:
    return [
        name_of(replica_set),
        _wanted(replica_set),
        count(replica_set, "replicas"),
        count(replica_set, "readyReplicas"),
        age(replica_set),
        *_template_cells(replica_set),
    ]


REPLICA_SETS = Printing(
    columns=(NAME, number("Desired"), number("Current"), number("Ready"), AGE, *WORKLOAD),
    cells=replica_set_cells,
)


def deployment_cells(deployment: JsonObject) -> list[Cell]:
    return [
        name_of(deployment),
        f"{count(deployment, 'readyReplicas')}/{_wanted(deployment)}",
        count(deployment, "updatedReplicas"),
        count(deployment, "availableReplicas"),
        age(deployment),
        *_template_cells(deployment),
    ]


DEPLOYMENTS = Printing(
    columns=(NAME, text("Ready"), text("Up-to-date"), text("Available"), AGE, *WORKLOAD),
    cells=deployment_cells,
)


def stateful_set_cells(stateful_set: JsonObject) -> list[Cell]:
    return [
        name_of(stateful_set),
        f"{count(stateful_set, 'readyReplicas')}/{_wanted(stateful_set)}",
        age(stateful_set),
        *containers(part(stateful_set, "spec", "template", "spec")),
    ]


STATEFUL_SETS = Printing(
    columns=(NAME, text("Ready"), AGE, wide("Containers"), wide("Images")),
    cells=stateful_set_cells,
)


def daemon_set_cells(daemon_set: JsonObject) -> list[Cell]:
    return [
        name_of(daemon_set),
        count(daemon_set, "desiredNumberScheduled"),
        count(daemon_set, "currentNumberScheduled"),
        count(daemon_set, "numberReady"),
        count(daemon_set, "updatedNumberScheduled"),
        count(daemon_set, "numberAvailable"),
        shown_labels(part(daemon_set, "spec", "template", "spec", "nodeSelector")),
        age(daemon_set),
        *_template_cells(daemon_set),
    ]


DAEMON_SETS = Printing(
    columns=(
        NAME,
        number("Desired"),
        number("Current"),
        number("Ready"),
        number("Up-to-date"),
        number("Available"),
        text("Node Selector"),
        AGE,
        *WORKLOAD,
    ),
    cells=daemon_set_cells,
)


def controller_revision_cells(revision: JsonObject) -> list[Cell]:
    owner = controller_of(revision)
    told = NONE
    if owner is not None:
        group = str(owner["apiVersion"]).partition("/")[0]
        told = f"{str(owner['kind']).lower()}.{group}/{owner['name']}"
    return [name_of(revision), told, revision.get("revision", 0), age(revision)]


CONTROLLER_REVISIONS = Printing(
    columns=(NAME, text("Controller"), text("Revision"), AGE), cells=controller_revision_cells
)


def _template_cells(workload: JsonObject) -> list[Cell]:
    spec = part(workload, "spec")
    return [*containers(part(spec, "template", "spec")), shown_selector(selector_of(workload))]


def _wanted(workload: JsonObject) -> int:
    return part(workload, "spec").get("replicas", 1)


def _job_status(job: JsonObject) -> str:
    conditions = items(job, "status", "conditions")
    for type_ in ("Complete", "Failed"):
        if is_true(conditions, type_):
            return type_
    if is_leaving(job):
        return "Terminating"
    for type_ in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(conditions, type_):
            return type_
    return "Running"


def _completions(job: JsonObject) -> str:
    spec, done = part(job, "spec"), count(job, "succeeded")
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: JsonObject) -> Cell:
    status = part(job, "status")
    started = instant(status.get("startTime"))
    if started is None:
        return ""
    ended = instant(status.get("completionTime"))
    return Aged(parts=(started,)) if ended is None else duration((ended - started) // SECOND)


def _boolean(value: bool | None) -> str:  # noqa: FBT001 - a value that is shown
    return "<unset>" if value is None else str(value)
