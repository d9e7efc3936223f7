"""The leader's place as a Lease in a namespace: asked for, renewed, and given back."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from muster.backends.kubernetes.client import (
    Client,
    Json,
    KubernetesDownError,
    KubernetesRefusedError,
)
from muster.backends.kubernetes.lease import (
    Lease,
    Standing,
    came_to_rest,
    claim,
    heard,
    is_ours,
    is_overdue,
    lease_of,
    may_act,
    may_ask,
    release,
    won,
)
from muster.model.errors import MusterError
from muster.model.value import Instant, Value

log = logging.getLogger("muster.kubernetes")

_GUARDED_EVERY_S = 0.25


class LeaseRefusedError(MusterError):
    """The administrator: give the account its rights on the Lease, or name another one."""


class Place(Value):
    """Which Lease."""

    namespace: str
    name: str

    @property
    def collection(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


class Process(Value):
    """The process that would lead, and its clock.

    wake: called when the Lease could not be renewed, so that `lead` is asked again.
    end: called when `step_down` does not come in time then, to stop whatever is still done.
    """

    clock: Callable[[], Instant]
    wake: Callable[[], None]
    end: Callable[[], None]


class Seat:
    """Leads while the Lease is ours. A server that does not answer has no leader for long.

    `lead` asks for it; once it is had, a thread renews it. `step_down` says that nothing is done
    by it any more.
    """

    def __init__(self, client: Client, place: Place, standing: Standing, process: Process) -> None:
        self._client, self._place, self._clock = client, place, process.clock
        self._process = process
        self._standing = standing
        self._over = threading.Event()
        self._threads: tuple[threading.Thread, ...] = ()

    def lead(self) -> bool:
        if not self._threads and self._asked():
            self._over.clear()
            self._threads = tuple(
                threading.Thread(target=each, name="lease", daemon=True)
                for each in (self._renewing, self._guarding)
            )
            for each in self._threads:
                each.start()
        # Whoever waits for the server here would not see that its time is up.
        return may_act(self._standing, self._clock())

    def step_down(self) -> None:
        self._over.set()
        for each in self._threads:
            each.join()
        if self._threads:
            self._give_back()
        self._threads = ()

    def close(self) -> None:
        self.step_down()
        self._client.close()

    def _renewing(self) -> None:
        """Only what is still ours: who lost it must come to rest before it asks for it again."""
        while is_ours(self._standing):
            if self._over.wait(self._standing.terms.renews_every / 1_000):
                return
            try:
                self._asked()
            except LeaseRefusedError as error:
                log.warning("%s", error)

    def _guarding(self) -> None:
        # It asks nobody, so that nobody's silence holds it up.
        while not self._over.wait(_GUARDED_EVERY_S):
            if not may_act(self._standing, self._clock()):
                self._process.wake()
            if is_overdue(self._standing, self._clock()):
                log.critical(
                    "Lease %s was not renewed, and what was begun does not end in time",
                    self._place.name,
                )
                self._process.end()
                return

    def _asked(self) -> bool:
        """Try to hold it, or to go on holding it; do we?"""
        try:
            return self._ask()
        except KubernetesDownError as error:
            log.warning("Lease %s: %s", self._place.name, error)
        except KubernetesRefusedError as error:
            if error.code == 403:
                raise LeaseRefusedError(
                    f"Muster may not lead by Lease {self._place.name} in namespace "
                    f"{self._place.namespace} ({error}); deploy/in-cluster has the rights it needs"
                ) from None
            log.warning("Lease %s: %s", self._place.name, error)
        return False

    def _ask(self) -> bool:
        standing = self._standing if is_ours(self._standing) else self._looked()
        if not may_ask(standing, self._clock()):
            return False
        asked_at = self._clock()
        try:
            lease = self._write(claim(standing, datetime.now(UTC)), is_new=not standing.is_there)
        except KubernetesRefusedError as error:
            if not error.is_conflict and not (error.is_missing and standing.is_there):
                raise
            # Somebody else was faster, or an answer to us was lost.
            self._looked()
            return False
        self._standing = won(standing, lease, asked_at, self._clock())
        return True

    def _looked(self) -> Standing:
        lease: Lease | None = None
        try:
            lease = lease_of(self._client.get(self._place.path))
        except KubernetesRefusedError as error:
            if not error.is_missing:
                raise
        self._standing = heard(self._standing, lease, self._clock())
        return self._standing

    def _write(self, body: Json, *, is_new: bool) -> Lease:
        if not is_new:
            return lease_of(self._client.merge(self._place.path, body))
        about = {"name": self._place.name, "namespace": self._place.namespace}
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": about}
        return lease_of(self._client.create(self._place.collection, kind | body))

    def _give_back(self) -> None:
        body = release(self._standing, datetime.now(UTC))
        self._standing = came_to_rest(self._standing)
        if body is None:
            return
        try:
            lease = self._write(body, is_new=False)
        except (KubernetesDownError, KubernetesRefusedError) as error:
            # It ends by itself.
            log.warning("Lease %s is not given back: %s", self._place.name, error)
        else:
            self._standing = heard(self._standing, lease, self._clock())


def since_boot() -> Instant:
    """A clock that nobody sets, and that goes on while the machine sleeps."""
    return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)
