"""How a request comes in: checked against the rules and the world of this moment."""

from collections.abc import Mapping

from muster.controller.messages import Caller, Receipt
from muster.controller.rights import (
    demand_class,
    demand_own_labels,
    demand_priority,
    demand_submission,
)
from muster.controller.use_cases.allowance import Allowances
from muster.controller.use_cases.audit import audit, remember_request
from muster.controller.world.groups import is_guarded
from muster.controller.world.record import Record
from muster.controller.world.reservations import current_windows
from muster.controller.world.transaction import Transaction, without_launch
from muster.lifecycle.abilities import takes_of
from muster.lifecycle.admit import admit
from muster.lifecycle.refusal import (
    Accepted,
    Caution,
    DeadlineWithoutLimit,
    NoMailProgram,
    Refusal,
    TooManyOfUser,
    TooManySubmitted,
)
from muster.lifecycle.sizes import kept_bytes
from muster.lifecycle.submission import NodeKind, kinds_of, queues_above
from muster.model.errors import ForbiddenError, RefusedError
from muster.model.event import JobSubmitted
from muster.model.forbidden import SubmitsForAnother
from muster.model.history import RequestMade
from muster.model.job import ArrayPart, Dependency, Job, JobSpec
from muster.model.queue import Queue, WhenFull, is_within, lineage
from muster.model.site import runs_images_on_host
from muster.model.snapshot import Snapshot
from muster.model.value import JobId, QueuePath, Value, replace

NO_QUEUE = QueuePath("")
"""The queue of a spec whose user named none: theirs, or the site's, is put in its place."""


NO_MAIL_SENT = (
    "No mail will be sent: Muster has no mail program. "
    "An administrator can name one: muster up --mail-program PROGRAM."
)


