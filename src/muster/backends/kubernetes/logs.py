"""What attempts write: read from their pods while those are there, and what was kept after."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from muster.backends.base import OutputQuery
from muster.backends.kubernetes.client import KubernetesDownError, KubernetesRefusedError
from muster.backends.kubernetes.deeds import Deeds, Place
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.output import KeptOutput, LogName, as_lines, part_of
from muster.backends.kubernetes.pods import CONTAINER, Pod
from muster.backends.kubernetes.register import AttemptId, Register
from muster.model.errors import UnknownError
from muster.model.pod import ContainerStatus, Phase, Stage
from muster.model.running import Output
from muster.model.value import replace

_NO_LOG = b"unable to retrieve container logs"
"""What a kubelet writes in place of a log that it has removed: lines of logs begin with a time."""


class Logs:
    """Those of one cluster. Pods take their logs with them, so they are kept before pods go."""

    def __init__(
        self, folder: Path, link: KubernetesLink, deeds: Deeds, register: Register
    ) -> None:
        self._kept = KeptOutput(folder)
        self._link, self._deeds, self._register = link, deeds, register

    def read(self, query: OutputQuery) -> Output:
        """A part of a log; UnknownError where there is none. Any thread may call."""
        if query.stderr and query.launch.stderr is not None:
            raise UnknownError("a pod writes what it says and its errors into one log")
        key = (query.job.id, query.attempt)
        usual = self._link.manner.namespace_of(query.job.spec.queue)
        where = Place(namespace=usual, key=self._register.mark(key))
        where = self._register.place(key) if key in self._register.attempts else where
        log = _named(query)
        try:
            content = self._written(where, log, _container_of(query))
        except (KubernetesDownError, KubernetesRefusedError):
            content = self._kept.read(log)
        return part_of(content, query.offset, query.limit)

    def keep(self, key: AttemptId, pods: Iterable[Pod]) -> None:
        """All that these pods have written up to now."""
        place = self._register.place(key)
        for pod in pods:
            for log in _logs_of(key, pod):
                with contextlib.suppress(KubernetesDownError, KubernetesRefusedError):
                    self._kept.keep(log, self._written(place, log, pod.container))

    def keep_earlier_runs(
        self, key: AttemptId, now: Mapping[int, Pod], before: Mapping[int, Pod]
    ) -> None:
        """Of containers that began again: kubelets have the last run but one for a moment only."""
        known = {rank: pod.restarts for rank, pod in before.items()}
        self.keep(key, (pod for rank, pod in now.items() if pod.restarts > known.get(rank, 0)))

    def _written(self, where: Place, log: LogName, container: str) -> bytes:
        """container: the one that is meant where the log names none."""
        if not log.container:
            return self._deeds.log(where, log.rank, container)
        asked = {"timestamps": "true"} | ({"previous": "true"} if log.previous else {})
        raw = self._deeds.log(where, log.rank, log.container, **asked)
        if raw.startswith(_NO_LOG):
            raise KubernetesRefusedError(404, "the kubelet has removed that log")
        return as_lines(raw, is_whole=log.previous or not self._goes_on(log))

    def _goes_on(self, log: LogName) -> bool:
        pod = self._register.last.get((log.job, log.attempt), {}).get(log.rank)
        found = () if pod is None or pod.is_over else pod.statuses
        return any(each.name == log.container and _runs(each) for each in found)


def _named(query: OutputQuery) -> LogName:
    pods = query.launch.pods
    log = LogName(job=query.job.id, attempt=query.attempt, rank=query.task)
    if not pods:
        return log
    main = next(each for each in pods[query.task].containers if each.stage is Stage.MAIN)
    return replace(log, container=query.container or main.name, previous=query.previous)


def _container_of(query: OutputQuery) -> str:
    adopts = query.launch.adopts
    return query.container or (adopts[query.task].container if adopts else CONTAINER)


def _logs_of(key: AttemptId, pod: Pod) -> Iterator[LogName]:
    """Of a container that waits to begin again, the last run is not the one before the last."""
    log = LogName(job=key[0], attempt=key[1], rank=pod.rank)
    if not pod.statuses:
        yield log
    for each in pod.statuses:
        own = replace(log, container=each.name)
        if _runs(each) or each.ended is not None or each.last is not None:
            yield own
        if each.last is not None and each.phase is not Phase.WAITING:
            yield replace(own, previous=True)


def _runs(container: ContainerStatus) -> bool:
    return container.phase is Phase.RUNNING
