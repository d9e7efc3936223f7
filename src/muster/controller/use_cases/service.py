"""The use cases that change something: who may, whether it makes sense, and the facts it leads to.

Each returns a future that is done when the change is durable. It raises RefusedError,
ForbiddenError or UnknownError when nothing was changed, StoreError when nothing could be written.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from signal import SIGTERM
from threading import Thread
from typing import TypeVar

from muster.controller.alerting.use_cases import (
    RulesChange,
    SilenceRequest,
    apply_rules,
    end_silence,
    make_silence,
)
from muster.controller.messages import Caller, Outcome, Receipt, SiteDiff
from muster.controller.queries.queries import Queries
from muster.controller.rights import demand, demand_anywhere, has_role
from muster.controller.use_cases.allowance import Allowances
from muster.controller.use_cases.audit import audit
from muster.controller.use_cases.job_actions import JobAction, JobActionRequest, act_on_jobs
from muster.controller.use_cases.node_marks import NodeMarking
from muster.controller.use_cases.objects import ObjectsWrite, Written
from muster.controller.use_cases.refusals import Refusals
from muster.controller.use_cases.site_checks import cautions, demand_workable
from muster.controller.use_cases.submission import NodeKinds, Submission
from muster.controller.use_cases.tokens import NewToken, TokenRequest, make_token, revoke_token
from muster.controller.use_cases.update import updated
from muster.controller.world.journal import Write
from muster.controller.world.transaction import Transaction
from muster.lifecycle.refusal import NodeIsDown, Unprintable
from muster.lifecycle.sizes import kept_bytes
from muster.lifecycle.step import UNSTARTED
from muster.model.alerting import Silence
from muster.model.cluster import Node, NodeState, Taint
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.event import NodeChanged, SiteChanged
from muster.model.forbidden import HasStarted, NotYourJob
from muster.model.job import Job, JobSpec
from muster.model.launch import Launch
from muster.model.running import TerminalStream
from muster.model.site import Role, Site, Token
from muster.model.value import JobId, NodeId, replace

T = TypeVar("T")

LONGEST_REASON = 1_000

CHANGE_BYTES = 1_024
"""About so much is written of a small change, to the log and to the audit."""


class Service:
    """What doors call."""

    def __init__(self, write: Write, queries: Queries) -> None:
        self.queries = queries
        self._write = write
        self._kinds = NodeKinds()
        self._refusals = Refusals()
        self._allowances = Allowances()

    def submit(  # noqa: PLR0913 (what a door says besides the spec, each by its name)
        self,
        caller: Caller,
        spec: JobSpec,
        *,
        indices: tuple[int, ...] = (),
        at_once: int | None = None,
        held: bool = False,
        patient: bool = False,
        request_key: str | None = None,
    ) -> "Future[Receipt]":
        """Let a job, or an array of them, wait for its turn; once for each request key.

        With a deadline, the answer waits a moment to say whether it can be met.
        patient: what no node that there is could run waits for others, and is not refused.
        """
        entry = replace(
            self._submission(caller, spec),
            indices=indices,
            at_once=at_once,
            held=held,
            patient=patient,
            request_key=request_key,
        )
        answer = self._change(caller, "submit", entry.enter)
        return answer if spec.deadline is None else self._with_outlook(answer)

    def entering(
        self, caller: Caller, spec: JobSpec, *, held: bool = False
    ) -> Callable[[Transaction], Receipt]:
        """The same as a part of a transaction that writes more; it may wait for other nodes."""
        return replace(self._submission(caller, spec), held=held, patient=True).enter

    def revising(
        self,
        caller: Caller,
        job: JobId,
        change: Callable[[JobSpec], JobSpec],
        *,
        launch: Launch | None = None,
        releases: bool = False,
    ) -> Callable[[Transaction], None]:
        """Change a job, as a part of a transaction that writes more; releases: it may start now.

        launch: what it runs, if that changes; it must not have begun to.
        """

        def command(transaction: Transaction) -> None:
            after = updated(caller, job, change, (self._kinds, transaction), patient=True)
            if launch is not None and after.state not in UNSTARTED:
                raise ForbiddenError(HasStarted(job=after.label, state=after.state))
            if launch is not None:
                transaction.keep_launch(job, launch)
            if releases:
                request = JobActionRequest(caller=caller, action=JobAction.RELEASE)
                act_on_jobs(request, (job,), transaction)

        return command

    def _submission(self, caller: Caller, spec: JobSpec) -> Submission:
        return Submission(
            caller=caller,
            spec=spec,
            kinds=self._kinds,
            sends_mail=self.queries.status.mail_program() is not None,
            allowances=self._allowances,
        )

    def _with_outlook(self, answer: "Future[Receipt]") -> "Future[Receipt]":
        """The same answer, with a caution if the last of the jobs will miss its deadline."""
        told: Future[Receipt] = Future()

        def tell() -> None:
            try:
                receipt = answer.result()
                caution = self.queries.plan.too_late(receipt.jobs[-1])
                added = () if caution is None else (caution,)
                told.set_result(replace(receipt, cautions=(*receipt.cautions, *added)))
            except BaseException as error:  # noqa: BLE001 - who waits for the answer gets it
                told.set_exception(error)

        Thread(target=tell, name="deadline", daemon=True).start()
        return told

    def cancel(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._act(JobActionRequest(caller=caller, action=JobAction.CANCEL), jobs)

    def hold(
        self, caller: Caller, jobs: tuple[JobId, ...], *, for_owner: bool = False
    ) -> "Future[Outcome]":
        """Keep jobs from starting. for_owner: so that their users may release them."""
        return self._act(
            JobActionRequest(caller=caller, action=JobAction.HOLD, for_owner=for_owner), jobs
        )

    def release(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._act(JobActionRequest(caller=caller, action=JobAction.RELEASE), jobs)

    def requeue(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._act(JobActionRequest(caller=caller, action=JobAction.REQUEUE), jobs)

    def suspend(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._act(JobActionRequest(caller=caller, action=JobAction.SUSPEND), jobs)

    def resume(self, caller: Caller, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        return self._act(JobActionRequest(caller=caller, action=JobAction.RESUME), jobs)

    def signal(
        self, caller: Caller, jobs: tuple[JobId, ...], signal: int, *, step: int | None = None
    ) -> "Future[Outcome]":
        """Send a signal to running jobs, or to one step of each."""
        return self._act(
            JobActionRequest(caller=caller, action=JobAction.SIGNAL, signal=signal, step=step), jobs
        )

    def stop_task(self, caller: Caller, job: JobId, task: int) -> "Future[Outcome]":
        """End one pod of a gang; the others go on."""
        request = JobActionRequest(
            caller=caller, action=JobAction.SIGNAL, signal=SIGTERM, task=task
        )
        return self._act(request, (job,))

    def update(
        self, caller: Caller, job: JobId, change: Callable[[JobSpec], JobSpec]
    ) -> "Future[Job]":
        """Change what a job asks for."""

        def command(transaction: Transaction) -> Job:
            after = updated(caller, job, change, (self._kinds, transaction))
            self._charge(caller, kept_bytes(after.spec), transaction)
            return after

        return self._change(caller, f"update job {job}", command)

    def drain(self, caller: Caller, node: NodeId, reason: str) -> "Future[Node]":
        """Let nothing new start on a node."""
        change = NodeChange(caller, node, NodeState.DRAINING, reason)
        return self._change(caller, f"drain node {node}", change.apply)

    def undrain(self, caller: Caller, node: NodeId) -> "Future[Node]":
        """Let a node take work again."""
        change = NodeChange(caller, node, NodeState.UP, "")
        return self._change(caller, f"undrain node {node}", change.apply)

    def setting(
        self, caller: Caller, node: NodeId, state: NodeState, reason: str
    ) -> Callable[[Transaction], Node]:
        """Drain or undrain as a part of a transaction that writes more."""
        return NodeChange(caller, node, state, reason).apply

    def marking(
        self, caller: Caller, node: NodeId, labels: Mapping[str, str], taints: tuple[Taint, ...]
    ) -> Callable[[Transaction], Node]:
        """Give a node labels and taints, as a part of a transaction that writes more."""
        return NodeMarking(caller=caller, node=node, labels=labels, taints=taints).apply

    def applying(
        self, caller: Caller, change: Callable[[Site], Site]
    ) -> Callable[[Transaction], SiteDiff]:
        """Change the rules as a part of a transaction that writes more."""
        return lambda transaction: _apply(caller, change, _parts, transaction)

    def apply(
        self,
        caller: Caller,
        change: Callable[[Site], Site],
        *,
        dry_run: bool = False,
        describe: Callable[[SiteDiff], str] | None = None,
    ) -> "Future[SiteDiff]":
        """Change the rules. describe: what the audit log says of it; by default which parts."""

        def command(transaction: Transaction) -> SiteDiff:
            if dry_run:
                return _diff(caller, change, transaction)
            return _apply(caller, change, describe or _parts, transaction)

        return self._change(caller, "apply", command)

    def make_token(self, caller: Caller, request: TokenRequest) -> "Future[NewToken]":
        """A key for oneself, or by the machine's administrator for others."""

        def command(transaction: Transaction) -> NewToken:
            self._charge(caller, CHANGE_BYTES, transaction)
            return make_token(caller, request, transaction)

        return self._change(caller, "make token", command)

    def revoke(self, caller: Caller, token: str) -> "Future[Token]":
        """From now on the token opens nothing."""
        return self._change(
            caller,
            f"revoke token {token}",
            lambda transaction: revoke_token(caller, token, transaction),
        )

    def make_silence(self, caller: Caller, request: SilenceRequest) -> "Future[Silence]":
        """Have nobody told of some alerts for a while."""

        def command(transaction: Transaction) -> Silence:
            self._charge(caller, CHANGE_BYTES, transaction)
            return make_silence(caller, request, transaction)

        return self._change(caller, "silence alerts", command)

    def end_silence(self, caller: Caller, silence: str) -> "Future[Silence]":
        """From now on it silences nothing."""
        return self._change(
            caller,
            f"end silence {silence}",
            lambda transaction: end_silence(caller, silence, transaction),
        )

    def apply_rules(
        self, caller: Caller, text: str, *, dry_run: bool = False
    ) -> "Future[RulesChange]":
        """Take other rules of alerts beside those that come with Muster."""
        return self._change(
            caller,
            "apply rules of alerts",
            lambda transaction: apply_rules(caller, text, transaction, dry_run=dry_run),
        )

    def write_objects(self, request: ObjectsWrite) -> "Future[tuple[Written, ...]]":
        """Write objects of the Kubernetes API, whose door says who may."""
        return self._write(request.apply)

    def attach(self, caller: Caller, job: JobId) -> TerminalStream:
        """A stream to the terminal of a running job; that somebody has it is written down first."""
        self.queries.attempts.demand_owner(caller, job, to="use its terminal")

        def command(transaction: Transaction) -> None:
            known = transaction.job(job)
            self._charge(caller, CHANGE_BYTES, transaction)
            audit(transaction, caller, "attach", f"job {job if known is None else known.label}")

        self._write(command).result()
        return self.queries.attempts.attach(caller, job)

    def announce_visit(self, caller: Caller, job: JobId, how: str, detail: str = "") -> None:
        """Write down that somebody enters the containers of a job, before they do.

        how: `exec`, `attach` or `port-forward`; what they do there is asked of `queries.attempts`.
        """
        self.queries.attempts.demand_owner(caller, job, to="enter its containers")

        def command(transaction: Transaction) -> None:
            known = transaction.job(job)
            self._charge(caller, CHANGE_BYTES, transaction)
            subject = f"job {job if known is None else known.label}"
            audit(transaction, caller, how, subject, detail)

        self._write(command).result()

    def note_refusal(self, caller: Caller, action: str, why: str) -> None:
        """Write down that somebody may not do what they tried; of a flood, only its beginning."""
        entry = self._refusals.entry(caller, action, why)
        if entry is not None:
            self._write(lambda transaction: transaction.audit.append(entry(transaction.now)))

    def _change(
        self, caller: Caller, action: str, command: Callable[[Transaction], T]
    ) -> "Future[T]":
        """Write what the command does; that the caller may not is written down as well."""
        changed = self._write(command)

        def note(future: "Future[T]") -> None:
            error = None if future.cancelled() else future.exception()
            if isinstance(error, ForbiddenError):
                self.note_refusal(caller, action, str(error))

        changed.add_done_callback(note)
        return changed

    def _act(self, request: JobActionRequest, jobs: tuple[JobId, ...]) -> "Future[Outcome]":
        """Do it; that somebody named jobs of others is written down."""

        def command(transaction: Transaction) -> Outcome:
            # Who has used up what they may write can still end what they have.
            if request.action is not JobAction.CANCEL:
                self._charge(request.caller, CHANGE_BYTES * len(jobs), transaction)
            return act_on_jobs(request, jobs, transaction)

        acted = self._write(command)
        acted.add_done_callback(lambda future: self._note_strangers(request, future))
        return acted

    def _charge(self, caller: Caller, size: int, transaction: Transaction) -> None:
        """So many bytes are about to be written for the caller: the disk is everybody's."""
        if not caller.root:
            limit = transaction.site.per_user.max_submit_mib
            self._allowances.take(caller.user, size, limit, transaction.now)

    def _note_strangers(self, request: JobActionRequest, acted: "Future[Outcome]") -> None:
        if acted.cancelled() or acted.exception() is not None:
            return
        strange = [why for why in acted.result().failed.values() if isinstance(why, NotYourJob)]
        if strange:
            more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
            self.note_refusal(request.caller, request.action, strange[0].sentence + more)


