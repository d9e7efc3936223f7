"""Signals to jobs in pods: commands in containers of users, so that nobody waits for their ends."""

import logging
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from muster.backends.kubernetes.client import Client, KubernetesDownError, KubernetesRefusedError
from muster.backends.kubernetes.pods import Pod
from muster.model.pod import Phase
from muster.model.value import Value

log = logging.getLogger(__name__)

_HANDS = 32
_MOST_WAITING = 8
"""For one pod: what comes when so many wait says nothing new."""
_TRIES = 5
_PAUSE_S = 2.0


class Command(Value, gc=False):
    """What sends a signal inside of a pod."""

    pod: Pod
    container: str
    signal: int
    first_only: bool

    @property
    def argv(self) -> tuple[str, ...]:
        # Our first process passes signals on to the job's own; -1 is every process but the first.
        # In a pod that somebody else made, or that is a user's, the first one is theirs.
        is_theirs = self.pod.key is None or bool(self.pod.statuses)
        whom = "1" if self.first_only or is_theirs else "-1"
        return ("/bin/sh", "-c", f"kill -{self.signal} {whom}")


class Signals:
    """Those of one pod are sent in their order; of several pods at the same time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._hands = ThreadPoolExecutor(_HANDS, thread_name_prefix="kubernetes-signals")
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Command]] = {}
        self._closed = threading.Event()

    def send(self, pod: Pod, signal: int, *, first_only: bool) -> None:
        """Returns at once."""
        running = [each.name for each in pod.statuses if each.phase is Phase.RUNNING]
        for container in running if pod.statuses else (pod.container,):
            self._send(Command(pod=pod, container=container, signal=signal, first_only=first_only))

    def close(self) -> None:
        """What is not sent by now is not sent any more."""
        self._closed.set()
        self._hands.shutdown(wait=False, cancel_futures=True)

    def _send(self, command: Command) -> None:
        pod = command.pod
        with self._lock:
            waiting = self._waiting.get(pod.uid)
            if waiting is None:
                self._waiting[pod.uid] = deque([command])
                self._hands.submit(self._send_all, pod.uid)
            elif len(waiting) < _MOST_WAITING:
                waiting.append(command)
            else:
                log.warning("pod %s has too many signals that wait", pod.name)

    def _send_all(self, uid: str) -> None:
        while True:
            with self._lock:
                if not self._waiting[uid]:
                    del self._waiting[uid]
                    return
                command = self._waiting[uid].popleft()
            self._try(command)

    def _try(self, command: Command) -> None:
        name = command.pod.name
        for _ in range(_TRIES):
            try:
                self._client.run_inside(command.pod.path, command.container, command.argv)
            except KubernetesRefusedError as error:
                # It has just ended, its image has no shell, or its shell does not end.
                log.warning("pod %s was not sent signal %s: %s", name, command.signal, error)
                return
            except KubernetesDownError:
                if self._closed.wait(_PAUSE_S):
                    return
            else:
                return
        log.warning("pod %s was not sent signal %s: nobody answers", name, command.signal)
