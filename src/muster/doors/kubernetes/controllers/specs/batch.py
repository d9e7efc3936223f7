"""Jobs and CronJobs: defaults, what the server adds, and what is refused."""

from collections.abc import Iterator

from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.cron_jobs.schedule import (
    ScheduleError,
    parsed,
    time_zone,
)
from muster.doors.kubernetes.controllers.selecting import selects
from muster.doors.kubernetes.controllers.specs.fields import (
    IMMUTABLE,
    NO_MATCH,
    PodSpecs,
    expression_causes,
    immutable,
    not_negative,
    one_of,
)
from muster.doors.kubernetes.objects.errors import (
    Cause,
    CauseReason,
    invalid,
    not_supported,
    required,
    too_many,
)
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    copied,
    items,
    labels_of,
    name_of,
    part,
    uid_of,
)

MOST = 2**31 - 1
MOST_PARALLEL_INDEXES = 100_000
LONGEST_CRON_NAME = 52
ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
NAMES = ("batch.kubernetes.io/job-name", "job-name")
UIDS = ("batch.kubernetes.io/controller-uid", "controller-uid")


class Batch:
    """Jobs and CronJobs, beside what is known of pods."""

    def __init__(self, pods: PodSpecs) -> None:
        self._pods = pods

    def default_job(self, job: JsonObject) -> JsonObject:
        """What a Job has where its manifest is silent."""
        spec = job.setdefault("spec", {})
        _default_spec(spec)
        labels = labels_of(part(spec, "template"))
        if labels and not labels_of(job):
            job.setdefault("metadata", {})["labels"] = dict(labels)
        self._pods.fill(job, spec.setdefault("template", {}).setdefault("spec", {}))
        return job

    def default_cron_job(self, cron_job: JsonObject) -> JsonObject:
        """What a CronJob has where its manifest is silent. Its Jobs are filled in when made."""
        spec = cron_job.setdefault("spec", {})
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        inner = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
        template = inner.setdefault("template", {})
        template.setdefault("metadata", {})
        self._pods.fill(cron_job, template.setdefault("spec", {}))
        return cron_job

    def job_causes(self, job: JsonObject, old: JsonObject | None) -> list[Cause]:
        """All that is wrong with a Job, or with what it is changed into."""
        spec = part(job, "spec")
        causes = list(self._spec_causes(spec, "spec"))
        causes += _selector_causes(spec)
        if old is None:
            return causes + list(_name_causes(job))
        causes += _change_causes(spec, old)
        return causes + list(_name_causes(job))

    def cron_job_causes(self, cron_job: JsonObject, old: JsonObject | None) -> list[Cause]:
        """All that is wrong with a CronJob."""
        spec = part(cron_job, "spec")
        causes: list[Cause] = []
        if old is None and len(name_of(cron_job)) > LONGEST_CRON_NAME:
            words = f"must be no more than {LONGEST_CRON_NAME} characters"
            causes.append(invalid("metadata.name", name_of(cron_job), words))
        causes += _schedule_causes(spec)
        causes += not_negative(spec, "spec", "startingDeadlineSeconds")
        causes += _zone_causes(spec)
        policies = ("Allow", "Forbid", "Replace")
        causes += one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", *policies)
        causes += self._spec_causes(part(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec")
        limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
        return causes + list(not_negative(spec, "spec", *limits))

    def _spec_causes(self, spec: JsonObject, path: str) -> Iterator[Cause]:
        yield from not_negative(
            spec,
            path,
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        )
        if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
            yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
        yield from _mode_causes(spec, path)
        yield from _failure_policy_causes(spec, path)
        yield from _success_policy_causes(spec, path)
        yield from _replacement_causes(spec, path)
        template = part(spec, "template")
        yield from self._pods.labels(labels_of(template), f"{path}.template.labels")
        yield from self._pods.causes(part(template, "spec"), f"{path}.template.spec")
        yield from _restart_causes(spec, path)


def prepare_job(job: JsonObject, old: JsonObject | None) -> JsonObject:
    """The labels and the selector by which a Job knows its pods, from its uid."""
    spec = part(job, "spec")
    if old is not None or spec.get("manualSelector"):
        return job
    labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
    # A Job without labels of its own has those of its pods, with the ones that follow.
    has_own = labels_of(job) not in ({}, labels)
    for key in NAMES:
        labels.setdefault(key, name_of(job))
    for key in UIDS:
        labels.setdefault(key, uid_of(job))
    selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selector.setdefault(UIDS[0], uid_of(job))
    if not has_own:
        job["metadata"]["labels"] = dict(labels)
    return job


def _default_spec(spec: JsonObject) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", MOST if per_index else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", policy)
    spec.setdefault("manualSelector", False)
    for rule in items(spec, "podFailurePolicy", "rules"):
        for each in items(rule, "onPodConditions"):
            each.setdefault("status", "True")


def _mode_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    mode = spec.get("completionMode", "NonIndexed")
    yield from one_of(mode, f"{path}.completionMode", "NonIndexed", "Indexed")
    if mode != "Indexed":
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
        return
    completions, most_failed = spec.get("completions"), spec.get("maxFailedIndexes")
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if spec.get("parallelism", 1) > MOST_PARALLEL_INDEXES:
        words = f"must be less than or equal to {MOST_PARALLEL_INDEXES} when completion mode is"
        yield invalid(f"{path}.parallelism", spec["parallelism"], f"{words} Indexed")
    if completions is not None and most_failed is not None and most_failed > completions:
        words = "must be less than or equal to completions"
        yield invalid(f"{path}.maxFailedIndexes", most_failed, words)


def _failure_policy_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    rules = items(spec, "podFailurePolicy", "rules")
    where = f"{path}.podFailurePolicy.rules"
    if len(rules) > 20:
        yield too_many(where, len(rules), 20)
    pod_spec = part(spec, "template", "spec")
    containers = [*items(pod_spec, "containers"), *items(pod_spec, "initContainers")]
    known = {each.get("name") for each in containers}
    for place, rule in enumerate(rules):
        yield from _rule_causes(rule, f"{where}[{place}]", spec, known)


def _rule_causes(
    rule: JsonObject, path: str, spec: JsonObject, containers: set[str]
) -> Iterator[Cause]:
    action = rule.get("action")
    if not action:
        shown = " ".join(f'"{each}"' for each in ACTIONS)
        yield required(f"{path}.action", f"valid values: [{shown}]")
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        words = "requires the backoffLimitPerIndex to be set"
        yield invalid(f"{path}.action", action, words)
    else:
        yield from one_of(action, f"{path}.action", *ACTIONS)
    codes, conditions = rule.get("onExitCodes"), items(rule, "onPodConditions")
    if codes:
        yield from _exit_code_causes(codes, f"{path}.onExitCodes", containers)
    if bool(codes) == bool(conditions):
        which = "both OnExitCodes and OnPodConditions is not supported"
        if not codes:
            which = "one of OnExitCodes and OnPodConditions is required"
        words = f"Invalid value: specifying {which}"
        yield Cause(reason=CauseReason.INVALID, message=words, field=path)


def _exit_code_causes(codes: JsonObject, path: str, containers: set[str]) -> Iterator[Cause]:
    operator = codes.get("operator")
    if not operator:
        yield required(f"{path}.operator", 'valid values: ["In" "NotIn"]')
    else:
        yield from one_of(operator, f"{path}.operator", "In", "NotIn")
    name = codes.get("containerName")
    if name is not None and name not in containers:
        words = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", name, words)
    values = items(codes, "values")
    if not values:
        yield invalid(f"{path}.values", values, "at least one value is required")
    if operator == "In" and 0 in values:
        place = values.index(0)
        yield invalid(f"{path}.values[{place}]", 0, "must not be 0 for the In operator")


def _success_policy_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    policy = spec.get("successPolicy")
    where = f"{path}.successPolicy"
    if policy is None:
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid(where, policy, "requires indexed completion mode")
        return
    rules = items(policy, "rules")
    if not rules:
        words = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{where}.rules", words)
    completions = spec.get("completions") or 0
    for place, rule in enumerate(rules):
        at = f"{where}.rules[{place}]"
        least = rule.get("succeededCount")
        if least is None and not rule.get("succeededIndexes"):
            words = "at least one of succeededCount or succeededIndexes must be specified"
            yield required(at, words)
        elif least is not None and least > completions:
            words = f"must be less than or equal to {completions} (the number of specified"
            yield invalid(f"{at}.succeededCount", least, f"{words} completions)")


def _replacement_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    policy = spec.get("podReplacementPolicy", "TerminatingOrFailed")
    allowed = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    if spec.get("podReplacementPolicy") is not None:
        yield from one_of(policy, f"{path}.podReplacementPolicy", *allowed)


def _restart_causes(spec: JsonObject, path: str) -> Iterator[Cause]:
    where = f"{path}.template.spec.restartPolicy"
    policy = part(spec, "template", "spec").get("restartPolicy")
    if policy in (None, "", "Always"):
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(where, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") and policy != "Never":
        words = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(where, policy, words)


def _selector_causes(spec: JsonObject) -> Iterator[Cause]:
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from expression_causes(selector, "spec.selector")
    labels = labels_of(part(spec, "template"))
    if not selects(selector, labels):
        yield invalid("spec.template.metadata.labels", labels, NO_MATCH)


def _name_causes(job: JsonObject) -> Iterator[Cause]:
    """The last pod's host name must be one."""
    spec = part(job, "spec")
    completions = spec.get("completions") or 0
    if spec.get("completionMode") != "Indexed" or completions <= 0:
        return
    longest = f"{name_of(job)}-{completions - 1}"
    if len(longest) > 63 or "." in longest:
        words = f"will not able to create pod with invalid DNS label: {longest}"
        yield invalid("metadata.name", name_of(job), words)


def _change_causes(spec: JsonObject, old: JsonObject) -> Iterator[Cause]:
    before = part(old, "spec")
    grows = spec.get("completionMode") == "Indexed" and (
        spec.get("completions") == spec.get("parallelism")
        and before.get("completions") == before.get("parallelism")
    )
    if not grows:
        yield from immutable(spec, before, "spec", "completions")
    yield from immutable(spec, before, "spec", "selector")
    if _fixed_template(spec, old) != _fixed_template(before, old):
        yield invalid("spec.template", part(spec, "template"), IMMUTABLE)
    yield from immutable(
        spec,
        before,
        "spec",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    )


def _fixed_template(spec: JsonObject, old: JsonObject) -> JsonObject:
    """What of the template may not change; while it is suspended, its place may."""
    template = copied(part(spec, "template"))
    status = part(old, "status")
    waits = not status.get("startTime") or is_true(items(old, "status", "conditions"), "Suspended")
    if part(old, "spec").get("suspend") and waits and not status.get("active"):
        pod_spec = part(template, "spec")
        for name in ("nodeSelector", "tolerations", "schedulingGates"):
            pod_spec.pop(name, None)
        part(pod_spec, "affinity").pop("nodeAffinity", None)
        if not part(pod_spec, "affinity"):
            pod_spec.pop("affinity", None)
        for group in ("containers", "initContainers"):
            for each in items(pod_spec, group):
                each.pop("resources", None)
        for name in ("labels", "annotations"):
            part(template, "metadata").pop(name, None)
    return template


def _schedule_causes(spec: JsonObject) -> Iterator[Cause]:
    text = spec.get("schedule", "")
    if not text:
        yield required("spec.schedule")
        return
    if "TZ=" in text:
        words = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", text, words)
        return
    try:
        parsed(text)
    except ScheduleError as error:
        yield invalid("spec.schedule", text, str(error))


def _zone_causes(spec: JsonObject) -> Iterator[Cause]:
    zone = spec.get("timeZone")
    if zone is None:
        return
    if not zone:
        yield invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        words = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        yield invalid("spec.timeZone", zone, words)
    else:
        try:
            time_zone(zone)
        except ScheduleError as error:
            yield invalid("spec.timeZone", zone, str(error))
