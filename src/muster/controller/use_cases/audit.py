"""The audit log: who changed what, through which door."""

from muster.controller.messages import Caller
from muster.controller.world.transaction import Transaction
from muster.model.history import AuditEntry, RequestMade
from muster.model.value import replace

LONGEST_DETAIL = 2_000
"""In characters: an entry says what was changed, and is no copy of it."""


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
            detail=shortened(detail),
            token=None if caller.token is None else caller.token.id,
        )
    )


def remember_request(transaction: Transaction, made: RequestMade) -> None:
    """The entry that was written last is about this request."""
    transaction.audit[-1] = replace(transaction.audit[-1], request=made)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_DETAIL else f"{text[: LONGEST_DETAIL - 1]}…"
