"""What can go wrong, by who must act.

MusterError
├── RefusedError          the user: change the request
├── StaleSnapshotError    no one: read again and retry
├── BackendDownError      no one yet: wait until the cluster answers
├── StoreError            the administrator: nothing was written, and nothing is lost
│   ├── StoreFullError        make room on the disk
│   ├── StoreLockedError      another program holds the database
│   └── StoreDownError        the database does not answer
│       ├── StoreDamagedError     put a backup in its place
│       └── StoreReadOnlyError    say who may write it
├── ForbiddenError        the user: ask a person who may do it
├── UnknownError          the user: name something that exists
└── OurBugError           the developers
    ├── BadPlanError          the planner broke a hard rule
    └── ImpossibleMoveError   an event came that cannot happen where the job stands

That a job cannot start now is none of these: it is a `Wait`.
"""

from muster.model.forbidden import Forbidden
from muster.model.value import ClusterName, JobId, Value


class MusterError(Exception):
    """The root of everything that Muster raises on purpose."""


class RefusedError(MusterError):
    """The request cannot be accepted as it is; `advice` says what to change."""

    def __init__(self, reason: Value, advice: str) -> None:
        super().__init__(advice)
        self.reason = reason
        self.advice = advice


class StaleSnapshotError(MusterError):
    """The world moved on while we decided."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(f"decided on version {expected}, but the store is at {found}; plan again")
        self.expected = expected
        self.found = found


class BackendDownError(MusterError):
    """The cluster does not answer; what runs there goes on."""

    def __init__(self, cluster: ClusterName, text: str) -> None:
        super().__init__(f"cluster {cluster} does not answer ({text}); wait, it is tried again")
        self.cluster = cluster
        self.text = text


class StoreError(MusterError):
    """Nothing was written, and what was acknowledged before is safe."""


class StoreFullError(StoreError):
    """There is no room to write."""

    def __init__(self, where: str) -> None:
        super().__init__(f"no room to write {where}; make room on that disk, then try again")


class StoreLockedError(StoreError):
    """Another program keeps the database locked."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} is locked by another program; end that, then try again")


class StoreDownError(StoreError):
    """The database does not answer."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(f"{where} does not answer ({text}); it is tried again")


class StoreDamagedError(StoreDownError):
    """What is there cannot be read as a database, or not whole."""

    def __init__(self, where: str, text: str) -> None:
        MusterError.__init__(
            self,
            f"{where} is damaged ({text}); nothing was changed, and jobs that run go on. "
            "Stop Muster with `muster down` and put a backup in its place: muster restore FILE",
        )


class StoreReadOnlyError(StoreDownError):
    """This user may not write the database."""

    def __init__(self, where: str, text: str, uid: int) -> None:
        MusterError.__init__(
            self,
            f"{where} cannot be written ({text}); nothing was changed, and jobs that run go on. "
            f"Make it writable: chown {uid} {where} and its folder, or mount that disk for writing",
        )


class ForbiddenError(MusterError):
    """The user may not do this; the message says who may."""

    def __init__(self, reason: Forbidden) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


class UnknownError(MusterError):
    """What is named does not exist, or the user may not know of it."""


class BusyError(MusterError):
    """The user asks for too much at once; the message says when to ask again."""


class OurBugError(MusterError):
    """Muster itself is wrong; the message is meant for its developers."""


class BadPlanError(OurBugError):
    """The plan breaks hard rules and was not carried out."""

    def __init__(self, broken: tuple[str, ...]) -> None:
        super().__init__("; ".join(broken))
        self.broken = broken


class ImpossibleMoveError(OurBugError):
    """This event is impossible for a job in this state: its producer has a bug."""

    def __init__(self, job: JobId, state: str, event: str) -> None:
        super().__init__(f"job {job} is {state}: {event} cannot happen to it")
        self.job = job
        self.state = state
        self.event = event
