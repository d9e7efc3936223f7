"""Where a page of ended jobs left off, as text that goes out and comes back."""

import re

from muster.model.errors import UnknownError
from muster.model.history import Ended
from muster.model.value import Instant, JobId, Value
from muster.stores.base import EndedBy, EndedPage, HistoryQuery

_MARK = re.compile(r"(id|end)-(-?\d{1,18})-(\d{1,18})")


class Mark(Value):
    """The last job of a page: the next one begins behind it."""

    ended_at: Instant
    job: JobId


def mark_of(query: HistoryQuery) -> Mark | None:
    """Where the page begins, if it is not the first."""
    if query.after is None:
        return None
    found = _MARK.fullmatch(query.after)
    if found is None or found[1] != query.order:
        raise UnknownError(
            f"{query.after!r} is not the end of a page in this order; omit it for the first page"
        )
    return Mark(ended_at=Instant(int(found[2])), job=JobId(int(found[3])))


def page(query: HistoryQuery, found: list[Ended]) -> EndedPage:
    """A page out of one more than it holds: that one shows whether there is another page."""
    jobs = tuple(found[: size(query)])
    if len(found) <= len(jobs):
        return EndedPage(jobs=jobs)
    return EndedPage(jobs=jobs, next=_text(query.order, jobs[-1]))


def size(query: HistoryQuery) -> int:
    """How many jobs the page holds at most."""
    return max(1, query.limit)


def _text(order: EndedBy, last: Ended) -> str:
    return f"{order}-{last.ended_at}-{last.job.id}"
