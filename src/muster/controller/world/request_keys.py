"""Which jobs came of which request: one that is sent again finds the jobs that it made before."""

from collections.abc import Iterable

from muster.model.history import AuditEntry
from muster.model.value import JobId, UserName
from muster.stores.base import History

MOST = 100_000
"""So many requests are remembered; who repeats one does so within minutes."""

READ_AGAIN = 1_000
"""So many entries of the audit log are read by a process that starts, or was far behind."""


def latest_requests(history: History) -> tuple[AuditEntry, ...]:
    """The latest entries of the audit log, oldest first."""
    return tuple(reversed(history.audit(before=None, limit=READ_AGAIN)))


class RequestKeys:
    """The jobs of the latest requests that had a key, whether they are over or not."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[UserName, str], tuple[JobId, ...]] = {}

    def learn(self, entries: Iterable[AuditEntry]) -> None:
        """Remember the requests that these entries are about, oldest first."""
        for entry in entries:
            if entry.request is not None:
                made = entry.request
                jobs = range(made.first, made.first + made.count)
                self._jobs[entry.user, made.key] = tuple(map(JobId, jobs))
                if len(self._jobs) > MOST:
                    del self._jobs[next(iter(self._jobs))]

    def jobs_of(self, user: UserName, key: str) -> tuple[JobId, ...]:
        """What came of the request before; nothing if it is new."""
        return self._jobs.get((user, key), ())
