"""One look at a Job: its pods sorted by what they are to it, worked out once."""

from collections.abc import Sequence
from functools import cached_property

from muster.doors.kubernetes.controllers.jobs.indexes import index_of, parsed
from muster.doors.kubernetes.controllers.jobs.rules import (
    Action,
    absolute_failures,
    failure_count,
    has_failed,
    is_tracked,
    verdict,
)
from muster.doors.kubernetes.controllers.pods import (
    finished_at,
    is_active,
    is_ready,
    is_terminating,
    phase,
)
from muster.doors.kubernetes.objects.value import JsonObject, items, part, uid_of
from muster.model.value import Instant


class Look:
    """A Job, its pods and the instant at which it is looked at."""

    def __init__(self, job: JsonObject, pods: Sequence[JsonObject], now: Instant) -> None:
        self.job = job
        self.pods = pods
        self.now = now
        self.spec = part(job, "spec")
        self.status = part(job, "status")
        self.is_indexed = self.spec.get("completionMode") == "Indexed"
        self.completions: int | None = self.spec.get("completions")
        self.parallelism: int = self.spec.get("parallelism", 1)
        self.is_suspended = bool(self.spec.get("suspend"))

    @cached_property
    def active(self) -> list[JsonObject]:
        return [pod for pod in self.pods if is_active(pod)]

    @cached_property
    def ready(self) -> int:
        return sum(is_ready(pod) for pod in self.active)

    @cached_property
    def terminating(self) -> list[JsonObject]:
        return [pod for pod in self.pods if is_terminating(pod)]

    @cached_property
    def newly_succeeded(self) -> list[JsonObject]:
        """Succeeded, and not counted yet."""
        return [pod for pod in self._uncounted if phase(pod) == "Succeeded"]

    @cached_property
    def newly_failed(self) -> list[JsonObject]:
        """Failed in a way that counts, and not counted yet."""
        return [
            pod
            for pod in self._uncounted
            if has_failed(pod, self.job) and verdict(self.job, pod).action is not Action.IGNORE
        ]

    @cached_property
    def succeeded_indexes(self) -> frozenset[int]:
        """With those of pods that are not counted yet."""
        held = parsed(self.status.get("completedIndexes"), self.completions or 0)
        return held | self.indexes(self.newly_succeeded)

    @cached_property
    def failed_indexes(self) -> frozenset[int]:
        """Indexes that will not be tried again."""
        held = parsed(self.status.get("failedIndexes"), self.completions or 0)
        return held | self.indexes([pod for pod in self._uncounted if self._fails_its_index(pod)])

    @cached_property
    def succeeded(self) -> int:
        if self.is_indexed:
            return len(self.succeeded_indexes)
        counted = self.status.get("succeeded", 0) + len(self._told("succeeded"))
        return counted + len(self.newly_succeeded)

    @cached_property
    def failed(self) -> int:
        counted = self.status.get("failed", 0) + len(self._told("failed"))
        return counted + len(self.newly_failed)

    @property
    def has_limit_per_index(self) -> bool:
        return self.spec.get("backoffLimitPerIndex") is not None

    @cached_property
    def awaiting_replacement(self) -> dict[int, JsonObject]:
        """By index, the failed pod that must stay until another one counts on from it."""
        if not self.has_limit_per_index:
            return {}
        settled = self.succeeded_indexes | self.failed_indexes | self.indexes(self.active)
        latest: dict[int, JsonObject] = {}
        for pod in self._uncounted:
            index = index_of(pod)
            if index is None or index in settled or not has_failed(pod, self.job):
                continue
            if index not in latest or _age(latest[index]) <= _age(pod):
                latest[index] = pod
        return latest

    def indexes(self, pods: Sequence[JsonObject]) -> frozenset[int]:
        """The indexes of pods that have one."""
        found = (index_of(pod) for pod in pods)
        return frozenset(each for each in found if each is not None)

    def may_be_counted(self, pod: JsonObject) -> bool:
        """Has it an index that the Job asks for, where it needs one?"""
        if not self.is_indexed:
            return True
        index = index_of(pod)
        return index is not None and index < (self.completions or 0)

    @cached_property
    def _uncounted(self) -> list[JsonObject]:
        known = {*self._told("succeeded"), *self._told("failed")}
        return [
            pod
            for pod in self.pods
            if is_tracked(pod) and self.may_be_counted(pod) and uid_of(pod) not in known
        ]

    def _told(self, how: str) -> list[str]:
        """Pods that a controller elsewhere had counted, but not added up yet."""
        return items(self.job, "status", "uncountedTerminatedPods", how)

    def _fails_its_index(self, pod: JsonObject) -> bool:
        if not has_failed(pod, self.job):
            return False
        match verdict(self.job, pod).action:
            case Action.FAIL_INDEX:
                return True
            case Action.IGNORE:
                return False
            case Action.COUNT | Action.FAIL_JOB:
                return failure_count(pod) >= self.spec["backoffLimitPerIndex"]


def _age(pod: JsonObject) -> tuple[int, Instant]:
    return absolute_failures(pod), finished_at(pod)
