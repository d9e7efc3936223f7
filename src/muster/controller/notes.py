"""The audit log: who changed what, through which door."""

from muster.controller.asked import Caller
from muster.controller.stage import Stage
from muster.model.history import AuditEntry


def note(stage: Stage, caller: Caller, action: str, subject: str, detail: str = "") -> None:
    """Write down who changed what, in the transaction that changes it."""
    stage.audit.append(
        AuditEntry(
            at=stage.now,
            user=caller.user,
            door=caller.door,
            action=action,
            subject=subject,
            detail=detail,
        )
    )
