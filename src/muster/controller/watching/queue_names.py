"""By which names queues appear in metrics: the first thousand by their own, the rest together."""

from collections.abc import Iterable, Mapping
from threading import Lock

from muster.model.value import QueuePath

MOST_QUEUES = 1_000
MOST_GROUPS = 100


class QueueNames:
    """A queue keeps the name that it had, so that no counter of it moves to another one."""

    def __init__(self, most: int = MOST_QUEUES) -> None:
        self._most = most
        self._own: set[QueuePath] = set()
        self._sorted: tuple[QueuePath, ...] = ()
        self._groups: set[str] = set()
        self._lock = Lock()

    def admit(self, queues: Iterable[QueuePath], wanted: Mapping[QueuePath, int]) -> None:
        """As long as there is room: those first in which most is held or wanted."""
        with self._lock:
            room = self._most - len(self._own)
            if room <= 0:
                return
            new = sorted(set(queues) - self._own, key=lambda path: (-wanted.get(path, 0), path))
            if new:
                self._own.update(new[:room])
                self._sorted = tuple(sorted(self._own))

    def own(self) -> tuple[QueuePath, ...]:
        """Those that have a name of their own: the same tuple until there are more."""
        return self._sorted

    def name(self, path: QueuePath) -> str:
        """`acme/nlp`; of one too many `acme/*`, or `*` where there are too many of these too."""
        # Names are never taken away, so that no lock is needed to find one.
        if path in self._own:
            return path
        with self._lock:
            group = path.partition("/")[0]
            if group not in self._groups and len(self._groups) >= MOST_GROUPS:
                return "*"
            self._groups.add(group)
            return f"{group}/*"
