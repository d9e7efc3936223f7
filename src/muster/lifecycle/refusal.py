"""The answers to a request: accepted, perhaps with cautions, or refused with what to change.

A reason that can also make a job wait is the same type as in `model.reason`.
"""

from enum import StrEnum

from muster.model.cluster import Ability
from muster.model.job import DependencyKind, JobSpec
from muster.model.queue import Meter
from muster.model.reason import (
    NeverFits,
    NoSuchClass,
    NoSuchPool,
    NoSuchQueue,
    OverClassLimit,
    OverLimit,
    TooLong,
)
from muster.model.value import (
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
    Value,
)


class MayNotSubmit(Value, tag="may_not_submit", gc=False):
    """The list of `decided_by`, the nearest queue that has one, does not name the user."""

    user: UserName
    queue: QueuePath
    decided_by: QueuePath


class PoolIsClosed(Value, tag="pool_is_closed", gc=False):
    """A pool that the job names has a list of who may use it, and the job is not of them."""

    pool: PoolName


class PoolTakesNothing(Value, tag="pool_takes_nothing", gc=False):
    """A pool that the job names accepts no new jobs at present."""

    pool: PoolName


class NoSuchReservation(Value, tag="no_such_reservation", gc=False):
    """The reservation that the job asks for does not exist, or is over."""

    reservation: str


class NotYourReservation(Value, tag="not_your_reservation", gc=False):
    """The reservation that the job asks for is for others."""

    reservation: str


class NoUsablePool(Value, tag="no_usable_pool", gc=False):
    """Pools, clusters and spot rule exist, but together they leave no pool."""

    spot_only: bool


class NoSuchModel(Value, tag="no_such_model", gc=False):
    """No node has GPUs of this model."""

    model: GpuModel


class NoSuchProfile(Value, tag="no_such_profile", gc=False):
    """No model that the job accepts can be cut into this MIG profile."""

    group: str
    profile: str


class SharingMode(StrEnum):
    """The ways to have a part of a GPU."""

    MIG = "MIG"
    MPS = "MPS"
    TIME = "time sharing"


class NotOffered(Value, tag="not_offered", gc=False):
    """No cluster that the job may use offers this way to share GPUs."""

    group: str
    sharing: SharingMode


class NoContainerTool(Value, tag="no_container_tool", gc=False):
    """No cluster here runs commands in such an image."""

    image: str


class CannotRun(Value, tag="cannot_run", gc=False):
    """No cluster that the job may use can do what running it takes."""

    ability: Ability


class NoSuchLevel(Value, tag="no_such_level", gc=False):
    """No pool that the job may use has this topology level."""

    group: str
    level: str


class BadNumber(Value, tag="bad_number", gc=False):
    """A number lies outside of what makes sense."""

    what: str
    value: int
    least: int
    most: int | None = None


class BadGroups(Value, tag="bad_groups", gc=False):
    """The job has no group, or two of this name."""

    twice: str | None = None


class AsksForNothing(Value, tag="asks_for_nothing", gc=False):
    """The group wants no CPU, memory or GPU, so that no quota would count it."""

    group: str


class TooManySubmitted(Value, tag="too_many_submitted", gc=False):
    """The queue already has as many unfinished jobs as it may."""

    queue: QueuePath
    limit: int


class NoSuchJob(Value, tag="no_such_job", gc=False):
    """A dependency names a job that does not exist, or none at all."""

    kind: DependencyKind
    job: JobId | None


class BadAddress(Value, tag="bad_address", gc=False):
    """Mail cannot be sent to this."""

    address: str


class TooLarge(Value, tag="too_large_request", gc=False):
    """A part of the request is larger than it may be."""

    what: str
    size: int
    most: int


class Unprintable(Value, tag="unprintable", gc=False):
    """A text that others see has control characters in it."""

    what: str


class TooManyOfUser(Value, tag="too_many_of_user", gc=False):
    """The user has as many unfinished jobs as one may have."""

    user: UserName
    limit: int


class TooMuchOfUser(Value, tag="too_much_of_user", gc=False):
    """The user submitted as much as one may in a day."""

    user: UserName
    limit_mib: int


class DeadlineTooSoon(Value, tag="deadline_too_soon", gc=False):
    """Even if it began as soon as it may, the job would end this much after its deadline."""

    late_by: Duration


class DeadlineWithoutLimit(Value, tag="deadline_without_limit", gc=False):
    """Nothing says how long the job may run, so it could miss its deadline and is never started."""


Reason = (
    NoSuchQueue
    | MayNotSubmit
    | NoSuchClass
    | NoSuchPool
    | PoolIsClosed
    | PoolTakesNothing
    | NoSuchReservation
    | NotYourReservation
    | NoUsablePool
    | NoSuchModel
    | NoSuchProfile
    | NotOffered
    | NoContainerTool
    | CannotRun
    | NoSuchLevel
    | BadNumber
    | BadGroups
    | AsksForNothing
    | NeverFits
    | OverLimit
    | OverClassLimit
    | TooLong
    | TooManySubmitted
    | TooManyOfUser
    | TooMuchOfUser
    | TooLarge
    | Unprintable
    | NoSuchJob
    | BadAddress
    | DeadlineTooSoon
    | DeadlineWithoutLimit
)


class EscapesQuota(Value, tag="escapes_quota", gc=False):
    """The queue counts this, and the group asks for none of it."""

    group: str
    queue: QueuePath
    meter: Meter


class NoNodeMatches(Value, tag="no_node_matches", gc=False):
    """No node has the labels, or lacks the taints, that the group needs; that may still change."""

    group: str


class NeverReady(Value, tag="never_ready", gc=False):
    """The other job has ended, and not in the way that is waited for."""

    kind: DependencyKind
    job: JobId


class NoMailProgram(Value, tag="no_mail_program", gc=False):
    """The job wants mail, and nothing here sends it."""


class TooManyTokens(Value, tag="too_many_tokens", gc=False):
    """The user has as many tokens as one can have."""

    user: UserName
    limit: int


class TooManySilences(Value, tag="too_many_silences", gc=False):
    """There are as many silences as there can be, of this user or of all."""

    limit: int


class NodeIsDown(Value, tag="node_is_down", gc=False):
    """A node that is down has no other state until it answers."""

    node: NodeId


class TooLateForDeadline(Value, tag="too_late_for_deadline", gc=False):
    """The job is expected to start then, and not to end by its deadline."""

    deadline: Instant
    starts_at: Instant


class Refusal(Value):
    """The request cannot be accepted as it is; `advice` says what its user must change."""

    reason: Reason
    advice: str


class Caution(Value):
    """The request is accepted, but its user should know this."""

    reason: EscapesQuota | NoNodeMatches | NeverReady | NoMailProgram | TooLateForDeadline
    advice: str


class Accepted(Value):
    """The request, completed with what the user left open."""

    spec: JobSpec
    cautions: tuple[Caution, ...] = ()
