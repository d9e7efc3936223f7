"""One key of `scontrol update JobId=` with its value: how it is read, and what is wrong with it."""

from muster.controller.asked import JobView
from muster.doors.slurm import times
from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.pairs import Pair
from muster.doors.slurm.trouble import SlurmError
from muster.model.value import Instant, Value


class Field(Value):
    """One key with its value, and what it is read against."""

    pair: Pair
    view: JobView
    call: Call
    door: Door

    @property
    def value(self) -> str:
        return self.pair.value

    def wrong(self, why: str) -> SlurmError:
        """What Slurm's controller would say of this job."""
        return SlurmError(f"{why} for job {self.view.job.id}")

    def number(self) -> int:
        """A whole number, of which the least counts in `2-4`."""
        text = self.value.partition("-")[0]
        if not text.isdigit():
            raise self.no_number()
        return int(text)

    def no_number(self) -> SlurmError:
        name = _SPELLED.get(self.pair.name, self.pair.text.partition("=")[0])
        return SlurmError(f"scontrol: error: Invalid {name} value: {self.value}")

    def instant(self) -> Instant:
        try:
            return times.instant(self.value, self.door.now, self.call.zone)
        except times.BadTimeError as bad:
            place = f"Invalid time specification (pos={bad.place}): {self.value}"
            raise SlurmError(place, "No changes specified") from bad


_SPELLED = {
    "cpuspertask": "CPUsPerTask",
    "minmemorycpu": "MinMemoryCPU",
    "minmemorynode": "MinMemoryNode",
}
