"""Who computes beside whom on the devices of a pretended cluster, and how fast that lets them be.

Slices that nothing keeps apart are slower together than alone. How much slower is an
assumption of the simulation; without one, every attempt is as fast as alone.
"""

from collections.abc import Callable, Iterator

from muster.backends.simulated.attempt import SimulatedAttempt
from muster.model.value import DeviceId, JobId

Pace = Callable[[JobId, frozenset[JobId]], int]
"""How fast a job computes beside these on one device: thousandths of how fast it is alone."""


class Sharing:
    """Attempts that compute now, by device."""

    def __init__(self) -> None:
        self.pace: Pace | None = None
        self._on: dict[DeviceId, dict[JobId, SimulatedAttempt]] = {}

    def update(self, attempt: SimulatedAttempt) -> Iterator[tuple[SimulatedAttempt, int]]:
        """It computes now, or does not any more: whose pace is another by that, and which."""
        if self.pace is None:
            return
        met = {attempt.job: attempt} if attempt.since is not None else {}
        for device in attempt.devices:
            here = self._on.setdefault(device, {})
            if attempt.since is None:
                here.pop(attempt.job, None)
            else:
                here[attempt.job] = attempt
            met |= here
        for _, each in sorted(met.items()):
            pace = min(self.pace(each.job, self._beside(each, at)) for at in each.devices)
            if pace != each.pace:
                yield each, pace

    def _beside(self, attempt: SimulatedAttempt, device: DeviceId) -> frozenset[JobId]:
        return frozenset(self._on.get(device, {})) - {attempt.job}
