"""Quotas of queues: limits, borrowing, and what others keep for themselves."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise

from muster.model.queue import Quota, Scope, lineage
from muster.model.value import QueuePath, Value
from muster.schedule.verify.case import Case
from muster.schedule.verify.fleet import Fleet
from muster.schedule.verify.moments import Moment
from muster.schedule.verify.usage import (
    EVERYONE,
    Asked,
    Rolled,
    line_of,
    rolled_up,
    use_by,
    use_by_holders,
    use_by_staying,
)
from muster.schedule.verify.violation import Violation

Lines = Mapping[Scope, list[tuple[QueuePath, Quota]]]
"""Lines of quota and whose they are, by scope."""


class Book(Value):
    """What is used in one scope at one moment, and what of it is new; with all queues below."""

    scope: Scope
    words: str
    adding: tuple[QueuePath, ...]
    new: Rolled
    used: Rolled


def quotas_hold(case: Case) -> Iterator[Violation]:
    """Held, claimed and new are within every line into which something new falls.

    For the job's queue and each ancestor: at most `limit`, at most `guaranteed + borrow_limit`;
    and every other queue is left the part of its guarantee that it does not lend.
    """
    own, kept = _own_lines(case), _kept_lines(case)
    if not own and not kept:
        return
    asked = _asked(case, own, kept)
    scopes = sorted(own.keys() | kept.keys(), key=repr)
    uses = use_by_staying(asked, case.staying)
    staying = {scope: rolled_up(uses.of(scope)) for scope in scopes}
    for moment in case.moments:
        for book in _books(moment, asked, staying):
            for path, quota in own.get(book.scope, ()):
                yield from _beyond(book, path, quota, case.fleet)
            if book.scope in kept:
                yield from _into_what_others_keep(book, kept[book.scope], case.fleet)


def _own_lines(case: Case) -> Lines:
    """The lines of every queue to which something is added, and of those above it."""
    return _lines(case, {path for queue in case.glance.queues for path in lineage(queue)})


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


def _asked(case: Case, own: Lines, kept: Lines) -> Asked:
    """Lines of their own bound only those below them; to what is kept, everyone matters."""
    whose = {scope: [path for path, _ in lines] for scope, lines in own.items()}
    return Asked(case.snapshot.nodes, whose | {scope: [EVERYONE] for scope in kept})


def _books(moment: Moment, asked: Asked, staying: Mapping[Scope, Rolled]) -> Iterator[Book]:
    """The scopes, of those in `staying`, into which something new falls."""
    passing = use_by_holders(asked, [*moment.passing(), *moment.memory_only])
    added = use_by(
        asked, [each.queue for each in moment.added], [each.placements for each in moment.added]
    )
    for scope, stays in staying.items():
        by_queue = added.of(scope)
        adding = tuple(sorted(path for path, amount in by_queue.items() if amount > 0))
        if not adding:
            continue
        new, used = rolled_up(by_queue), stays.copy()
        for path, amount in chain(rolled_up(passing.of(scope)).items(), new.items()):
            used[path] = used.get(path, 0) + amount
        yield Book(scope=scope, words=moment.words, adding=adding, new=new, used=used)


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
    capacity, used = fleet.capacity(book.scope), book.used[EVERYONE]
    below = _tree(path for path, _ in whose)
    kept: Rolled = {}
    _keep(EVERYONE, below, _unused(book, whose, fleet), kept)
    for path in book.adding:
        beside = _beside(path, below, kept)
        if used + beside > capacity:
            text = (
                f"It takes what others keep: {used} of {_words(book.scope)} are in use "
                f"and {beside} kept, of {capacity}{book.words}."
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
        for child, parent in pairwise(line_of(path)):
            below.setdefault(parent, set()).add(child)
    return below


def _keep(
    path: QueuePath,
    below: dict[QueuePath, set[QueuePath]],
    unused: dict[QueuePath, int],
    kept: Rolled,
) -> int:
    """Write down what each subtree keeps: the larger of its own part and of those below it."""
    children = sum([_keep(child, below, unused, kept) for child in below.get(path, ())])
    kept[path] = max(unused.get(path, 0), children)
    return kept[path]


def _beside(path: QueuePath, below: dict[QueuePath, set[QueuePath]], kept: Rolled) -> int:
    """What subtrees beside the line of this queue keep, those below it included."""
    line = line_of(path)
    return sum(
        kept[child] for parent in line for child in below.get(parent, ()) if child not in line
    )


def _words(scope: Scope) -> str:
    where = [name for name in (scope.profile, scope.model, scope.pool) if name is not None]
    return " ".join((scope.meter, *where))
