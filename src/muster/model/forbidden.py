"""Why somebody may not do something, and who may."""

from enum import StrEnum

from muster.model.job import JobState
from muster.model.site import Role
from muster.model.value import ClassName, QueuePath, UserName, Value


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


class CannotUseClass(Value, tag="cannot_use_class", gc=False):
    """The class does not name the user, and is more than everyone's share."""

    user: UserName
    job_class: ClassName
    queue: QueuePath

    @property
    def sentence(self) -> str:
        return (
            f"{self.user} may not use class {self.job_class} in {self.queue}; name another class, "
            "or ask an administrator, who can list you under its may_use"
        )


class CannotDeclinePreemption(Value, tag="cannot_decline_preemption", gc=False):
    """Jobs of the class make room for others, and the class does not name the user."""

    user: UserName
    job_class: ClassName

    @property
    def sentence(self) -> str:
        return (
            f"jobs of class {self.job_class} can be preempted; leave out `preemptible: false`, or "
            f"ask an administrator, who can list {self.user} under the class's may_decline"
        )


class SubmitsForAnother(Value, tag="submits_for_another", gc=False):
    """What a job runs, it runs as its user: only the machine's administrator may be others."""

    user: UserName
    other: UserName

    @property
    def sentence(self) -> str:
        return f"{self.user} cannot submit for {self.other}; the machine's administrator can"


class MakesForAnother(Value, tag="makes_for_another", gc=False):
    """Who has a token of somebody can act as they do."""

    user: UserName
    other: UserName

    @property
    def sentence(self) -> str:
        return (
            f"{self.user} cannot make a token for {self.other}; "
            f"{self.other} and the machine's administrator can"
        )


class TokenIsLess(Value, tag="token_is_less", gc=False):
    """A token revokes itself, and those that can do no more than it can."""

    token: str
    other: str

    @property
    def sentence(self) -> str:
        return (
            f"token {self.token} cannot revoke token {self.other}, which can do more; "
            "do it without a token, or with a greater one"
        )


class NotYourJob(Value, tag="not_your_job", gc=False):
    """The job belongs to another user; `rule` says who may do what was asked for."""

    job: str
    owner: UserName
    rule: str

    @property
    def sentence(self) -> str:
        return f"job {self.job} belongs to {self.owner}; {self.rule}"


class HasStarted(Value, tag="has_started", gc=False):
    """An attempt of the job depends on what should change."""

    job: str
    state: JobState

    @property
    def sentence(self) -> str:
        return (
            f"job {self.job} is {self.state}: only its name, labels, mail, time limit, priority, "
            "retries and the width of its array can change now; requeue it to change the rest"
        )


class LabelIsOurs(Value, tag="label_is_ours", gc=False):
    """By labels that begin so Muster itself knows a job again."""

    label: str

    @property
    def sentence(self) -> str:
        return f"label {self.label} says which pod a job is, and only Muster sets it; leave it out"


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
    | CannotUseClass
    | CannotDeclinePreemption
    | SubmitsForAnother
    | MakesForAnother
    | TokenIsLess
    | NotYourJob
    | HasStarted
    | LabelIsOurs
    | NoRole
    | BadToken
)
