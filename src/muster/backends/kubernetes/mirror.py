"""All objects of one kind, as an API server has them: listed once, and watched since."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from muster.backends.kubernetes.client import (
    Client,
    Json,
    KubernetesDownError,
    KubernetesRefusedError,
    Watch,
)

T = TypeVar("T")

log = logging.getLogger(__name__)

_AGAIN_S = 1.0
"""How long after it failed a list is asked for again; twice as long each time, up to the most."""
_AGAIN_MOST_S = 15.0
_LONG_AGO_S = 30.0
"""A failure after so long a time has nothing to do with the one before."""


class Mirror(Generic[T]):
    """What `read` makes of each object, by uid. Its own thread keeps it up to date.

    An object is gone when the server says so: by an event, or by a whole new list without it.
    """

    def __init__(
        self, client: Client, path: str, read: Callable[[Json], T], changed: Callable[[], None]
    ) -> None:
        self._client, self._path, self._read, self._changed = client, path, read, changed
        self._lock = threading.Lock()
        self._objects: dict[str, T] = {}
        self._version = ""
        self._failure = ""
        self._changes = 0
        self._closed = threading.Event()
        self._watch: Watch | None = None
        self._thread: threading.Thread | None = None

    @property
    def failure(self) -> str:
        """Why it is not up to date; empty while it is."""
        return self._failure

    @property
    def changes(self) -> int:
        """It grows when something may be new."""
        return self._changes

    def all(self) -> list[T]:
        with self._lock:
            return list(self._objects.values())

    def fill(self) -> None:
        """List everything now; KubernetesDownError or -RefusedError where that cannot be."""
        items, version = self._client.listed(self._path)
        read = {_uid_of(each): self._made_of(each) for each in items}
        found = {uid: made for uid, made in read.items() if made is not None}
        with self._lock:
            self._objects = found
            self._changes += 1
        self._version, self._failure = version, ""

    def start(self) -> None:
        self._closed.clear()
        self._thread = threading.Thread(target=self._follow, name=f"watch{self._path}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._watch is not None:
            self._watch.hang_up()
        if self._thread is not None:
            self._thread.join(10)
            self._thread = None

    def _follow(self) -> None:
        pause_s, failed_at, too_old_at = _AGAIN_S, -_LONG_AGO_S, -_LONG_AGO_S
        while not self._closed.is_set():
            try:
                if not self._version:
                    self.fill()
                    self._changed()
                self._attend()
                pause_s = _AGAIN_S
            except (KubernetesDownError, KubernetesRefusedError) as error:
                if isinstance(error, KubernetesRefusedError) and error.is_too_old:
                    self._version = ""
                    before, too_old_at = too_old_at, time.monotonic()
                    # Who says so again at once would be asked for whole lists without a pause.
                    if too_old_at - before > _LONG_AGO_S:
                        continue
                self._failure = str(error)
            except (KeyError, TypeError, ValueError, AttributeError):
                # What says such things of one object may have left out others.
                log.warning("%s: what happened is not understood", self._path, exc_info=True)
                self._version, self._failure = "", "it answers what nobody understands"
            else:
                continue
            self._changed()
            before, failed_at = failed_at, time.monotonic()
            is_new = failed_at - before > _LONG_AGO_S
            pause_s = _AGAIN_S if is_new else min(2 * pause_s, _AGAIN_MOST_S)
            self._closed.wait(pause_s)

    def _attend(self) -> None:
        """One watch, from the version that we have to its end."""
        with contextlib.closing(self._client.watch(self._path, self._version)) as watch:
            self._watch = watch
            if self._closed.is_set():
                return
            if self._failure:
                self._failure = ""
                self._changed()
            for event in watch:
                self._take(event["type"], event["object"])

    def _take(self, kind: str, found: Json) -> None:
        if kind == "ERROR":
            code, message = found.get("code", 500), found.get("message", "the watch failed")
            if code == 410:
                raise KubernetesRefusedError(code, message)
            raise KubernetesDownError(message)
        self._version = found["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        uid = found["metadata"]["uid"]
        with self._lock:
            self._changes += 1
            if kind == "DELETED":
                self._objects.pop(uid, None)
            elif (made := self._made_of(found)) is not None:
                self._objects[uid] = made
        self._changed()

    def _made_of(self, found: Json) -> T | None:
        """One object that makes no sense to us must not hide all others."""
        try:
            return self._read(found)
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
            log.warning("%s: one object is not understood", self._path, exc_info=True)
            return None


def _uid_of(found: Json) -> str:
    """Of what has none, nothing is made either."""
    try:
        return str(found["metadata"]["uid"])
    except (KeyError, TypeError):
        return ""
