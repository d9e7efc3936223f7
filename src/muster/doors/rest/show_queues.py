"""Queues as documents: what each holds, may hold and borrows, with everything below counted in."""

from muster.api.site import QueueDocument, QuotaDocument
from muster.controller.messages import QueueUse, QuotaUse
from muster.model.queue import Meter, Scope

UNITS = {
    Meter.GPU: ("GPUs", 1_000),
    Meter.CPU: ("CPUs", 1_000),
    Meter.MEMORY: ("MiB", 1),
    Meter.MIG: ("instances", 1),
}
"""What a line of a quota is counted in, and how many of the meter make one of it."""


def queue_document(use: QueueUse) -> QueueDocument:
    """A queue with what it uses."""
    queue = use.queue
    return QueueDocument(
        path=queue.path,
        weight=queue.weight,
        priority=queue.priority,
        default_class=queue.default_class,
        max_jobs=queue.max_jobs,
        running=use.running,
        waiting=use.waiting,
        gpus_used=use.gpu_milli / 1_000,
        share=round(use.share, 6),
        used_share=round(use.used_share, 6),
        quotas=tuple(map(_quota, use.quotas)),
        may_submit=queue.may_submit,
        private=use.is_private,
    )


def _quota(use: QuotaUse) -> QuotaDocument:
    scope = use.quota.scope
    unit, size = UNITS[scope.meter]
    return QuotaDocument(
        scope=scope_text(scope),
        unit=unit,
        used=use.used / size,
        guaranteed=use.guaranteed / size,
        limit=None if use.limit is None else use.limit / size,
        borrowed=max(0, use.used - use.guaranteed) / size,
    )


def scope_text(scope: Scope) -> str:
    """`gpu`, `mig:1g.5gb`, `gpu pool=a100 model=A100-40GB`."""
    meter = f"{scope.meter}:{scope.profile}" if scope.profile else scope.meter.value
    pool = f" pool={scope.pool}" if scope.pool else ""
    return meter + pool + (f" model={scope.model}" if scope.model else "")
