"""Pods with our mark that are no attempt which is wanted: ended where they are ours, else told."""

import logging
from collections.abc import Collection, Iterable

from muster.backends.attempts import Kill
from muster.backends.kubernetes.client import KubernetesRefusedError
from muster.backends.kubernetes.deeds import Deeds
from muster.backends.kubernetes.pods import Pod
from muster.backends.kubernetes.register import AttemptId, Register
from muster.backends.notes import Note, Notes
from muster.model.value import ClusterName, Instant

log = logging.getLogger(__name__)

_SETTLES_MS = 5_000
_MOST_TOLD = 20
"""So many are named."""


class Strangers:
    """What is noted of an attempt that nobody wants any more is kept until its pods are gone.

    A pod that no note speaks of may be a job that runs: the notes, or the database, may have been
    lost. It is left alone, and named.
    """

    def __init__(
        self, cluster: ClusterName, register: Register, deeds: Deeds, notes: Notes
    ) -> None:
        self._cluster = cluster
        self._register, self._deeds, self._notes = register, deeds, notes
        self._unwanted: dict[AttemptId, Note] = {}
        self._since: dict[str, Instant] = {}
        self.told: tuple[str, ...] = ()

    def begin(self, unwanted: Iterable[Note]) -> None:
        """These were ours, and are wanted by nobody."""
        self._unwanted = {(note.job, note.attempt): note for note in unwanted}
        self._since.clear()
        self.told = ()

    def look(self, found: Iterable[tuple[AttemptId, Pod]], now: Instant) -> bool:
        """Go by all pods with our mark, and what each says whose it is. Is there news to tell?"""
        unknown: dict[AttemptId, list[Pod]] = {}
        for key, pod in found:
            if key not in self._register.attempts:
                unknown.setdefault(key, []).append(pod)
        for key in tuple(self._unwanted):
            self._end(key, unknown.pop(key, []))
        left = [pod for pods in unknown.values() for pod in pods if not (pod.leaves or pod.is_over)]
        self._since = {pod.uid: self._since.get(pod.uid, now) for pod in left}
        before, self.told = self.told, self._settled(left, now)
        if self.told != before:
            names = ", ".join(self.told) or "none"
            log.warning("cluster %s: pods with our mark, and unknown: %s", self._cluster, names)
        return self.told != before

    def _settled(self, pods: Iterable[Pod], now: Instant) -> tuple[str, ...]:
        """Names of those that were there for a while: a watch may be late to tell of an end."""
        names = sorted(
            f"{pod.namespace}/{pod.name}"
            for pod in pods
            if now - self._since[pod.uid] >= _SETTLES_MS
        )
        return tuple(names[:_MOST_TOLD])

    def _end(self, key: AttemptId, pods: Collection[Pod]) -> None:
        """The pods, and all else that was made for them."""
        note = self._unwanted[key]
        try:
            self._deeds.do(pods, Kill())
            for where in self._register.places_of(note):
                self._deeds.clear(where, len(note.nodes))
        except KubernetesRefusedError as error:
            # Its note stays, so that it is tried again when Muster starts once more.
            log.warning("cluster %s refuses to end job %s.%s: %s", self._cluster, *key, error)
        else:
            log.warning("cluster %s: ended job %s.%s, which nobody wants", self._cluster, *key)
            self._notes.drop(*key)
        del self._unwanted[key]
