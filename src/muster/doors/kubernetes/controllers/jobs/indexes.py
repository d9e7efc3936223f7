"""Sets of completion indexes, written as a Job's status writes them: `0-3,5,7,8`."""

from collections.abc import Iterable

from muster.doors.kubernetes.objects.value import JsonObject, annotations_of

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def parsed(text: str | None, completions: int) -> frozenset[int]:
    """The indexes of a text, those below the number of completions."""
    found: set[int] = set()
    for interval in filter(None, (text or "").split(",")):
        first, _, last = interval.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            continue
        found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(found)


def written(indexes: Iterable[int]) -> str:
    """As a status says it: intervals of three or more with a dash."""
    intervals: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if intervals and intervals[-1][1] == index - 1:
            intervals[-1] = (intervals[-1][0], index)
        else:
            intervals.append((index, index))
    return ",".join(_interval(first, last) for first, last in intervals)


def index_of(pod: JsonObject) -> int | None:
    """The completion index of a pod, if it has one."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else None


def _interval(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
