"""Which process leads, and what it holds while it does."""

import logging
import os
import platform
import secrets
import signal
from collections.abc import Callable, Iterable

from muster.backends.base import Backend
from muster.backends.kubernetes.client import Client
from muster.backends.kubernetes.kubeconfig import (
    BadKubeconfigError,
    OurPod,
    access_to,
)
from muster.backends.kubernetes.lease import Standing
from muster.backends.kubernetes.seat import Place, Process, Seat, since_boot
from muster.model.value import ClusterName
from muster.settings import BadSettingsError, LeaseToLead
from muster.stores.base import Leadership

log = logging.getLogger("muster.controller")

_ANSWER_S = 3
"""A Lease is renewed every two seconds: who does not answer by then is asked again."""


class Lead:
    """Leads with what is here, found when the lead is taken and let go with it.

    A standby must not touch what the leader uses.
    """

    def __init__(
        self,
        leadership: Leadership,
        backends: dict[ClusterName, Backend],
        find: Callable[[], Iterable[Backend]],
    ) -> None:
        self._leadership = leadership
        self._backends = backends
        self._find = find

    def lead(self) -> bool:
        if not self._leadership.lead():
            self._let_go()
            return False
        try:
            if not self._backends:
                self._backends.update((each.cluster.name, each) for each in self._find())
        except BaseException:
            self._leadership.step_down()
            raise
        return True

    def step_down(self) -> None:
        self._let_go()
        self._leadership.step_down()

    def _let_go(self) -> None:
        while self._backends:
            _, backend = self._backends.popitem()
            backend.close()


class Follower:
    """For processes that only answer: another process leads."""

    def lead(self) -> bool:
        return False

    def step_down(self) -> None:
        """There is nothing to give up."""


class Both:
    """Leads where the store lets it and, after that, the other one does too.

    Everybody asks in this order, so that no two of them hold one each and wait for ever.
    """

    def __init__(self, store: Leadership, other: Leadership) -> None:
        self._store, self._other = store, other

    def lead(self) -> bool:
        return self._store.lead() and self._other.lead()

    def step_down(self) -> None:
        self._other.step_down()
        self._store.step_down()


def leadership_of(
    store: Leadership, lease: LeaseToLead | None, wake: Callable[[], None]
) -> Leadership:
    """The store's place for a leader, and that of a Lease where one is named.

    wake: called when the Lease could not be renewed in time.
    """
    if lease is None:
        return store
    try:
        access = access_to(lease.kubeconfig, lease.context, OurPod(environ=os.environ))
    except BadKubeconfigError as error:
        raise BadSettingsError(f"Lease {lease.name}: {error}") from error
    place = Place(namespace=lease.namespace or access.namespace, name=lease.name)
    # Of each process another one: who starts again is not who was there before.
    me = f"{platform.node()}_{secrets.token_hex(8)}"
    client = Client(access, answer_s=_ANSWER_S, tries=1)
    process = Process(clock=since_boot, wake=wake, end=_end)
    return Both(store, Seat(client, place, Standing(me=me), process))


def _end() -> None:
    """At once: whatever still runs here might do what is another process's to do by now."""
    log.critical("this process ends; jobs run on")
    os.kill(os.getpid(), signal.SIGKILL)
