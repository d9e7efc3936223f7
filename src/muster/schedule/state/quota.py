"""The queue tree's quotas: what is used, what may still be, and what is guaranteed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from muster.model.amounts import capacity_of, covers
from muster.model.cluster import Node
from muster.model.queue import Meter, Queue, Scope, is_within, lineage
from muster.model.reason import BorrowedOut, OverLimit, TooManyJobs, WaitReason
from muster.model.value import GpuModel, PoolName, QueuePath
from muster.schedule.state.accounts import Account, Portion, QuotaLine


class Change(NamedTuple):
    """What one job of a queue holds."""

    path: QueuePath
    portions: Sequence[Portion]
    jobs: int
    is_claim: bool = False


class Quotas:
    """All accounts, and for scopes where somebody keeps part of his guarantee, the whole scope."""

    def __init__(self, queues: Mapping[QueuePath, Queue]) -> None:
        self.accounts: dict[QueuePath, Account] = {}
        self._nodes: list[Node] = []
        self._capacity: dict[Scope, int] = {}
        self._subtrees: dict[QueuePath, list[QueuePath]] = {}
        for path in sorted(queues):
            lines = [QuotaLine(path, quota) for quota in queues[path].quotas]
            self.accounts[path] = Account(queues[path], lines)
        for path, account in self.accounts.items():
            account.above = tuple(
                self.accounts[each] for each in lineage(path) if each in self.accounts
            )
        for account in self.accounts.values():
            account.keeps = any(
                line.quota.lend_limit is not None for each in account.above for line in each.lines
            )
            account.counted = tuple(
                each for each in account.above if each.queue.max_jobs is not None
            )
            guarantees = (
                tuple(line for line in each.lines if _guarantees_gpus(line))
                for each in account.above
            )
            account.own_lines = next((lines for lines in guarantees if lines), ())
            account.gpu_lines = tuple(
                line for each in account.above for line in each.lines if _bounds_all_gpus(line)
            )
        lines = [line for account in self.accounts.values() for line in account.lines]
        kept = {line.scope for line in lines if line.quota.lend_limit is not None}
        self._kept_scopes = tuple(sorted(kept, key=str))
        self._kept_by_place: dict[tuple[PoolName, GpuModel | None], tuple[Scope, ...]] = {}
        self._total_used: dict[Scope, int] = dict.fromkeys(self._kept_scopes, 0)
        self._kept: dict[tuple[str, Scope], int] = {}
        self._kept_below: dict[tuple[str, Scope], int] = {}

    def resolve(self, nodes: Iterable[Node]) -> None:
        """Capacity came or went: work out again what percentages come to."""
        self._nodes = list(nodes)
        self._capacity.clear()
        for account in self.accounts.values():
            for line in account.lines:
                line.resolve(self.capacity(line.scope))
        self._kept.clear()
        self._kept_below.clear()
        for path in sorted(self.accounts, key=_deepest_first):
            self._recount_kept(path)

    def capacity(self, scope: Scope) -> int:
        """Everything the scope has."""
        known = self._capacity.get(scope)
        if known is None:
            known = self._capacity[scope] = capacity_of(scope, self._nodes)
        return known

    def add(self, change: "Change", victims: Sequence["Change"], *, sign: int) -> None:
        """Somebody takes (sign 1) or gives back (sign -1) this much.

        A claim's victims count until they are gone; of the claim, only what exceeds them does.
        """
        account = self._nearest(change.path)
        leaving = self._leaving(victims, sign) if victims else {}
        for counter, amount in self._measured(change).items():
            rest = max(0, amount - leaving.get(counter, 0)) if leaving else amount
            if isinstance(counter, QuotaLine):
                counter.used += sign * rest
                counter.claimed += sign * rest if change.is_claim else 0
            else:
                self._total_used[counter] += sign * rest
        if account is not None:
            self._add_jobs(account, change.jobs, victims, sign)
            if account.keeps:
                self._recount_kept(change.path)
        for victim in victims:
            self._recount_kept(victim.path)

    def _leaving(self, victims: Sequence["Change"], sign: int) -> dict["QuotaLine | Scope", int]:
        """What victims will give back, noted on each line."""
        leaving: dict[QuotaLine | Scope, int] = {}
        for victim in victims:
            for counter, amount in self._measured(victim).items():
                leaving[counter] = leaving.get(counter, 0) + amount
                if isinstance(counter, QuotaLine):
                    counter.leaving += sign * amount
        return leaving

    def _nearest(self, path: QueuePath) -> Account | None:
        """The queue's account, or that of the nearest queue above it that still exists."""
        account = self.accounts.get(path)
        if account is not None:
            return account
        return next((self.accounts[each] for each in lineage(path) if each in self.accounts), None)

    def _measured(self, change: "Change") -> dict["QuotaLine | Scope", int]:
        """How much of what each line, and each scope that is watched as a whole, counts."""
        account = self._nearest(change.path)
        found: dict[QuotaLine | Scope, int] = {}
        for portion in change.portions:
            for line in () if account is None else account.lines_at(portion.pool, portion.model):
                found[line] = found.get(line, 0) + portion.measured(line.scope)
            for scope in self._kept_at(portion.pool, portion.model):
                found[scope] = found.get(scope, 0) + portion.measured(scope)
        return found

    def _kept_at(self, pool: PoolName, model: GpuModel | None) -> tuple[Scope, ...]:
        """The scopes that are watched as a whole and count what lies in this pool on this model."""
        known = self._kept_by_place.get((pool, model))
        if known is None:
            known = tuple(scope for scope in self._kept_scopes if covers(scope, pool, model))
            self._kept_by_place[pool, model] = known
        return known

    def _add_jobs(
        self, account: Account, jobs: int, victims: Sequence["Change"], sign: int
    ) -> None:
        for each in account.above:
            leaving = 0
            for victim in victims:
                leaving += is_within(victim.path, each.path)
            each.jobs += sign * max(0, jobs - leaving)

    def refusal(self, path: QueuePath, portions: Sequence[Portion]) -> WaitReason | None:
        """Why the queue may not have this much more, or None if it may."""
        account = self.accounts[path]
        if len(portions) == 1:
            portion = portions[0]
            lines = account.lines_at(portion.pool, portion.model)
            asks = [(line, portion.measured(line.scope)) for line in lines]
        else:
            asks = list(_asked(account, portions).items())
        for line, asked in asks:
            if asked and line.used + asked > line.limit:
                return OverLimit(
                    queue=line.path, scope=line.scope, limit=line.limit, used=line.used, asked=asked
                )
            if asked and line.used + asked > line.ceiling:
                available = max(0, line.ceiling - line.used)
                return BorrowedOut(
                    queue=line.path,
                    scope=line.scope,
                    available=available,
                    asked=asked,
                    at_most=line.ceiling,
                )
        return self._kept_refusal(account, portions) if self._kept_scopes else None

    def subtree(self, path: QueuePath) -> list[QueuePath]:
        """The queue and all below it."""
        known = self._subtrees.get(path)
        if known is None:
            known = [each for each in self.accounts if is_within(each, path)]
            self._subtrees[path] = known
        return known

    def too_many_jobs(self, path: QueuePath) -> TooManyJobs | None:
        """Which queue above (or this one) already runs as many jobs as it may."""
        for account in self.accounts[path].counted:
            limit = account.queue.max_jobs
            if limit is not None and account.jobs >= limit:
                return TooManyJobs(queue=account.path, limit=limit)
        return None

    def too_much(self, path: QueuePath, gpu_milli: int) -> OverLimit | None:
        """Which queue above (or this one) may not hold so much more GPU, wherever it is."""
        for line in self.accounts[path].gpu_lines:
            if line.used + gpu_milli > line.limit:
                return OverLimit(
                    queue=line.path,
                    scope=line.scope,
                    limit=line.limit,
                    used=line.used,
                    asked=gpu_milli,
                )
        return None

    def may_own(self, path: QueuePath) -> bool:
        """Is anything guaranteed to the queue, or to one above it?"""
        account = self.accounts.get(path)
        return account is not None and bool(account.own_lines)

    def is_own(self, path: QueuePath, gpu_milli: int) -> bool:
        """Would the nearest queue that has a guarantee of GPUs still be within it?"""
        account = self.accounts.get(path)
        if account is None or not account.own_lines or not gpu_milli:
            return False
        return any(line.used + gpu_milli <= line.guaranteed for line in account.own_lines)

    def is_within_guarantee(self, account: Account, portions: Sequence[Portion]) -> bool:
        """Would this account's own guarantees, where it has any on GPUs, still cover this?"""
        covering = _covering(account, portions)
        return bool(covering) and all(
            line.used + asked <= line.guaranteed for line, asked in covering
        )

    def is_borrowing(self, account: Account, portions: Sequence[Portion]) -> bool:
        """Does this account hold more than its guarantee of what these portions are part of?"""
        covering = _covering(account, portions)
        return not covering or any(
            line.used - line.leaving > line.guaranteed for line, _ in covering
        )

    def _kept_refusal(self, account: Account, portions: Sequence[Portion]) -> BorrowedOut | None:
        """Would this eat into what another queue does not lend?"""
        for scope in self._kept_scopes:
            asked = 0
            for portion in portions:
                if scope in self._kept_at(portion.pool, portion.model):
                    asked += portion.measured(scope)
            if not asked:
                continue
            kept = self._kept_beside(account, scope)
            available = self._capacity[scope] - self._total_used[scope] - kept
            if asked > available:
                return BorrowedOut(
                    queue=account.path,
                    scope=scope,
                    available=max(0, available),
                    asked=asked,
                    at_most=self._capacity[scope],
                )
        return None

    def _kept_beside(self, account: Account, scope: Scope) -> int:
        """What all subtrees beside the account's lineage keep for themselves and do not use."""
        kept = self._kept_below.get(("", scope), 0)
        for each in account.above:
            place = (each.path, scope)
            kept += self._kept_below.get(place, 0) - self._kept.get(place, 0)
        return kept

    def _recount_kept(self, path: QueuePath) -> None:
        """What the queue and those above it keep and do not use."""
        account = self._nearest(path)
        if account is not None and account.keeps:
            for scope in self._kept_scopes:
                self._recount_kept_of(account, scope)

    def _recount_kept_of(self, account: Account, scope: Scope) -> None:
        """A queue keeps the larger of its own unused part and what its children keep."""
        for each in account.above:
            lines = [line for line in each.lines if line.scope == scope]
            # The least it may come to use counts: before claims come true, after victims have left.
            least = (line.used - line.claimed - line.leaving for line in lines)
            unused = max(
                (line.kept - held for line, held in zip(lines, least, strict=True)), default=0
            )
            kept = max(0, unused, self._kept_below.get((each.path, scope), 0))
            change = kept - self._kept.get((each.path, scope), 0)
            if change:
                self._kept[each.path, scope] = kept
                above = (each.path.rpartition("/")[0], scope)
                self._kept_below[above] = self._kept_below.get(above, 0) + change


