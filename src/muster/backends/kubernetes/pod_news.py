"""How the pods of users are, for whoever shows them: what was told is not told again."""

from collections.abc import Iterable, Iterator

from muster.backends.attempts import Look, Phase
from muster.backends.kubernetes.pods import Pod
from muster.backends.notes import Note, NotedPod
from muster.lifecycle.pod_abilities import has_token
from muster.model.event import PodSeen
from muster.model.launch import Launch
from muster.model.pod import ContainerRun, ContainerStatus, PodNote, PodStatus
from muster.model.pod import Phase as ContainerPhase
from muster.model.pod import Stage as ContainerStage
from muster.model.value import Instant, replace

_KILLED = 137
_NO_CONFIG = "CreateContainerConfigError"
_GOES_WITHOUT = (
    "Muster's API is not reached from the cluster: "
    "the token of the pod's service account is not mounted"
)


class PodNews:
    """What was told of the pods of one attempt."""

    def __init__(self) -> None:
        self._told: dict[int, PodStatus] = {}

    def of(self, note: Note, pods: Iterable[Pod], seen: Look, now: Instant) -> Iterator[PodSeen]:
        """Of each pod that is not as it was told."""
        for pod in sorted(pods, key=lambda each: each.rank):
            if pod.statuses:
                yield from self._news(note, pod.rank, status_of(note, pod, seen), now)

    def lacking(self, note: Note, why: str, now: Instant) -> Iterator[PodSeen]:
        """They cannot be made yet."""
        for rank, pod in enumerate(note.pods):
            waits = ContainerStatus(
                name=pod.container, image=pod.image, reason=_NO_CONFIG, message=why
            )
            yield from self._news(note, rank, PodStatus(containers=(waits,)), now)

    def _news(self, note: Note, rank: int, status: PodStatus, now: Instant) -> Iterator[PodSeen]:
        if self._told.get(rank) == status:
            return
        self._told[rank] = status
        yield PodSeen(at=now, job=note.job, attempt=note.attempt, status=status, task=rank)


def noted(launch: Launch) -> tuple[NotedPod, ...]:
    """What has to be known of pods to say how they are."""
    return tuple(
        NotedPod(container=main.name, image=main.image, without_token=has_token(pod))
        for pod in launch.pods
        for main in [next(each for each in pod.containers if each.stage is ContainerStage.MAIN)]
    )


def status_of(note: Note, pod: Pod, seen: Look) -> PodStatus:
    """How a pod is; of one that is gone, how it was, and that it is over."""
    is_over = pod.is_over or seen.phase is Phase.OVER
    containers = pod.statuses
    if is_over:
        at = pod.ended_at or seen.ended_at or 0
        containers = tuple(_ended(each, at) for each in containers)
    return PodStatus(
        containers=containers,
        notes=tuple(_notes(note.pods[pod.rank : pod.rank + 1], pod)),
        ip=pod.ip,
        host_ip=pod.host_ip,
        over=is_over,
    )


def _ended(container: ContainerStatus, at: int) -> ContainerStatus:
    """Whose end nobody saw was killed with its pod."""
    if container.phase is not ContainerPhase.RUNNING:
        return container
    run = ContainerRun(
        began_at=container.at, ended_at=max(at, container.at), code=_KILLED, id=container.id
    )
    return replace(container, phase=ContainerPhase.ENDED, at=run.ended_at, ended=run, ready=False)


def _notes(known: Iterable[NotedPod], pod: Pod) -> Iterator[PodNote]:
    for each in known:
        if each.without_token and pod.started_at is not None:
            yield PodNote(
                at=pod.started_at, reason="NoToken", text=_GOES_WITHOUT, container=each.container
            )
