"""The options of one job, read with Slurm's words for what cannot be read."""

from collections.abc import Mapping

from muster.doors.slurm.call import Call
from muster.doors.slurm.words import sizes, times
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.options import Parsed
from muster.model.value import Duration, Instant, Value


class Request(Value):
    """What was asked for: by the script, the environment and the command line together.

    component: for which one of a job that has several.
    """

    command: str
    given: Parsed
    call: Call
    now: Instant
    component: int = 0

    def has(self, name: str) -> bool:
        return self.given.has(name)

    def text(self, *names: str) -> str | None:
        return self.given.value(*names)

    def number(self, name: str, *, least: int = 1) -> int | None:
        """A whole number; the last one counts."""
        text = self.given.value(name)
        if text is None:
            return None
        if not text.strip().isdecimal() or not least <= int(text) <= 2**31 - 1:
            text = f'Invalid numeric value "{text}" for --{name}.'
            raise failed(self.command, text)
        return int(text)

    def memory(self, name: str) -> int | None:
        text = self.given.value(name)
        if text is None:
            return None
        mib = sizes.memory_mib(text)
        if mib is None:
            raise self.bad(name)
        return mib

    def instant(self, name: str) -> Instant | None:
        text = self.given.value(name)
        if text is None:
            return None
        try:
            return times.instant(text, self.now, self.call.zone)
        except times.BadTimeError as bad:
            place = f"Invalid time specification (pos={bad.place}): {text}"
            error = f"{self.command}: error: Invalid --{name} specification"
            raise SlurmError(place, error, code=255) from bad

    def limit(self, name: str = "time") -> Duration | None:
        """None: no limit was given, or none is wanted."""
        text = self.given.value(name)
        try:
            return None if text is None else times.limit(text)
        except times.BadTimeError as bad:
            raise self.bad(name) from bad

    def bad(self, name: str) -> SlurmError:
        return failed(self.command, f"Invalid --{name} specification", code=255)

    def submission_failed(self, why: str) -> SlurmError:
        if self.has("test-only"):
            return SlurmError(f"allocation failure: {why}")
        return failed(self.command, f"{self.failure}: {why}")

    @property
    def failure(self) -> str:
        """What the command says of a job that it was not given."""
        return _FAILURES.get(self.command, "Unable to allocate resources")


_FAILURES = {
    "sbatch": "Batch job submission failed",
    "salloc": "Job submit/allocate failed",
}


def merged(*layers: Parsed, aliases: Mapping[str, str]) -> Parsed:
    """Later layers are stronger; the words that are no options are those of the last."""
    given = tuple((aliases.get(name, name), value) for each in layers for name, value in each.given)
    return Parsed(given=given, rest=layers[-1].rest)
