"""What a kubelet says of the containers of a pod. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from muster.backends.kubernetes.amounts import plain
from muster.model.pod import ContainerRun, ContainerStatus, Phase
from muster.model.value import Instant, Value

LOST = frozenset({"ContainerStatusUnknown", "Unknown"})
"""How a kubelet says that it does not know how a container ended: the node went down with it."""

_BEGINS = frozenset({"", "PodInitializing", "ContainerCreating"})
_MOST_MESSAGE = 4_096


class Life(Value):
    """A whole pod by its containers. code: of the one that failed first; None: none did.

    waiting: what keeps it from beginning, where it has not begun.
    """

    started_at: Instant | None = None
    ended_at: Instant | None = None
    code: int | None = None
    out_of_memory: bool = False
    lost: bool = False
    waiting: str = ""


def statuses_of(status: Mapping[str, Any]) -> tuple[ContainerStatus, ...]:
    """Each container, those that run first before the others."""
    return tuple(
        _status(each)
        for kind in ("initContainerStatuses", "containerStatuses")
        for each in status.get(kind) or ()
    )


def life_of(containers: Sequence[ContainerStatus]) -> Life:
    """What all of them together are."""
    runs = [run for each in containers for run in (each.last, each.ended) if run is not None]
    begins = [run.began_at for run in runs]
    begins += [each.at for each in containers if each.phase is Phase.RUNNING]
    ends = [each.ended for each in containers if each.ended is not None]
    failed = min((each for each in ends if each.code), key=lambda each: each.ended_at, default=None)
    waits = [_waiting(each) for each in containers if each.reason not in _BEGINS]
    return Life(
        started_at=Instant(min(begins)) if begins else None,
        ended_at=Instant(max(each.ended_at for each in ends)) if ends else None,
        code=None if failed is None else failed.code,
        out_of_memory=failed is not None and failed.reason == "OOMKilled",
        lost=any(each.reason in LOST for each in ends),
        waiting=waits[0] if waits and not begins else "",
    )


def instant(text: str | None) -> Instant | None:
    """Kubernetes tells whole seconds."""
    return None if not text else Instant(int(datetime.fromisoformat(text).timestamp()) * 1_000)


def _waiting(container: ContainerStatus) -> str:
    return plain(": ".join(filter(None, (container.reason, container.message))))


def _status(said: Mapping[str, Any]) -> ContainerStatus:
    state: Mapping[str, Any] = said.get("state") or {}
    running: Mapping[str, Any] | None = state.get("running")
    ended: Mapping[str, Any] | None = state.get("terminated")
    waiting: Mapping[str, Any] = state.get("waiting") or {}
    before: Mapping[str, Any] = said.get("lastState") or {}
    last: Mapping[str, Any] | None = before.get("terminated")
    phase = Phase.ENDED if ended else Phase.WAITING if running is None else Phase.RUNNING
    run = None if ended is None else _run(ended)
    began = instant(running.get("startedAt")) or 0 if running else 0
    return ContainerStatus(
        name=str(said.get("name")),
        phase=phase,
        at=began if run is None else run.ended_at,
        restarts=int(said.get("restartCount") or 0),
        ready=bool(said.get("ready")),
        started=bool(said.get("started")),
        reason=plain(waiting.get("reason") or ""),
        message=plain(waiting.get("message") or ""),
        ended=run,
        last=None if last is None else _run(last),
        id=plain(said.get("containerID") or ""),
        image=plain(said.get("image") or ""),
        image_id=plain(said.get("imageID") or ""),
    )


def _run(said: Mapping[str, Any]) -> ContainerRun:
    ended = instant(said.get("finishedAt")) or 0
    return ContainerRun(
        began_at=instant(said.get("startedAt")) or ended,
        ended_at=ended,
        code=int(said.get("exitCode") or 0),
        reason=plain(said.get("reason") or ""),
        message="".join(_printable(str(said.get("message") or "")))[:_MOST_MESSAGE],
        id=plain(said.get("containerID") or ""),
    )


def _printable(text: str) -> Iterator[str]:
    """The last words of a container are its user's, and may have several lines."""
    for each in text:
        yield each if each.isprintable() or each in "\n\t" else " "
