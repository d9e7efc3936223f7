"""Admission: a request is accepted and completed, or refused with what to change."""

from collections.abc import Callable, Iterator

from muster.lifecycle.abilities import some_cluster_can_run_it
from muster.lifecycle.cautions import dependency_is_hopeless, no_node_matches, quota_is_escaped
from muster.lifecycle.form import (
    deadline_can_be_met,
    groups_are_named_once,
    mail_has_an_address,
    numbers_make_sense,
)
from muster.lifecycle.limits import (
    asks_for_something,
    full_queues_refuse,
    queue_takes_more_jobs,
    within_class_limits,
    within_queue_limits,
)
from muster.lifecycle.names import (
    class_exists,
    dependencies_exist,
    levels_exist,
    models_exist,
    named_pools_are_open,
    pools_and_clusters_exist,
    profiles_exist,
    queue_exists,
    reservation_is_open,
    sharing_is_offered,
    some_pool_is_left,
    user_may_submit,
)
from muster.lifecycle.refusal import Accepted, Caution, Refusal
from muster.lifecycle.room import groups_fit_somewhere, time_limit_is_allowed, with_time_limit
from muster.lifecycle.sizes import sizes_are_bounded, texts_are_plain
from muster.lifecycle.submission import NodeKind, Submission, kinds_of, submission
from muster.model.job import JobSpec
from muster.model.queue import UNNAMED, usual_class
from muster.model.snapshot import Snapshot
from muster.model.value import replace

# Later rules count on earlier ones: what is named exists, numbers are positive.
RULES: tuple[Callable[[Submission], Refusal | None], ...] = (
    sizes_are_bounded,
    texts_are_plain,
    queue_exists,
    user_may_submit,
    class_exists,
    pools_and_clusters_exist,
    reservation_is_open,
    dependencies_exist,
    groups_are_named_once,
    numbers_make_sense,
    mail_has_an_address,
    asks_for_something,
    named_pools_are_open,
    some_pool_is_left,
    some_cluster_can_run_it,
    models_exist,
    sharing_is_offered,
    profiles_exist,
    levels_exist,
    groups_fit_somewhere,
    time_limit_is_allowed,
    deadline_can_be_met,
    within_queue_limits,
    within_class_limits,
    queue_takes_more_jobs,
    full_queues_refuse,
)

OF_THE_FLEET = frozenset({models_exist, profiles_exist, levels_exist, groups_fit_somewhere})
"""Rules about the nodes that there are today."""

CAUTIONS: tuple[Callable[[Submission], Iterator[Caution]], ...] = (
    quota_is_escaped,
    no_node_matches,
    dependency_is_hopeless,
)


def admit(
    spec: JobSpec,
    snapshot: Snapshot,
    kinds: tuple[NodeKind, ...] | None = None,
    *,
    patient: bool = False,
) -> Accepted | Refusal:
    """Accept the request, completed, or give the first reason against it.

    Refused is what must change before it could ever run, and what its queue will not have wait.
    `snapshot.finished` has the ended jobs that `spec.after` names.
    `kinds` are those of the snapshot's nodes, for callers that ask often and keep them.
    patient: what no node that there is could run may wait until there are others.
    """
    asked = _completed(spec, snapshot, kinds)
    for rule in RULES:
        if patient and rule in OF_THE_FLEET:
            continue
        if refusal := rule(asked):
            return refusal
    cautions = tuple(caution for rule in CAUTIONS for caution in rule(asked))
    return Accepted(spec=asked.spec, cautions=cautions)


def _completed(spec: JobSpec, snapshot: Snapshot, kinds: tuple[NodeKind, ...] | None) -> Submission:
    known = kinds_of(snapshot) if kinds is None else kinds
    asked = submission(_with_class(spec, snapshot), snapshot, known)
    return replace(asked, spec=with_time_limit(asked))


def _with_class(spec: JobSpec, snapshot: Snapshot) -> JobSpec:
    if spec.job_class != UNNAMED:
        return spec
    return replace(spec, job_class=usual_class(snapshot.queues, spec.queue))
