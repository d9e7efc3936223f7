"""Eviction: a deletion of a pod that disruption budgets may refuse."""

from muster.doors.kubernetes.controllers.cluster import Objects
from muster.doors.kubernetes.controllers.disruption import Eviction, may_evict
from muster.doors.kubernetes.objects.errors import (
    Cause,
    CauseReason,
    Reason,
    StatusError,
    cause_json,
    not_found,
)
from muster.doors.kubernetes.objects.kinds import POD, POD_DISRUPTION_BUDGET
from muster.doors.kubernetes.objects.strategy import Blueprint
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, namespace_of, part
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.deleting import Deleter, deletion_of
from muster.doors.kubernetes.serve.writing import TRIES, ObjectWriter, Request
from muster.model.value import Instant, replace

DONE: JsonObject = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
WORDS = "Eviction API: evicting"


class Evictor:
    """Evicts pods through the writer. budgets: what is known of disruption budgets."""

    def __init__(self, writer: ObjectWriter, budgets: Blueprint) -> None:
        self._writer = writer
        self._budgets = budgets

    def evict(self, request: Request, given: JsonObject, now: Instant) -> JsonObject:
        """The answer to who wants a pod evicted; StatusError if a budget says no."""
        target = replace(request.target, subresource="")
        pod = self._writer.view.get(POD, target.namespace, target.name)
        if pod is None:
            raise not_found(POD, target.name)
        self._ask_budgets(request, pod, now)
        whole = replace(request, target=target)
        if not request.writing.dry_run:
            self._mark(whole, now)
        deletion = deletion_of(part(given, "deleteOptions"), {})
        Deleter(self._writer).delete(whole, deletion, now)
        return dict(DONE)

    def _ask_budgets(self, request: Request, pod: JsonObject, now: Instant) -> None:
        """Write the eviction down in the budget that allows it."""
        for _ in range(TRIES):
            budgets = self._writer.view.objects(POD_DISRUPTION_BUDGET, namespace_of(pod))
            answer = may_evict(pod, Objects(budgets), now)
            if answer.refusal:
                raise _refused(answer)
            if answer.budget is None or request.writing.dry_run:
                return
            try:
                self._writer.update(self._of_budget(request, answer.budget), answer.budget)
            except StatusError as error:
                # Another eviction was quicker; what it left may still be enough.
                if error.reason is not Reason.CONFLICT:
                    raise
            else:
                return
        raise _refused(Eviction(refusal="too many evictions at once"))

    def _of_budget(self, request: Request, budget: JsonObject) -> Request:
        target = Target(
            kind=POD_DISRUPTION_BUDGET,
            namespace=namespace_of(budget),
            name=name_of(budget),
            subresource="status",
        )
        return Request(
            target=target, writing=Writing(), author=request.author, blueprint=self._budgets
        )

    def _mark(self, request: Request, now: Instant) -> None:
        """Say on the pod why it goes."""
        condition: JsonObject = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": stamp(now),
            "reason": "EvictionByEvictionAPI",
            "message": WORDS,
        }

        def mutate(old: JsonObject | None) -> JsonObject | None:
            if old is None:
                return None
            held = items(old, "status", "conditions")
            others = [each for each in held if each.get("type") != "DisruptionTarget"]
            status = {**part(old, "status"), "conditions": [*others, condition]}
            return {**old, "status": status}

        target = replace(request.target, subresource="status")
        self._writer.change(replace(request, target=target), mutate)


def _refused(answer: Eviction) -> StatusError:
    if answer.is_a_fault:
        return StatusError(Reason.INTERNAL_ERROR, answer.refusal)
    cause = Cause(reason=CauseReason.DISRUPTION_BUDGET, message=answer.cause)
    details: JsonObject = {"causes": [cause_json(cause)]} if answer.cause else {}
    return StatusError(Reason.TOO_MANY_REQUESTS, answer.refusal, details=details)
