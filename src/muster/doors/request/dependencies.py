"""What a job waits for, as people write it: `afterok:17`, `afterany:17_*`, `singleton`. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping

from muster.doors.request.bad import BadRequestError, read
from muster.doors.units import duration
from muster.model.job import Dependency, DependencyKind
from muster.model.value import Duration, JobId, replace

MOST_DEPENDENCIES = 1_000
ANY = "?"
CORRESPONDING = "aftercorr"

Meant = Callable[[int, int | None], Mapping[JobId, int | None]]
"""The jobs that `12_3` or `12_*` stands for, one part of an array or all, with their indices."""

_JOB = re.compile(r"([0-9]{1,18})(?:_([0-9]{1,9}|\*))?")


def by_number(job: int, index: int | None) -> Mapping[JobId, int | None]:
    """Where no job is known: the number, as it is."""
    return {JobId(job): index}


def dependencies(
    texts: tuple[str, ...], meant: Meant, indices: tuple[int, ...]
) -> tuple[Dependency, ...]:
    """All of them; or one text, `afterok:17?afterany:18`, where each is enough.

    indices: of the array that is asked for, whose parts may wait for those of another.
    """
    reading = _Reading(meant, indices)
    if len(texts) == 1 and ANY in texts[0]:
        found = reading.any_of(texts[0])
    else:
        found = reading.all_of(texts)
    if len(found) > MOST_DEPENDENCIES:
        raise BadRequestError("after", f"a job may wait for {MOST_DEPENDENCIES} others, not more")
    return found


class _Reading:
    """Reads conditions, each of which may stand for several jobs."""

    def __init__(self, meant: Meant, indices: tuple[int, ...]) -> None:
        self._meant = meant
        self._indices = indices

    def all_of(self, texts: tuple[str, ...]) -> tuple[Dependency, ...]:
        if any(ANY in text for text in texts):
            raise BadRequestError(
                "after",
                f"a job waits for all or for any: join all with `{ANY}` in one, or leave it out",
            )
        return tuple(each for text in texts for way in self._ways(text) for each in way)

    def any_of(self, text: str) -> tuple[Dependency, ...]:
        """`afterok:17?afterany:18`: each of them is enough; a whole array is one of them."""
        ways = (way for part in text.split(ANY) for way in self._ways(part))
        return tuple(replace(each, way=number) for number, way in enumerate(ways) for each in way)

    def _ways(self, text: str) -> Iterator[tuple[Dependency, ...]]:
        """`afterok:17`, `afterany:17:18_2`, `after:17+5m`, `aftercorr:17`, `singleton`."""
        word, *others = text.split(":")
        if word == CORRESPONDING:
            kind = DependencyKind.AFTER_OK
        elif word in set(DependencyKind):
            kind = DependencyKind(word)
        else:
            known = ", ".join(f"`{each}`" for each in (*DependencyKind, CORRESPONDING))
            raise BadRequestError("after", f"`{word}` must be one of {known}")
        if kind is DependencyKind.SINGLETON and not others:
            yield (Dependency(kind=kind),)
            return
        if not others or kind is DependencyKind.SINGLETON:
            raise BadRequestError(
                "after", f"`{text}` names no job; write `{word}:17` or `singleton`"
            )
        for other in others:
            yield self._on_jobs(kind, other, text)

    def _on_jobs(self, kind: DependencyKind, other: str, text: str) -> tuple[Dependency, ...]:
        name, plus, delay = other.partition("+")
        found = _JOB.fullmatch(name)
        if found is None:
            raise BadRequestError("after", f"`{text}` names no job; write `{kind}:17`")
        job, part = int(found[1]), found[2]
        corresponds = text.startswith(CORRESPONDING)
        if part is None and not corresponds:
            jobs: Mapping[JobId, int | None] = {JobId(job): None}
        else:
            jobs = self._meant(job, int(part) if part and part != "*" else None)
        if corresponds and self._indices:
            return tuple(corresponding(jobs, self._indices))
        # Slurm counts this delay in minutes when no unit is written.
        later = f"{delay}m" if delay.isdecimal() else delay
        span = read("after", duration, later) if plus else Duration(0)
        return tuple(Dependency(kind=kind, job=each, delay=span) for each in jobs)


def corresponding(
    jobs: Mapping[JobId, int | None], indices: tuple[int, ...]
) -> Iterator[Dependency]:
    """Each part waits for that with its own index; for all of them if there is none."""
    by_index = {index: job for job, index in jobs.items()}
    for index in indices:
        others = (by_index[index],) if index in by_index else tuple(jobs)
        for job in others:
            yield Dependency(kind=DependencyKind.AFTER_OK, job=job, part=index)
