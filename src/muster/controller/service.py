"""The use cases that change something: who may, whether it makes sense, and the facts it leads to.

Each returns a future that is done when the change is durable. It raises RefusedError,
ForbiddenError or UnknownError when nothing was changed, StoreError when nothing could be written.
"""

from collections.abc import Callable
from concurrent.futures import Future

from muster.controller.asked import Caller, JobView, Outcome, Receipt, SiteDiff
from muster.controller.entry import Entry, Kinds
from muster.controller.journal import Write
from muster.controller.keys import Made, TokenWish, made
from muster.controller.looking import Looking
from muster.controller.moves import Move, Wish, moved
from muster.controller.notes import note
from muster.controller.rights import demand, has_role
from muster.controller.stage import Stage
from muster.controller.update import updated
from muster.model.cluster import Node, NodeState
from muster.model.errors import RefusedError, UnknownError
from muster.model.event import NodeChanged, SiteChanged
from muster.model.job import JobSpec
from muster.model.plan import NoSuchQueue
from muster.model.site import Role, Site, Token
from muster.model.value import JobId, NodeId, replace


class Service:
    """What doors call."""

    def __init__(self, write: Write, looking: Looking) -> None:
        self.looking = looking
        self._write = write
        self._kinds = Kinds()

    def submit(
        self,
        caller: Caller,
        spec: JobSpec,
        *,
        indices: tuple[int, ...] = (),
        at_once: int | None = None,
        held: bool = False,
    ) -> "Future[Receipt]":
        """Let a job, or an array of them, wait for its turn."""
        entry = Entry(
            caller=caller,
            spec=spec,
            kinds=self._kinds,
            indices=indices,
            at_once=at_once,
            held=held,
            finished=self.looking.finished(spec),
            sends_mail=self.looking.mail_program() is not None,
        )
        return self._write(entry.enter)

    def cancel(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._move(Wish(caller=caller, move=Move.CANCEL), jobs)

    def hold(
        self, caller: Caller, jobs: tuple[JobId, ...], *, for_owner: bool = False
    ) -> "Future[Outcome]":
        """Keep jobs from starting. for_owner: so that their users may release them."""
        return self._move(Wish(caller=caller, move=Move.HOLD, for_owner=for_owner), jobs)

    def release(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._move(Wish(caller=caller, move=Move.RELEASE), jobs)

    def requeue(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._move(Wish(caller=caller, move=Move.REQUEUE), jobs)

    def suspend(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._move(Wish(caller=caller, move=Move.SUSPEND), jobs)

    def resume(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._move(Wish(caller=caller, move=Move.RESUME), jobs)

    def signal(
        self, caller: Caller, jobs: tuple[JobId, ...], signal: int, *, step: int | None = None
    ) -> "Future[Outcome]":
        """Send a signal to running jobs, or to one step of each."""
        return self._move(Wish(caller=caller, move=Move.SIGNAL, signal=signal, step=step), jobs)

    def update(
        self, caller: Caller, job: JobId, change: Callable[[JobSpec], JobSpec]
    ) -> "Future[JobView]":
        """Change what a job asks for."""

        def command(stage: Stage) -> JobView:
            return self.looking.view(updated(caller, job, change, (self._kinds, stage)))

        return self._write(command)

    def drain(self, caller: Caller, node: NodeId, reason: str) -> "Future[Node]":
        """Let nothing new start on a node."""
        change = NodeChange(caller, node, NodeState.DRAINING, reason)
        return self._write(change.made)

    def undrain(self, caller: Caller, node: NodeId) -> "Future[Node]":
        """Let a node take work again."""
        return self._write(NodeChange(caller, node, NodeState.UP, "").made)

    def apply(
        self,
        caller: Caller,
        change: Callable[[Site], Site],
        *,
        dry_run: bool = False,
        detail: str = "",
    ) -> "Future[SiteDiff]":
        """Change the rules. detail: what the audit log says of it."""

        def command(stage: Stage) -> SiteDiff:
            diff = _diff(caller, change, stage)
            if not dry_run and diff.after != diff.before:
                stage.tell(SiteChanged(at=stage.now, site=diff.after, by=caller.user))
                note(stage, caller, "apply", "site", detail)
            return diff

        return self._write(command)

    def make_token(self, caller: Caller, wish: TokenWish) -> "Future[Made]":
        """A key for somebody: for oneself, or by an administrator for others."""

        def command(stage: Stage) -> Made:
            if wish.user != caller.user:
                demand(caller, stage.site, Role.ADMIN, to=f"make a token for {wish.user}")
            demand(caller, stage.site, wish.role, wish.queue, to=f"give away the role {wish.role}")
            new = made(wish, stage.now)
            stage.tokens[new.token.id] = new.token
            note(stage, caller, "make token", f"token {new.token.id}", f"for {wish.user}")
            return new

        return self._write(command)

    def revoke(self, caller: Caller, token: str) -> "Future[Token]":
        """From now on the token opens nothing."""

        def command(stage: Stage) -> Token:
            known = stage.record.tokens.get(token)
            if known is None:
                raise UnknownError(f"there is no token {token}; list them with: muster tokens")
            if known.user != caller.user:
                demand(caller, stage.site, Role.ADMIN, to=f"revoke a token of {known.user}")
            stage.tokens[token] = replace(known, revoked=True)
            note(stage, caller, "revoke token", f"token {token}")
            return stage.tokens[token]

        return self._write(command)

    def _move(self, wish: Wish, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._write(lambda stage: moved(wish, jobs, stage))


class NodeChange:
    """Somebody gives a node another state."""

    def __init__(self, caller: Caller, node: NodeId, state: NodeState, reason: str) -> None:
        self._caller = caller
        self._node = node
        self._state = state
        self._reason = reason

    def made(self, stage: Stage) -> Node:
        """The command."""
        caller, name = self._caller, self._node
        demand(caller, stage.site, Role.ADMIN, to=f"change node {name}")
        known = stage.node(name)
        if known is None:
            raise UnknownError(f"there is no node {name}; list them with: muster nodes")
        if known.state is NodeState.DOWN:
            state = "down, and comes back by itself when it answers"
            raise UnknownError(f"node {name} is {state}")
        event = NodeChanged(
            at=stage.now, node=name, state=self._state, by=caller.user, reason=self._reason
        )
        stage.tell(event)
        note(stage, caller, f"set {self._state}", f"node {name}", self._reason)
        return stage.node(name) or known


def _diff(caller: Caller, change: Callable[[Site], Site], stage: Stage) -> SiteDiff:
    before = stage.site
    after = change(before)
    if not _only_below(before, after, caller):
        demand(caller, before, Role.ADMIN, to="change the rules of the site")
    if not after.queues:
        raise RefusedError(
            NoSuchQueue(queue=after.default_queue),
            "The new rules have no queue, so that nobody could submit. Name at least one.",
        )
    return SiteDiff(before=before, after=after, cautions=tuple(_cautions(after, stage)))


def _only_below(before: Site, after: Site, caller: Caller) -> bool:
    """Does the change touch only queues of which the caller is queue_admin from above?"""
    if replace(before, queues=after.queues) != after:
        return False
    touched = {
        path
        for path in before.queues.keys() | after.queues.keys()
        if before.queues.get(path) != after.queues.get(path)
    }
    # One's own topmost queue is what others granted: only what lies below it is one's to divide.
    return all(
        has_role(caller, before, Role.QUEUE_ADMIN, type(path)(path.rpartition("/")[0]))
        for path in touched
    )


def _cautions(after: Site, stage: Stage) -> list[str]:
    """Live jobs that the new rules leave without a queue or class."""
    found: list[str] = []
    jobs = stage.record.jobs.values()
    lost = sorted({job.spec.queue for job in jobs if job.spec.queue not in after.queues})
    found += [f"jobs wait in queue {path}, which is gone; move or cancel them" for path in lost]
    gone = sorted({job.spec.job_class for job in jobs if job.spec.job_class not in after.classes})
    found += [f"jobs have class {name}, which is gone; update or cancel them" for name in gone]
    return found
