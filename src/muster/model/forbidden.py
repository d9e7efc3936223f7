"""Why somebody may not do something, and who may."""

from enum import StrEnum

from muster.model.job import JobState
from muster.model.site import Role
from muster.model.value import JobId, QueuePath, UserName, Value


class NeedsRole(Value, tag="needs_role", gc=False):
    """What the user wants to do takes a role that they do not have: in the queue, or everywhere."""

    user: UserName
    role: Role
    queue: QueuePath | None
    to: str

    @property
    def sentence(self) -> str:
        where = f" in {self.queue}" if self.queue is not None else ""
        return f"to {self.to} takes the role {self.role}{where}; {self.user} has not got it"


class CannotSubmit(Value, tag="cannot_submit", gc=False):
    """The user has no role in that queue that lets them submit to it."""

    user: UserName
    queue: QueuePath

    @property
    def sentence(self) -> str:
        to = f"submit to {self.queue}"
        return NeedsRole(user=self.user, role=Role.USER, queue=self.queue, to=to).sentence


class CannotRaisePriority(Value, tag="cannot_raise_priority", gc=False):
    """A priority counts beside everybody's: users lower that of their jobs, and do not raise it."""

    user: UserName
    queue: QueuePath

    @property
    def sentence(self) -> str:
        to, role = "give a job a priority above 0", Role.QUEUE_ADMIN
        return NeedsRole(user=self.user, role=role, queue=self.queue, to=to).sentence


class SubmitsForAnother(Value, tag="submits_for_another", gc=False):
    """Only administrators submit jobs that belong to others."""

    user: UserName
    other: UserName

    @property
    def sentence(self) -> str:
        return f"{self.user} cannot submit for {self.other}; an admin can"


class NotYourJob(Value, tag="not_your_job", gc=False):
    """The job belongs to another user; `rule` says who may do what was asked for."""

    job: JobId
    owner: UserName
    rule: str

    @property
    def sentence(self) -> str:
        return f"job {self.job} belongs to {self.owner}; {self.rule}"


class HasStarted(Value, tag="has_started", gc=False):
    """An attempt of the job depends on what should change."""

    job: JobId
    state: JobState

    @property
    def sentence(self) -> str:
        return (
            f"job {self.job} is {self.state}: only its name, labels, mail, time limit, priority, "
            "retries and the width of its array can change now; requeue it to change the rest"
        )


class NoRole(Value, tag="no_role", gc=False):
    """The user may not even look."""

    user: UserName

    @property
    def sentence(self) -> str:
        return f"{self.user} has no role here; ask an administrator for one"


class TokenFault(StrEnum):
    """What is wrong with a token."""

    UNKNOWN = "is not known"
    REVOKED = "was revoked"
    EXPIRED = "has expired"


class BadToken(Value, tag="bad_token", gc=False):
    """The token opens nothing; one that is not known has no id."""

    token: str | None
    fault: TokenFault

    @property
    def sentence(self) -> str:
        name = "this token" if self.token is None else f"token {self.token}"
        return f"{name} {self.fault}; make one with: muster tokens create"


Forbidden = (
    NeedsRole
    | CannotSubmit
    | CannotRaisePriority
    | SubmitsForAnother
    | NotYourJob
    | HasStarted
    | NoRole
    | BadToken
)