class NodeKinds:
    """The kinds of nodes there are: worked out anew only when the nodes or pools changed."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._kinds: tuple[NodeKind, ...] = ()

    def of(self, snapshot: Snapshot, record: Record) -> tuple[NodeKind, ...]:
        key = (record.nodes_version, snapshot.pools)
        if not self._key or key[0] != self._key[0] or key[1] is not self._key[1]:
            self._key, self._kinds = key, kinds_of(snapshot)
        return self._kinds


class Submission(Value):
    """A request to run something: one job or, with indices, an array.

    instead_of: a job that is there already and would be this one: it takes no second place.
    sends_mail: is there something here that sends mail?
    patient: what no node here could run waits for other nodes, and is not refused.
    request_key: by which the same request, sent again, is known.
    allowances: what is left to users of what they may submit; None for what is only rehearsed.
    """

    caller: Caller
    spec: JobSpec
    kinds: NodeKinds
    indices: tuple[int, ...] = ()
    at_once: int | None = None
    held: bool = False
    instead_of: JobId | None = None
    sends_mail: bool = True
    patient: bool = False
    request_key: str | None = None
    allowances: Allowances | None = None

    def enter(self, transaction: Transaction) -> Receipt:
        """The command: let it in, or raise RefusedError or ForbiddenError.

        A request that is sent again, with the key that it had, makes nothing new.
        """
        user, key = self.caller.user, self.request_key
        if key is not None and (jobs := transaction.requested(user, key)):
            return Receipt(jobs=jobs)
        spec = self.whose(transaction)
        accepted = self.admitted(spec, transaction)
        self._demand_user_limits(accepted.spec, transaction)
        launch = accepted.spec.launch
        first = transaction.next_job
        for spec in self._parts(accepted.spec, first):
            event = JobSubmitted(
                at=transaction.now,
                job=transaction.new_id(),
                spec=spec,
                held=self.held,
                door=self.caller.door,
            )
            transaction.apply(without_launch(event))
        transaction.keep_launch(first, launch)
        count = max(1, len(self.indices))
        audit(transaction, self.caller, "submit", f"job {first}", f"{count} to {spec.queue}")
        if key is not None:
            remember_request(transaction, RequestMade(key=key, first=first, count=count))
        jobs = tuple(JobId(each) for each in range(first, transaction.next_job))
        return Receipt(jobs=jobs, cautions=(*accepted.cautions, *self._no_mail(spec)))

    def admitted(self, spec: JobSpec, transaction: Transaction) -> Accepted:
        """The spec, completed, if it may come in."""
        demand_submission(self.caller, transaction.site, spec.queue)
        before = None if self.instead_of is None else transaction.job(self.instead_of)
        demand_own_labels(spec, before)
        demand_priority(self.caller, transaction.site, spec, before)
        demand_class(self.caller, transaction.site, spec, before)
        snapshot = self._snapshot(spec, transaction)
        if self.instead_of is None:
            takes = takes_of(
                spec.launch, images_on_host=runs_images_on_host(transaction.site, spec.queue)
            )
            spec = replace(spec, takes=takes)
        kinds = self.kinds.of(snapshot, transaction.record)
        answer = admit(spec, snapshot, kinds, patient=self.patient)
        if isinstance(answer, Refusal):
            raise RefusedError(answer.reason, answer.advice)
        self._demand_places(spec, snapshot)
        self._demand_few(answer.spec, transaction)
        self._demand_end(answer.spec, transaction)
        return answer

    def whose(self, transaction: Transaction) -> JobSpec:
        """The spec with its queue, if the caller may ask for that user."""
        spec, site = self.spec, transaction.site
        user = site.users.get(spec.user)
        if spec.queue == NO_QUEUE:
            theirs = None if user is None else user.default_queue
            spec = replace(spec, queue=theirs or site.default_queue)
        if spec.user == self.caller.user or self.caller.root:
            return spec
        raise ForbiddenError(SubmitsForAnother(user=self.caller.user, other=spec.user))

    def _snapshot(self, spec: JobSpec, transaction: Transaction) -> Snapshot:
        """The world as admission needs it; the large parts are looked at in place, not copied."""
        record = transaction.record
        if is_guarded(transaction.site.pools):
            record.groups.meet((spec.user,), transaction.now)
        jobs: Mapping[JobId, Job] = record.jobs
        is_other = bool(transaction.jobs) or self.instead_of is not None
        if is_other and (spec.after or _counts_jobs(spec, transaction)):
            gone = transaction.ended.keys() | {self.instead_of}
            after = {**record.jobs, **transaction.jobs}
            jobs = {job_id: job for job_id, job in after.items() if job_id not in gone}
        return Snapshot(
            now=transaction.now,
            clusters=record.clusters,
            pools=record.pools(transaction.site),
            nodes=record.nodes,
            queues=transaction.site.queues,
            classes=transaction.site.classes,
            jobs=jobs,
            allocations=record.allocations,
            reservations=current_windows(transaction.site.reservations, transaction.now),
            finished=transaction.outcomes(each.job for each in spec.after if each.job is not None),
        )

    def _demand_end(self, spec: JobSpec, transaction: Transaction) -> None:
        """A job with a deadline starts only where it must have ended by then.

        One that is held can still be given a time limit.
        """
        site = transaction.site
        defaults = (site.policy.default_time, *(each.default_time for each in site.pools.values()))
        is_endless = spec.time_limit is None and all(each is None for each in defaults)
        if spec.deadline is None or not is_endless or self.held or self.instead_of is not None:
            return
        raise RefusedError(
            DeadlineWithoutLimit(),
            "A job with a deadline needs a time limit, for it starts only if it must have ended "
            "by then. Say how long it may run.",
        )

    def _demand_places(self, spec: JobSpec, snapshot: Snapshot) -> None:
        """An array needs as many places in its queues as it has parts."""
        if len(self.indices) < 2:
            return
        for queue in queues_above(snapshot, spec.queue):
            if queue.max_submitted is None:
                continue
            jobs = snapshot.jobs.values()
            there = sum(is_within(job.spec.queue, queue.path) for job in jobs)
            if there + len(self.indices) > queue.max_submitted:
                left = max(0, queue.max_submitted - there)
                raise RefusedError(
                    TooManySubmitted(queue=queue.path, limit=queue.max_submitted),
                    f"Queue {queue.path} has places for {left} more jobs; this array has "
                    f"{len(self.indices)} parts. Submit fewer, or submit again later.",
                )

    def _demand_user_limits(self, spec: JobSpec, transaction: Transaction) -> None:
        """No user has so many jobs, or so large ones, that others find no room."""
        if self.caller.root:
            return
        count, limits = max(1, len(self.indices)), transaction.site.per_user
        if limits.max_jobs is not None:
            there = transaction.jobs_of_user(spec.user)
            if there + count > limits.max_jobs:
                left = max(0, limits.max_jobs - there)
                raise RefusedError(
                    TooManyOfUser(user=spec.user, limit=limits.max_jobs),
                    f"{spec.user} has {there} unfinished jobs; one user may have "
                    f"{limits.max_jobs}. Submit {left} or fewer, or wait until some have ended.",
                )
        if self.allowances is not None:
            size = kept_bytes(spec, parts=count)
            self.allowances.take(spec.user, size, limits.max_submit_mib, transaction.now)

    def _demand_few(self, spec: JobSpec, transaction: Transaction) -> None:
        """No more unfinished jobs than the user, their queue or the class allow."""
        site, user = transaction.site, transaction.site.users.get(spec.user)
        job_class = site.classes.get(spec.job_class)
        of_class = None if job_class is None else job_class.per_user.submitted
        of_queue = None if job_class is None else job_class.per_queue.submitted
        own = None if user is None else user.max_submitted
        each_here = _submitted_per_user(spec.queue, site.queues)
        if own is None and each_here is None and of_class is None and of_queue is None:
            return
        gone = {*transaction.ended, self.instead_of}
        found = {**transaction.record.jobs, **transaction.jobs}.items()
        specs = [job.spec for job_id, job in found if job_id not in gone]
        mine = [each for each in specs if each.user == spec.user]
        alike = [each for each in specs if each.job_class == spec.job_class]
        for limit, count, whose in (
            (own, len(mine), f"User {spec.user}"),
            (
                each_here,
                sum(each.queue == spec.queue for each in mine),
                f"User {spec.user} in queue {spec.queue}",
            ),
            (of_class, sum(each.user == spec.user for each in alike), f"User {spec.user}"),
            (of_queue, sum(each.queue == spec.queue for each in alike), f"Queue {spec.queue}"),
        ):
            asked = max(1, len(self.indices))
            if limit is not None and count + asked > limit:
                raise RefusedError(
                    TooManySubmitted(queue=spec.queue, limit=limit),
                    f"{whose} may have {limit} unfinished jobs (in class {spec.job_class}, where "
                    f"that is its limit), and has {count}; this asks for {asked} more. "
                    "Submit fewer, or submit again later.",
                )

    def _no_mail(self, spec: JobSpec) -> tuple[Caution, ...]:
        if self.sends_mail or not spec.mail.on:
            return ()
        return (Caution(reason=NoMailProgram(), advice=NO_MAIL_SENT),)

    def _parts(self, spec: JobSpec, first: JobId) -> list[JobSpec]:
        if not self.indices:
            return [spec]
        after = _after_by_part(spec.after, self.indices)
        return [
            replace(
                spec,
                array=ArrayPart(array=first, index=index, at_once=self.at_once),
                after=after[index],
            )
            for index in self.indices
        ]


def _submitted_per_user(path: QueuePath, queues: Mapping[QueuePath, Queue]) -> int | None:
    """What the queue says, or the nearest above it that says something."""
    above = (queues[each] for each in lineage(path) if each in queues)
    bounds = (each.max_submitted_per_user for each in above)
    return next((each for each in bounds if each is not None), None)


def _after_by_part(
    after: tuple[Dependency, ...], indices: tuple[int, ...]
) -> dict[int, tuple[Dependency, ...]]:
    """What each part waits for: first what all of them do, which they share."""
    common = tuple(each for each in after if each.part is None)
    own: dict[int, list[Dependency]] = {}
    for each in after:
        if each.part is not None:
            own.setdefault(each.part, []).append(each)
    return {index: (*common, *own[index]) if index in own else common for index in indices}


def _counts_jobs(spec: JobSpec, transaction: Transaction) -> bool:
    queues = transaction.site.queues
    return any(
        queue.max_submitted is not None or queue.when_full is WhenFull.REFUSE
        for path, queue in queues.items()
        if is_within(spec.queue, path)
    )
