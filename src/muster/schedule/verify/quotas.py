"""Quotas of queues: limits, borrowing, and what others keep for themselves."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise

from muster.model.queue import Quota, Scope, lineage
from muster.model.value import QueuePath, Value
from muster.schedule.verify.case import Case
from muster.schedule.verify.moments import Moment
from muster.schedule.verify.usage import EVERYONE, Fleet, Uses, rolled_up
from muster.schedule.verify.violation import Violation

Lines = Mapping[Scope, list[tuple[QueuePath, Quota]]]
"""Lines of quota and whose they are, by scope."""


class Book(Value):
    """What is used in one scope at one moment, and what of it is new; with all queues below."""

    scope: Scope
    words: str
    adding: tuple[QueuePath, ...]
    new: Mapping[QueuePath, int]
    used: Mapping[QueuePath, int]


def quotas_hold(case: Case) -> Iterator[Violation]:
    """Held, claimed and new are within every line into which something new falls.

    For the job's queue and each ancestor: at most `limit`, at most `guaranteed + borrow_limit`;
    and every other queue is left the part of its guarantee that it does not lend.
    """
    own, kept = _own_lines(case), _kept_lines(case)
    scopes = own.keys() | kept.keys()
    if not scopes:
        return
    fleet = Fleet(case.snapshot)
    staying = Uses(case.snapshot.nodes, scopes)
    staying.add(case.moments[0].staying)
    for moment in case.moments:
        for book in _books(case, moment, staying, scopes):
            for path, quota in own.get(book.scope, ()):
                yield from _beyond(book, path, quota, fleet)
            if book.scope in kept:
                yield from _into_what_others_keep(book, kept[book.scope], fleet)


def _own_lines(case: Case) -> Lines:
    """The lines of every queue to which something is added, and of those above it."""
    queues = {addition.job.spec.queue for addition in case.additions}
    return _lines(case, {path for queue in queues for path in lineage(queue)})


def _kept_lines(case: Case) -> Lines:
    """The lines that do not lend everything, anywhere in the tree."""
    found: dict[Scope, list[tuple[QueuePath, Quota]]] = {}
    for path, queue in case.snapshot.queues.items() if case.additions else ():
        for quota in queue.quotas:
            if quota.lend_limit is not None:
                found.setdefault(quota.scope, []).append((path, quota))
    return found


def _lines(case: Case, paths: Iterable[QueuePath]) -> Lines:
    queues = case.snapshot.queues
    found: dict[Scope, list[tuple[QueuePath, Quota]]] = {}
    for path in sorted(paths):
        queue = queues.get(path)
        for quota in queue.quotas if queue is not None else ():
            found.setdefault(quota.scope, []).append((path, quota))
    return found


def _books(case: Case, moment: Moment, staying: Uses, scopes: Iterable[Scope]) -> Iterator[Book]:
    passing = Uses(case.snapshot.nodes, scopes)
    passing.add(chain(moment.leaving, moment.claims, moment.memory_only))
    added = Uses(case.snapshot.nodes, scopes)
    added.add((addition.job, addition.placements) for addition in moment.added)
    for scope in sorted(scopes, key=repr):
        new = added.of(scope)
        adding = tuple(sorted(path for path, amount in new.items() if amount > 0))
        if not adding:
            continue
        used = staying.of(scope)
        for path, amount in chain(passing.of(scope).items(), new.items()):
            used[path] += amount
        yield Book(
            scope=scope,
            words=moment.words,
            adding=adding,
            new=rolled_up(new),
            used=rolled_up(used),
        )


def _beyond(book: Book, path: QueuePath, quota: Quota, fleet: Fleet) -> Iterator[Violation]:
    if book.new.get(path, 0) <= 0:
        return
    used, subject = book.used[path], f"queue {path}"
    if quota.limit is not None:
        limit = fleet.number(quota.limit, book.scope)
        if used > limit:
            text = (
                f"It would hold {used} of {_words(book.scope)}; its limit is {limit}{book.words}."
            )
            yield Violation(rule="limit", subject=subject, text=text)
    if quota.borrow_limit is not None:
        guaranteed = fleet.number(quota.guaranteed, book.scope)
        borrow = fleet.number(quota.borrow_limit, book.scope)
        if used > guaranteed + borrow:
            text = (
                f"It would hold {used} of {_words(book.scope)}; "
                f"it has {guaranteed} and may borrow {borrow}{book.words}."
            )
            yield Violation(rule="borrow", subject=subject, text=text)


def _into_what_others_keep(
    book: Book, whose: list[tuple[QueuePath, Quota]], fleet: Fleet
) -> Iterator[Violation]:
    unused = _unused(book, whose, fleet)
    below = _tree(unused)
    capacity, used = fleet.capacity(book.scope), book.used[EVERYONE]
    for path in book.adding:
        kept = _beside(EVERYONE, frozenset(lineage(path)), below, unused)
        if used + kept > capacity:
            text = (
                f"It takes what others keep: {used} of {_words(book.scope)} are in use "
                f"and {kept} kept, of {capacity}{book.words}."
            )
            yield Violation(rule="kept", subject=f"queue {path}", text=text)


def _unused(book: Book, whose: list[tuple[QueuePath, Quota]], fleet: Fleet) -> dict[QueuePath, int]:
    """What each queue does not lend of its guarantee, and does not use."""
    found: dict[QueuePath, int] = {}
    for path, quota in whose:
        guaranteed = fleet.number(quota.guaranteed, book.scope)
        kept = guaranteed - fleet.number(quota.lend_limit or 0, book.scope)
        unused = kept - book.used.get(path, 0)
        found[path] = max(found.get(path, 0), unused)
    return found


def _tree(paths: Iterable[QueuePath]) -> dict[QueuePath, set[QueuePath]]:
    """The children of each queue, as far as these queues need them."""
    below: dict[QueuePath, set[QueuePath]] = {}
    for path in paths:
        line = (*lineage(path), EVERYONE)
        for child, parent in pairwise(line):
            below.setdefault(parent, set()).add(child)
    return below


def _beside(
    path: QueuePath,
    line: frozenset[QueuePath],
    below: dict[QueuePath, set[QueuePath]],
    unused: dict[QueuePath, int],
) -> int:
    """What subtrees beside the line keep, from this queue of the line downwards."""
    return sum(
        _beside(child, line, below, unused) if child in line else _kept(child, below, unused)
        for child in below.get(path, ())
    )


def _kept(
    path: QueuePath, below: dict[QueuePath, set[QueuePath]], unused: dict[QueuePath, int]
) -> int:
    """The larger of what the queue keeps itself and what those below it keep."""
    children = sum(_kept(child, below, unused) for child in below.get(path, ()))
    return max(unused.get(path, 0), children)


def _words(scope: Scope) -> str:
    where = [name for name in (scope.profile, scope.model, scope.pool) if name is not None]
    return " ".join((scope.meter, *where))
