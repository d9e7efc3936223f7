"""Silences and rules that people make, as commands: who may, and what is kept of it."""

import secrets
from collections.abc import Collection, Iterable

from muster.controller.alerting.kept import (
    RULES_KEY,
    SILENCES,
    rules_body,
    rules_text,
    silence_body,
    silence_key,
    silences_of,
)
from muster.controller.messages import Caller
from muster.controller.rights import demand
from muster.controller.use_cases.audit import audit
from muster.controller.world.transaction import Transaction
from muster.lifecycle.refusal import TooManySilences
from muster.model.alerting import LabelTest, Silence
from muster.model.errors import RefusedError, UnknownError
from muster.model.site import Role
from muster.model.value import DAY, Duration, Instant, QueuePath, UserName, Value, replace
from muster.telemetry.alerting.muting import steps_of
from muster.telemetry.alerting.reading import rule_groups
from muster.telemetry.alerting.rules import RuleGroup

KEPT_AFTER_END = Duration(5 * DAY)
MOST_ENDED = 200
"""So many of those that have ended are kept, the newest."""

MOST_SILENCES = 1_000
MOST_OF_ONE_USER = 100
MOST_STEPS = 1_500
"""Of all patterns of one user: each is compared with every alert, whoever wrote it."""


class SilenceRequest(Value):
    """What somebody wants silenced, for how long and why."""

    tests: tuple[LabelTest, ...]
    lasts: Duration
    comment: str
    queue: QueuePath | None = None


def make_silence(caller: Caller, request: SilenceRequest, transaction: Transaction) -> Silence:
    """For administrators, and for those of a queue what is in it."""
    demand(caller, transaction.site, Role.QUEUE_ADMIN, request.queue, to="silence alerts")
    if request.queue is not None and request.queue not in transaction.site.queues:
        raise UnknownError(f"There is no queue {request.queue}; see the list of queues.")
    known = silences_of(transaction.objects_on(SILENCES))
    now = transaction.now
    _forget_old(known, transaction)
    good = [each for each in known if each.ends_at > now]
    _demand_room(good, caller.user)
    _demand_few_steps([each for each in good if each.by == caller.user], request.tests)
    silence = Silence(
        id=secrets.token_hex(4),
        tests=request.tests,
        begins_at=now,
        ends_at=Instant(now + request.lasts),
        by=caller.user,
        comment=request.comment,
        queue=request.queue,
    )
    transaction.put_object(silence_key(silence.id), silence_body(silence))
    audit(transaction, caller, "silence alerts", f"silence {silence.id}", tests_text(silence.tests))
    return silence


def end_silence(caller: Caller, silence_id: str, transaction: Transaction) -> Silence:
    """From now on it silences nothing; that it was there is kept for a while."""
    known = silences_of(transaction.objects_on(SILENCES))
    found = next((each for each in known if each.id == silence_id), None)
    if found is None:
        raise UnknownError(f"There is no silence {silence_id}; see: muster silence list")
    demand(caller, transaction.site, Role.QUEUE_ADMIN, found.queue, to="end this silence")
    ended = replace(found, ends_at=Instant(min(found.ends_at, transaction.now)))
    transaction.put_object(silence_key(found.id), silence_body(ended))
    audit(transaction, caller, "end silence", f"silence {found.id}")
    return ended


class RulesChange(Value):
    """Names of rules that came and went. is_changed: whether the file differs at all."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    is_changed: bool


def apply_rules(
    caller: Caller, text: str, transaction: Transaction, *, dry_run: bool
) -> RulesChange:
    """The administrators' own rules, in place of those before. BadRulesError: not as they are."""
    demand(caller, transaction.site, Role.ADMIN, to="change the rules of alerts")
    after = rule_groups(text)
    before = rules_text(transaction.object(RULES_KEY))
    old, new = _names(rule_groups(before) if before else ()), _names(after)
    change = RulesChange(
        added=tuple(sorted(new - old)), removed=tuple(sorted(old - new)), is_changed=before != text
    )
    if not dry_run and before != text:
        transaction.put_object(RULES_KEY, rules_body(text))
        audit(transaction, caller, "apply rules of alerts", f"{len(new)} rules")
    return change


def tests_text(tests: Iterable[LabelTest]) -> str:
    """`alertname=GpuBroken gpu=~"0|1"`."""
    return " ".join(f"{each.name}{each.operator}{each.value}" for each in tests)


def _names(groups: Iterable[RuleGroup]) -> set[str]:
    return {f"{group.name}/{rule.name}" for group in groups for rule in group.rules}


def _forget_old(known: Iterable[Silence], transaction: Transaction) -> None:
    ended = [each for each in known if each.ends_at <= transaction.now]
    for at, each in enumerate(ended):
        if at < len(ended) - MOST_ENDED or transaction.now - each.ends_at > KEPT_AFTER_END:
            transaction.remove_object(silence_key(each.id))


def _demand_room(good: Collection[Silence], user: UserName) -> None:
    mine = sum(each.by == user for each in good)
    if mine >= MOST_OF_ONE_USER:
        raise RefusedError(
            TooManySilences(limit=MOST_OF_ONE_USER),
            f"{user} has {mine} silences, which is as many as one user can have; "
            "end some of them first: muster silence end ID.",
        )
    if len(good) >= MOST_SILENCES:
        raise RefusedError(
            TooManySilences(limit=MOST_SILENCES),
            f"there are {len(good)} silences already; end some of them first",
        )


def _demand_few_steps(mine: Iterable[Silence], tests: Iterable[LabelTest]) -> None:
    if sum(steps_of(each.tests) for each in mine) + steps_of(tests) > MOST_STEPS:
        raise RefusedError(
            TooManySilences(limit=MOST_STEPS),
            "the regular expressions of your silences are too long together; "
            "write shorter ones, or end some silences first",
        )