def is_everywhere(refusal: WaitReason) -> bool:
    """Would the queue be refused the same in every pool and on every model?"""
    if not isinstance(refusal, (OverLimit, BorrowedOut)):
        return False
    scope = refusal.scope
    return scope.pool is None and scope.model is None


def _bounds_all_gpus(line: QuotaLine) -> bool:
    scope = line.scope
    is_overall = scope.meter is Meter.GPU and scope.pool is None and scope.model is None
    return is_overall and line.quota.limit is not None


def _guarantees_gpus(line: QuotaLine) -> bool:
    return line.scope.meter is Meter.GPU and line.quota.guaranteed != 0


def _deepest_first(path: QueuePath) -> tuple[int, QueuePath]:
    return (-path.count("/"), path)


def _asked(account: Account, portions: Sequence[Portion]) -> dict[QuotaLine, int]:
    asked: dict[QuotaLine, int] = {}
    for portion in portions:
        for line in account.lines_at(portion.pool, portion.model):
            asked[line] = asked.get(line, 0) + portion.measured(line.scope)
    return asked


def _covering(account: Account, portions: Sequence[Portion]) -> list[tuple[QuotaLine, int]]:
    """The account's own GPU lines with a guarantee that count some of this, and how much of it."""
    covering: list[tuple[QuotaLine, int]] = []
    for line in account.lines:
        if line.scope.meter is not Meter.GPU or not line.guaranteed:
            continue
        asked = sum(
            portion.amount.gpu_milli
            for portion in portions
            if covers(line.scope, portion.pool, portion.model)
        )
        if asked:
            covering.append((line, asked))
    return covering
