"""What is asked of a Kubernetes cluster whose pods we give their nodes."""

from collections.abc import Sequence
from typing import Protocol

from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.value import ClusterName, QueuePath, UserName, Value


class Adopted(Value, gc=False):
    """Whose the jobs are that pods of a namespace become, and where they wait."""

    queue: QueuePath
    user: UserName


class OtherCluster(Protocol):
    """One cluster. Any thread may call; BackendDownError when it does not answer, or refuses."""

    @property
    def name(self) -> ClusterName: ...

    @property
    def version(self) -> int:
        """It grows when something may be new."""
        ...

    def offered(self) -> Sequence[JsonObject]:
        """Pods that name us as their scheduler and have no node yet."""
        ...

    def suspended(self) -> Sequence[JsonObject]:
        """Jobs of batch/v1 that stand, and whose pods would name us as their scheduler."""
        ...

    def get(self, path: str) -> JsonObject | None:
        """The object at this path; None where there is none."""
        ...

    def merge(self, path: str, change: JsonObject) -> None:
        """Change an object, if it is still there and still the one of the uid that is named."""
        ...

    def delete(self, path: str, uid: str) -> None:
        """Delete this very object, if it is still there."""
        ...
