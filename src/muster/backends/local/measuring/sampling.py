"""One pass over this machine: its devices, whose processes are on them, its jobs, itself."""

from collections.abc import Mapping
from pathlib import Path

from muster.backends.local.attempt import processes, spool
from muster.backends.local.isolation.cgroup import CgroupRoots, existing, members
from muster.backends.local.measuring.host_reader import HostReader
from muster.backends.local.measuring.job_reader import Held, JobReader
from muster.model.placement import Placement
from muster.model.samples import DeviceSample, ProcessSample, Samples
from muster.model.value import SECOND, Instant, JobId, NodeId, replace

_STALE_AFTER = 45 * SECOND
"""Three looks: a device that has not answered for so long is not there."""


class Sampling:
    """Remembers the last pass, because what matters is what changed since then. One thread."""

    def __init__(self, roots: CgroupRoots, home: Path) -> None:
        self._roots = roots
        self._spool = home / spool.FOLDER
        self._host = HostReader(home)
        self._jobs = JobReader(roots)

    def look(
        self,
        devices: tuple[DeviceSample, ...],
        placed: Mapping[str, tuple[Placement, ...]],
        here: NodeId | None,
        now: Instant,
    ) -> Samples:
        """placed: by attempt, where it runs. here: this machine, unless its nodes are pretend."""
        held = tuple(
            Held(key=key, placements=placements, pids=self._pids(key))
            for key, placements in sorted(placed.items())
        )
        owners = _owners(held)
        return Samples(
            at=now,
            devices=tuple(
                with_owners(each, owners) for each in devices if now - each.at <= _STALE_AFTER
            ),
            jobs=self._jobs.look(held, now),
            hosts=() if here is None else (self._host.look(here, now),),
        )

    def _pids(self, key: str) -> tuple[int, ...]:
        """Those of its control group; where there are no groups, those below its supervisor."""
        folders = existing(self._roots, key)
        if folders:
            return tuple(sorted(members(folders)))
        begun = spool.begun(self._spool / key)
        if begun is None or processes.born(begun["pid"]) != begun["born"]:
            return ()
        return tuple(sorted(processes.descendants(begun["pid"])))


def _owners(held: tuple[Held, ...]) -> dict[int, tuple[JobId, int]]:
    """By process: whose it is."""
    found: dict[int, tuple[JobId, int]] = {}
    for each in held:
        parts = spool.parts_of(each.key)
        if parts is not None:
            found.update(dict.fromkeys(each.pids, (JobId(parts[0]), parts[1])))
    return found


def with_owners(sample: DeviceSample, owners: Mapping[int, tuple[JobId, int]]) -> DeviceSample:
    """The same look, with whose processes those on the device are."""
    if not sample.processes:
        return sample
    return replace(
        sample, processes=tuple(_owned(each, owners.get(each.pid)) for each in sample.processes)
    )


def _owned(process: ProcessSample, owner: tuple[JobId, int] | None) -> ProcessSample:
    return process if owner is None else replace(process, job=owner[0], attempt=owner[1])
