"""One look at a Deployment: its ReplicaSets as they will be, and how they are scaled."""

from collections.abc import Callable, Iterable

from muster.doors.kubernetes.controllers.changes import Create, Draft, Emit
from muster.doors.kubernetes.controllers.deployments.revisions import (
    DESIRED,
    MOST,
    brought_up_to_date,
    by_age,
    current,
    is_rolling,
    max_surge,
    max_unavailable,
    new_replica_set,
    replicas,
    revision,
    size_annotations,
    with_annotations,
)
from muster.doors.kubernetes.controllers.pods import created_at, is_leaving
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    metadata,
    name_of,
    part,
)


class Rollout:
    """The ReplicaSets of a Deployment, changed step by step and written at the end."""

    def __init__(self, draft: Draft, replica_sets: list[JsonObject]) -> None:
        self._draft = draft
        self.deployment = draft.about
        self.wanted = replicas(self.deployment)
        found = current(self.deployment, replica_sets)
        self.new = found
        self.old = [each for each in by_age(replica_sets) if each is not found]
        self._before = {name_of(each): each for each in replica_sets}
        self._events: list[tuple[str, str]] = []
        if found is not None:
            self.new = brought_up_to_date(
                found, self.deployment, self.next_revision(), is_new=False
            )

    def all(self) -> list[JsonObject]:
        """Old ones first, oldest before others; the new one last."""
        return self.old if self.new is None else [*self.old, self.new]

    def next_revision(self) -> int:
        return max((revision(each) for each in self.old), default=0) + 1

    def create_new(self) -> None:
        """The ReplicaSet of the present template, as large as may be at once."""
        made = new_replica_set(self.deployment)
        made = brought_up_to_date(made, self.deployment, self.next_revision(), is_new=True)
        self.new = made
        size = self._room_for_new() if is_rolling(self.deployment) else self.wanted
        self.new = {**made, "spec": {**made["spec"], "replicas": size}}
        if size:
            self._say(f"Scaled up replica set {name_of(made)} from 0 to {size}")

    def scale(self, replica_set: JsonObject, size: int, *, remember: bool = False) -> bool:
        """Give a ReplicaSet another size. remember: and the size of the whole, in any case."""
        before = replicas(replica_set)
        if before == size and not remember:
            return False
        annotations = annotations_of(replica_set) | size_annotations(self.deployment)
        changed = with_annotations(replica_set, annotations)
        if before != size:
            changed = {**changed, "spec": {**changed["spec"], "replicas": size}}
            way = "up" if before < size else "down"
            self._say(f"Scaled {way} replica set {name_of(changed)} from {before} to {size}")
        self._put(changed)
        return before != size

    def scale_new(self) -> bool:
        """Bring the new ReplicaSet as near to its size as the surge allows."""
        if self.new is None or replicas(self.new) == self.wanted:
            return False
        if replicas(self.new) > self.wanted:
            return self.scale(self.new, self.wanted)
        return self.scale(self.new, self._room_for_new())

    def scale_old(self) -> bool:
        """Take pods from old ReplicaSets: those that are not available first, then others."""
        if self.new is None or total(self.old) == 0:
            return False
        least = self.wanted - max_unavailable(self.deployment)
        missing = replicas(self.new) - available(self.new)
        most = total(self.all()) - least - missing
        if most <= 0:
            return False
        unhealthy = self._take(most, lambda each: replicas(each) - available(each))
        surplus = sum(map(available, self.all())) - least
        healthy = self._take(surplus, replicas)
        return unhealthy + healthy > 0

    def scale_in_proportion(self) -> None:
        """Follow a change of the wanted number without hastening what is on its way."""
        only = self._active_or_latest()
        if only is not None:
            self.scale(only, self.wanted)
        elif self._is_saturated():
            for each in self._active(self.old):
                self.scale(each, 0)
        elif is_rolling(self.deployment):
            self._share_out()

    def stop_old(self) -> bool:
        """Take all pods from old ReplicaSets."""
        return sum(self.scale(each, 0) for each in self.old) > 0

    def clean_up(self) -> None:
        """Delete old ReplicaSets beyond those that the history keeps."""
        limit = part(self.deployment, "spec").get("revisionHistoryLimit")
        if limit is None:
            return
        alive = [each for each in self.old if not is_leaving(each)]
        surplus = len(alive) - limit
        for each in sorted(alive, key=lambda each: (revision(each), _age(each)))[: max(0, surplus)]:
            if part(each, "status").get("replicas") or replicas(each) or not _is_observed(each):
                continue
            self._draft.delete(each)
            self.old.remove(each)

    def is_scaled(self) -> bool:
        """Has the wanted number changed since the ReplicaSets were last sized?"""
        for each in self._active(self.all()):
            told = annotations_of(each).get(DESIRED, "")
            if told.isdecimal() and int(told) != self.wanted:
                return True
        return False

    def write(self) -> None:
        """Put what changed into the draft."""
        for each in self.all():
            before = self._before.get(name_of(each))
            if before is None:
                self._draft.make(Create(object=each, refusal=self._refusal(each)))
            elif before != each:
                self._draft.update(each)
        for reason, message in self._events:
            self._draft.emit(reason, message)

    def _say(self, message: str) -> None:
        self._events.append(("ScalingReplicaSet", message))

    def _refusal(self, replica_set: JsonObject) -> Emit:
        return Emit(
            about=self.deployment,
            type="Warning",
            reason="ReplicaSetCreateError",
            message=f'Failed to create new replica set "{name_of(replica_set)}": ',
            source="deployment-controller",
        )

    def _put(self, changed: JsonObject) -> None:
        if self.new is not None and name_of(self.new) == name_of(changed):
            self.new = changed
            return
        self.old = [changed if name_of(each) == name_of(changed) else each for each in self.old]

    def _room_for_new(self) -> int:
        """How large the new ReplicaSet may be beside the others."""
        size = replicas(self.new) if self.new is not None else 0
        room = self.wanted + max_surge(self.deployment) - total(self.all())
        return size if room <= 0 else size + min(room, self.wanted - size)

    def _take(self, most: int, takable: Callable[[JsonObject], int]) -> int:
        taken = 0
        for each in self._active(self.old):
            count = min(most - taken, takable(each))
            if count > 0:
                self.scale(each, replicas(each) - count)
                taken += count
        return taken

    def _active(self, replica_sets: Iterable[JsonObject]) -> list[JsonObject]:
        return [each for each in replica_sets if replicas(each) > 0]

    def _active_or_latest(self) -> JsonObject | None:
        """The only ReplicaSet with pods; the newest if none has any."""
        active = self._active(self.all())
        if len(active) > 1 or not self.all():
            return None
        return active[0] if active else self.all()[-1]

    def _is_saturated(self) -> bool:
        if self.new is None:
            return False
        told = annotations_of(self.new).get(DESIRED)
        sizes = {replicas(self.new), available(self.new)}
        return told == str(self.wanted) and sizes == {self.wanted}

    def _share_out(self) -> None:
        """Spread what is to be added or removed over all ReplicaSets by their size."""
        allowed = self.wanted + max_surge(self.deployment) if self.wanted else 0
        active = self._active(self.all())
        missing = allowed - total(active)
        newer_first = -1 if missing > 0 else 1
        active.sort(key=lambda each: (-replicas(each), newer_first * _age(each), name_of(each)))
        sizes = {name_of(each): replicas(each) for each in active}
        added = 0
        for each in active:
            share = self._share(each, missing, added)
            sizes[name_of(each)] += share
            added += share
        for rank, each in enumerate(active):
            rest = missing - added if rank == 0 else 0
            self.scale(each, max(0, sizes[name_of(each)] + rest), remember=True)

    def _share(self, replica_set: JsonObject, missing: int, added: int) -> int:
        if missing == added:
            return 0
        size = replicas(replica_set)
        if self.wanted == 0:
            fraction = -size
        else:
            told = annotations_of(replica_set).get(MOST, "")
            before = int(told) if told.isdecimal() else 0
            before = before or part(self.deployment, "status").get("replicas", 0)
            if not before:
                return 0
            most = self.wanted + max_surge(self.deployment)
            # Halves round away from zero; sizes are never negative.
            fraction = (2 * size * most + before) // (2 * before) - size
        left = missing - added
        return min(fraction, left) if missing > 0 else max(fraction, left)


def total(replica_sets: Iterable[JsonObject]) -> int:
    """How many pods they are to have together."""
    return sum(map(replicas, replica_sets))


def available(replica_set: JsonObject) -> int:
    return part(replica_set, "status").get("availableReplicas", 0)


def _age(replica_set: JsonObject) -> int:
    return created_at(replica_set)


def _is_observed(replica_set: JsonObject) -> bool:
    seen = part(replica_set, "status").get("observedGeneration", 0)
    return metadata(replica_set).get("generation", 0) <= seen