class NodeChange:
    """Somebody gives a node another state."""

    def __init__(self, caller: Caller, node: NodeId, state: NodeState, reason: str) -> None:
        self._caller = caller
        self._node = node
        self._state = state
        self._reason = reason

    def apply(self, transaction: Transaction) -> Node:
        """The command."""
        caller, name = self._caller, self._node
        demand(caller, transaction.site, Role.ADMIN, to=f"change node {name}")
        if len(self._reason) > LONGEST_REASON or not self._reason.isprintable():
            raise RefusedError(
                Unprintable(what="The reason"),
                f"The reason is shown to everybody: write it in one line of {LONGEST_REASON} "
                "characters at most.",
            )
        known = transaction.node(name)
        if known is None:
            raise UnknownError(f"there is no node {name}; list them with: muster nodes")
        if known.state is NodeState.DOWN:
            raise RefusedError(
                NodeIsDown(node=name),
                f"Node {name} is down, and comes back by itself when it answers. "
                "Try again when it is up.",
            )
        event = NodeChanged(
            at=transaction.now, node=name, state=self._state, by=caller.user, reason=self._reason
        )
        transaction.apply(event)
        audit(transaction, caller, f"set {self._state}", f"node {name}", self._reason)
        return transaction.node(name) or known


def _apply(
    caller: Caller,
    change: Callable[[Site], Site],
    describe: Callable[[SiteDiff], str],
    transaction: Transaction,
) -> SiteDiff:
    diff = _diff(caller, change, transaction)
    if diff.after != diff.before:
        transaction.apply(SiteChanged(at=transaction.now, site=diff.after, by=caller.user))
        audit(transaction, caller, "apply", "site", describe(diff))
    return diff


def _diff(caller: Caller, change: Callable[[Site], Site], transaction: Transaction) -> SiteDiff:
    before = transaction.site
    # Also before it is known whether it changes anything.
    demand_anywhere(caller, before, Role.QUEUE_ADMIN)
    after = change(before)
    if not _only_below(before, after, caller):
        demand(caller, before, Role.ADMIN, to="change the rules of the site")
    demand_workable(after, transaction.record)
    return SiteDiff(before=before, after=after, cautions=cautions(after, transaction.record))


def _parts(diff: SiteDiff) -> str:
    fields = Site.__struct_fields__
    return ", ".join(
        name for name in fields if getattr(diff.before, name) != getattr(diff.after, name)
    )


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
