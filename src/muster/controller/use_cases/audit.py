"""The audit log: who changed what, through which door."""

from muster.controller.messages import Caller
from muster.controller.world.transaction import Transaction
from muster.model.history import AuditEntry


def audit(
    transaction: Transaction, caller: Caller, action: str, subject: str, detail: str = ""
) -> None:
    """Write down who changed what, in the transaction that changes it."""
    transaction.audit.append(
        AuditEntry(
            at=transaction.now,
            user=caller.user,
            door=caller.door,
            action=action,
            subject=subject,
            detail=detail,
        )
    )
