"""What is seen of a cluster's nodes and of the files of its attempts, as news."""

import contextlib
from collections.abc import Iterable, Iterator

from muster.backends.checkpoints import CheckpointPlace, CheckpointWatch, candidates
from muster.backends.local.isolation.users import LaunchError, local_user, opening_as
from muster.backends.slurm.listing import QueuedJob, held_by_others
from muster.backends.slurm.nodes import without
from muster.backends.slurm.notes import Note
from muster.model.cluster import Node
from muster.model.event import Event, JobCheckpointed, NodeGone, NodeSeen
from muster.model.value import DeviceId, Instant, NodeId


class NodeWatch:
    """The nodes as they were told, and as they are: less what jobs of others have of them."""

    def __init__(self) -> None:
        self._whole: dict[NodeId, Node] = {}
        self._told: dict[NodeId, Node] = {}
        self._others: tuple[QueuedJob, ...] = ()

    def forget(self) -> None:
        """Tell everything again."""
        self._told.clear()

    def are(self, nodes: Iterable[Node]) -> None:
        self._whole = {node.id: node for node in nodes}

    def others_run(self, jobs: Iterable[QueuedJob]) -> None:
        self._others = tuple(jobs)

    def news(self, ours: frozenset[DeviceId], now: Instant) -> Iterator[Event]:
        """What differs from what was told. ours: the devices that attempts of ours hold."""
        taken = held_by_others(self._others)
        found = {
            id: without(node, taken[id], ours) if id in taken else node
            for id, node in self._whole.items()
        }
        for id, node in found.items():
            if self._told.get(id) != node:
                yield NodeSeen(at=now, node=node)
        for id in self._told:
            if id not in found:
                yield NodeGone(at=now, node=id)
        self._told = found


class CheckpointLook:
    """Looks for the checkpoints of one attempt, where this machine sees the cluster's files."""

    def __init__(self) -> None:
        self._watch = CheckpointWatch()

    def news(self, note: Note, now: Instant) -> JobCheckpointed | None:
        """A finished checkpoint that was not told before; with the user's rights alone."""
        if note.checkpoint is None:
            return None
        with contextlib.suppress(LaunchError, OSError):
            user = local_user(note.user)
            place = CheckpointPlace(path=note.checkpoint.path, uid=user.uid, since_ms=note.began_at)
            with opening_as(user):
                found = candidates(place)
            seen = self._watch.news(found)
            if seen is not None:
                at = Instant(min(seen.mtime_ms, now))
                return JobCheckpointed(at=at, job=note.job, attempt=note.attempt, path=seen.path)
        return None
