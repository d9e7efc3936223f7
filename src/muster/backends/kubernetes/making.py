"""What attempts need on the cluster is made here, and changed when what they read does."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from muster.backends.base import Supply
from muster.backends.kubernetes.client import Json, KubernetesRefusedError
from muster.backends.kubernetes.deeds import Deeds
from muster.backends.kubernetes.hands import Hands
from muster.backends.kubernetes.known import identity_of, run_again
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.pod_manifest import secret
from muster.backends.kubernetes.register import AttemptId, Register
from muster.backends.notes import Notes
from muster.launch.pods.variables import MissingError
from muster.model.cluster import Node
from muster.model.value import Instant, NodeId, replace

log = logging.getLogger(__name__)


class Making:
    """Makes it for those that the register has; many threads may begin attempts at a time."""

    def __init__(
        self, link: KubernetesLink, register: Register, deeds: Deeds, notes: Notes, hands: Hands
    ) -> None:
        self._link, self._register = link, register
        self._deeds, self._notes, self._hands = deeds, notes, hands

    def begin(self, key: AttemptId) -> Sequence[Exception | None]:
        """Make its pods, note that they are made, and only then let them run; how that went.

        Of pods that somebody else made nothing is noted before: they are theirs with or without us.
        """
        run, attempt = self._register.unbegun[key], self._register.attempts[key]
        self._notes.keep_job(run)
        if not run.launch.adopts:
            self._notes.keep(attempt.note)
        made = self._made(key)
        uids = tuple(pod["metadata"]["uid"] for pod in made)
        attempt.note = replace(attempt.note, handle=self._register.called(key), parts=uids)
        self._notes.keep(attempt.note)
        mark = self._register.mark(key)
        return self._hands.at_once(
            [
                partial(self._deeds.bind, pod, placement.node, mark)
                for pod, placement in zip(made, run.allocation.placements, strict=True)
                if not pod["spec"].get("nodeName")
            ]
        )

    def supply(self, action: Supply, nodes: Mapping[NodeId, Node], now: Instant) -> None:
        """What pods of users read has changed: in files they see it, as on every Kubernetes."""
        key = (action.job, action.attempt)
        run, attempt = self._register.unbegun.get(key), self._register.attempts.get(key)
        if run is not None and attempt is not None:
            self._register.unbegun[key] = replace(run, supplies=action.sources)
            self._register.lacking.discard(key)
            attempt.note = replace(attempt.note, began_at=now)
            return
        kept = self._notes.job(*key)
        if kept is None or attempt is None or attempt.is_over or not attempt.note.pods:
            return
        again = run_again(kept, nodes, action.sources)
        try:
            self._deeds.refresh(secret(again, self._link.manner, self._register.mark(key)))
        except MissingError:
            """What was read of a source that is gone stays."""
        except KubernetesRefusedError as error:
            log.warning("what job %s reads stays as it was: %s", key[0], error)

    def _made(self, key: AttemptId) -> tuple[Json, ...]:
        """The pods of an attempt, without a node."""
        run, mark = self._register.unbegun[key], self._register.mark(key)
        try:
            return self._deeds.begin(run, mark, identity_of(run.job.spec.user, self._link.manner))
        except KubernetesRefusedError:
            self._deeds.clear(self._register.place(key), len(run.allocation.placements))
            raise
