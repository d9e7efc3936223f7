"""Pods that users of a cluster want us to place there, for whoever makes jobs of them."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from muster.backends.kubernetes.client import (
    Client,
    Json,
    KubernetesDownError,
    KubernetesRefusedError,
)
from muster.backends.kubernetes.mirror import Mirror
from muster.backends.kubernetes.pods import SCHEDULER, Pod
from muster.model.errors import BackendDownError
from muster.model.value import ClusterName


class Adoption:
    """Sees what waits for us, and changes single objects. Any thread may call."""

    def __init__(
        self, name: ClusterName, client: Client, pods: Mirror[Pod], poke: Callable[[], None]
    ) -> None:
        self.name = name
        self._client, self._pods = client, pods
        self._jobs: Mirror[Json] = Mirror(client, "/apis/batch/v1/jobs", _standing, poke)

    @property
    def version(self) -> int:
        """It grows when something may be new."""
        return self._pods.changes + self._jobs.changes

    @property
    def failure(self) -> str:
        return self._jobs.failure

    def start(self) -> None:
        self._jobs.start()

    def close(self) -> None:
        self._jobs.close()

    def offered(self) -> Sequence[Json]:
        """Pods that name us as their scheduler and have no node yet."""
        self._demand(self._pods.failure)
        return [dict(each.document) for each in self._pods.all() if each.document is not None]

    def suspended(self) -> Sequence[Json]:
        """Jobs of batch/v1 that stand, and whose pods would name us as their scheduler."""
        return [each for each in self._jobs.all() if each]

    def get(self, path: str) -> Json | None:
        """The object at this path; None where there is none."""
        with self._told():
            try:
                return self._client.get(path)
            except KubernetesRefusedError as error:
                if not error.is_missing:
                    raise
        return None

    def merge(self, path: str, change: Json) -> None:
        """Change an object, if it is still there and still the one of the uid that is named."""
        with self._told(), _unless_changed():
            self._client.merge(path, change)

    def delete(self, path: str, uid: str) -> None:
        """Delete this very object, if it is still there."""
        with self._told():
            self._client.delete(path, {"preconditions": {"uid": uid}})

    @contextmanager
    def _told(self) -> Generator[None]:
        """What goes wrong, as all backends say it."""
        try:
            yield
        except (KubernetesDownError, KubernetesRefusedError) as error:
            raise BackendDownError(self.name, str(error)) from error

    def _demand(self, failure: str) -> None:
        if failure:
            raise BackendDownError(self.name, failure)


@contextmanager
def _unless_changed() -> Generator[None]:
    """Gone, or another one by now: there is nothing to change any more."""
    try:
        yield
    except KubernetesRefusedError as error:
        if not error.is_missing and not error.is_conflict:
            raise


def _standing(job: Mapping[str, Any]) -> Json:
    """The Job, if it is one of those; nothing of all others."""
    spec: Mapping[str, Any] = job["spec"]
    is_ours = spec.get("suspend") and spec["template"]["spec"].get("schedulerName") == SCHEDULER
    return dict(job) if is_ours else {}
