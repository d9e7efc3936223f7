"""A transaction: events applied beside the record, then written, then applied to the record."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from copy import copy
from signal import SIGKILL
from typing import Any

from muster.controller.world.record import Record
from muster.controller.world.request_keys import RequestKeys
from muster.controller.world.usage import Leaf, amount_of, leaf_of
from muster.lifecycle.holding import allocation_after
from muster.lifecycle.marks import marked
from muster.lifecycle.step import step, submitted
from muster.model.cluster import Cluster, Node, NodeState
from muster.model.dates import KeptDate
from muster.model.event import (
    ClusterSeen,
    DeadlineMissForeseen,
    DeviceCut,
    DeviceErred,
    DeviceJudged,
    Event,
    JobEnded,
    JobEvent,
    JobStruck,
    JobSubmitted,
    NodeChanged,
    NodeEvent,
    NodeGone,
    NodeMarked,
    NodeSeen,
    PodSeen,
    SignalAsked,
    SiteChanged,
    StepBegan,
    StepEnded,
    StepEvent,
)
from muster.model.history import Attempt, AuditEntry, Ended, Finished
from muster.model.job import FINAL, EndReason, HeldBy, Job, JobState
from muster.model.kept_object import (
    PLACES_IN_A_BATCH,
    KeptObject,
    ObjectKey,
    RemovedObject,
    Shelf,
    object_version,
)
from muster.model.launch import NO_LAUNCH, Launch
from muster.model.levels import ran_by
from muster.model.placement import Allocation
from muster.model.site import Site, Token
from muster.model.snapshot import UsedLately
from muster.model.steps import Step
from muster.model.value import (
    ClusterName,
    Duration,
    Instant,
    JobId,
    NodeId,
    UserName,
    Value,
    replace,
)
from muster.stores.base import Batch, LaunchOf


class Change(Value):
    """A job before and after a batch, with what it held; None where there was or is none."""

    before: Job | None
    after: Job
    held: Allocation | None
    holds: Allocation | None


FindOutcomes = Callable[[tuple[JobId, ...]], Mapping[JobId, Finished]]
"""How these jobs came out, as far as the store knows them and they are over."""


class Transaction:
    """The world after events that are not written yet.

    found: how jobs came out that ended earlier, as far as a command asked for them.
    """

    def __init__(self, record: Record, now: Instant, find_outcomes: FindOutcomes) -> None:
        self.record = record
        self.found: dict[JobId, Finished] = {}
        self._find_outcomes = find_outcomes
        self.now = now
        self.next_job = record.next_job
        self.events: list[Event] = []
        self.jobs: dict[JobId, Job] = {}
        self.ended: dict[JobId, Ended] = {}
        self.allocations: dict[JobId, Allocation | None] = {}
        self.attempts: list[Attempt] = []
        self.steps: dict[tuple[JobId, int], dict[int, Step]] = {}
        self.pods: dict[tuple[JobId, int], PodSeen] = {}
        self.launches: list[LaunchOf] = []
        self.clusters: dict[ClusterName, Cluster] = {}
        self.nodes: dict[NodeId, Node | None] = {}
        self.new_site: Site | None = None
        self.used: dict[Leaf, UsedLately] = {}
        self.tokens: dict[str, Token] = {}
        self.audit: list[AuditEntry] = []
        self.objects: dict[ObjectKey, KeptObject | RemovedObject] = {}
        self._object_changes = 0
        self.dates: list[KeptDate] = []

    # Reading.

    def job(self, job_id: JobId) -> Job | None:
        """The job, if it has not ended."""
        if job_id in self.ended:
            return None
        return self.jobs.get(job_id) or self.record.jobs.get(job_id)

    def outcomes(self, jobs: Iterable[JobId]) -> dict[JobId, Finished]:
        """How these jobs came out, those of this transaction too; who is not over is left out.

        The thread of the journal may read the store here: it has not begun to write.
        """
        gone = sorted({job for job in jobs if self.job(job) is None})
        known = {job: came_out for job in gone if (came_out := self._known_outcome(job))}
        unknown = tuple(job for job in gone if job not in known)
        if unknown:
            found = self._find_outcomes(unknown)
            self.found.update(found)
            known.update(found)
        return known

    def _known_outcome(self, job: JobId) -> Finished | None:
        if job in self.ended:
            return self.ended[job].outcome
        return self.record.finished.get(job) or self.found.get(job)

    def jobs_of_user(self, user: UserName) -> int:
        """How many unfinished jobs a user has, with those of this transaction."""
        known = self.record.jobs
        new = sum(
            job_id not in known and job.spec.user == user for job_id, job in self.jobs.items()
        )
        return self.record.jobs_of_user[user] + new

    def allocation(self, job_id: JobId) -> Allocation | None:
        if job_id in self.allocations:
            return self.allocations[job_id]
        return self.record.allocations.get(job_id)

    def node(self, name: NodeId) -> Node | None:
        return self.nodes[name] if name in self.nodes else self.record.nodes.get(name)

    def object(self, key: ObjectKey) -> KeptObject | None:
        """The object at this place, with what this transaction made of it."""
        changed = self.objects.get(key)
        if isinstance(changed, RemovedObject):
            return None
        return changed or self.record.objects.get(key)

    def objects_on(self, shelf: Shelf) -> list[KeptObject]:
        """All objects of a kind in a namespace, with what this transaction made of them."""
        found: dict[ObjectKey, KeptObject | RemovedObject] = {
            **self.record.shelves.get(shelf, {}),
            **{key: each for key, each in self.objects.items() if key.shelf == shelf},
        }
        return [each for each in found.values() if isinstance(each, KeptObject)]

    @property
    def site(self) -> Site:
        return self.new_site or self.record.site

    @property
    def is_empty(self) -> bool:
        return not (self.events or self.tokens or self.audit or self.objects or self.dates)

    # Changing.

    @contextmanager
    def all_or_nothing(self) -> Generator[None]:
        """What is done inside is undone where it ends in an error; steps of jobs are not."""
        before = {name: _own(each) for name, each in vars(self).items()}
        try:
            yield
        except BaseException:
            vars(self).update(before)
            raise

    def requested(self, user: UserName, key: str) -> tuple[JobId, ...]:
        """The jobs that this user's request of that key made before, written or not."""
        fresh = RequestKeys()
        fresh.learn(self.audit)
        return fresh.jobs_of(user, key) or self.record.request_keys.jobs_of(user, key)

    def new_id(self) -> JobId:
        """An id that no job ever had."""
        made = self.next_job
        self.next_job = JobId(made + 1)
        return made

    def apply(self, event: Event) -> None:
        """What is true after this event; events that change nothing are left out."""
        if isinstance(event, JobEvent):
            self._move(event)
            return
        match event:
            case JobSubmitted():
                self._submit(event)
            case NodeSeen() | DeviceCut() | NodeGone() | NodeChanged() | NodeMarked():
                self._apply_to_node(event)
            case ClusterSeen(cluster=cluster):
                self.clusters[cluster.name] = cluster
                self.events.append(event)
            case SiteChanged(site=site):
                self.new_site = site
                self.events.append(event)
            case StepBegan() | StepEnded():
                self._apply_to_step(event)
            case PodSeen():
                self._apply_to_pod(event)
            case DeviceErred() | DeviceJudged() | JobStruck():
                self.events.append(event)

    def apply_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.apply(event)

    def keep_launch(self, job: JobId, launch: Launch) -> None:
        self.launches.append(LaunchOf(job=job, launch=launch))

    def put_object(self, key: ObjectKey, body: str) -> KeptObject:
        """Write an object; it gets a version that no other change has."""
        kept = KeptObject(key=key, version=self._next_object_version(), body=body)
        self._object_changes += 1
        self.objects[key] = kept
        return kept

    def remove_object(self, key: ObjectKey) -> RemovedObject:
        """Take an object away; that it is gone has a version as well."""
        removed = RemovedObject(key=key, version=self._next_object_version())
        self._object_changes += 1
        self.objects[key] = removed
        return removed

    def has_room_for(self, objects: int) -> bool:
        """Can so many more changes of objects get a version of their own in this batch?"""
        return self._object_changes + objects <= PLACES_IN_A_BATCH

    def _next_object_version(self) -> int:
        return object_version(self.record.version + 1, self._object_changes)

    def batch(self) -> Batch:
        """All of it, as one transaction."""
        ended, allocations = self.ended, self.allocations.items()
        return Batch(
            version=self.record.version + 1,
            next_job=self.next_job,
            events=tuple(self.events),
            jobs=tuple([job for job_id, job in self.jobs.items() if job_id not in ended]),
            ended=tuple(ended.values()),
            allocations=tuple([held for _, held in allocations if held is not None]),
            freed=tuple([job for job, held in allocations if held is None]),
            attempts=tuple(self.attempts),
            steps=tuple([step for several in self.steps.values() for step in several.values()]),
            launches=tuple(self.launches),
            clusters=tuple(self.clusters.values()),
            nodes=tuple([node for node in self.nodes.values() if node is not None]),
            gone=tuple([name for name, node in self.nodes.items() if node is None]),
            site=self.new_site,
            used=tuple(self.used.values()),
            usual=self.record.seen.usual if self.record.seen.unwritten else (),
            tokens=tuple(self.tokens.values()),
            audit=tuple(self.audit),
            objects=tuple([o for o in self.objects.values() if isinstance(o, KeptObject)]),
            removed=tuple([o for o in self.objects.values() if isinstance(o, RemovedObject)]),
            dates=tuple(self.dates),
        )

    def changes(self) -> tuple[Change, ...]:
        """What became of each job: call it before the record takes the batch."""
        jobs, allocations = self.record.jobs, self.record.allocations
        return tuple(
            [
                Change(
                    before=jobs.get(job_id),
                    after=job,
                    held=allocations.get(job_id),
                    holds=self.allocation(job_id),
                )
                for job_id, job in self.jobs.items()
            ]
        )

    # One kind of event after the other.

    def _submit(self, event: JobSubmitted) -> None:
        self.jobs[event.job] = self.record.predictions.predicted(submitted(event))
        self.events.append(event)

    def _apply_to_node(self, event: NodeEvent) -> None:
        match event:
            case NodeSeen(node=node):
                self._see(node, event)
            case NodeGone(node=name):
                self.nodes[name] = None
                self.events.append(event)
            case NodeChanged():
                self._change(event, lambda node: _changed(node, event))
            case NodeMarked(labels=labels, taints=taints):
                self._change(event, lambda node: marked(node, labels, taints))
            case DeviceCut():
                self._change(event, lambda node: _cut(node, event))

    def _see(self, node: Node, event: NodeSeen) -> None:
        """Facts come from the backend; that somebody drained or marked the node stays true."""
        known = self.node(node.id)
        if known is not None:
            node = marked(node, known.given_labels, known.given_taints)
        was_drained = known is not None and known.state is NodeState.DRAINING
        # What a cluster drains by itself it also takes back by itself.
        if known is not None and was_drained and known.drained_by and node.state is NodeState.UP:
            node = replace(
                node,
                state=NodeState.DRAINING,
                reason=known.reason,
                drained_by=known.drained_by,
                drained_at=known.drained_at,
            )
        if known == node:
            return
        self.nodes[node.id] = node
        self.events.append(event)

    def _change(
        self, event: NodeChanged | NodeMarked | DeviceCut, changed: Callable[[Node], Node]
    ) -> None:
        known = self.node(event.node)
        if known is not None:
            self.nodes[event.node] = changed(known)
            self.events.append(event)

    def _move(self, event: JobEvent) -> None:
        before = self.job(event.job)
        if before is None:
            return
        held = self.allocation(before.id)
        after = _stepped(before, event, held)
        holds = allocation_after(held, event, after)
        if after is before and holds is held:
            if isinstance(event, SignalAsked | DeadlineMissForeseen):
                self.events.append(event)
            return
        if held is not None and holds is None:
            self._end_attempt(held, after, event)
        self.events.append(event)
        self.jobs[after.id] = after
        if held is not holds or (before.state is not after.state and held is not None):
            self._settle(before, event.at)
        if holds is not held:
            self.allocations[after.id] = holds
        if after.state in FINAL:
            self._end(after, held, event.at)

    def _apply_to_step(self, event: StepEvent) -> None:
        """Backends may report twice, and late: a step that is known to be over stays over."""
        reported = event.step
        held = self.allocation(reported.job)
        if held is None or held.attempt != reported.attempt:
            return
        staged = self.steps.setdefault((held.job, held.attempt), {})
        known = staged.get(reported.number) or self._written_steps(held).get(reported.number)
        is_news = known is None or (known.ended_at is None and isinstance(event, StepEnded))
        if is_news:
            staged[reported.number] = reported
            self.events.append(event)

    def _apply_to_pod(self, event: PodSeen) -> None:
        """Of the attempt that runs, and only what is new: backends report twice."""
        held = self.allocation(event.job)
        key = event.job, event.task
        known = self.pods.get(key) or self.record.pods.get(key)
        is_its_own = held is not None and held.attempt == event.attempt
        if is_its_own and (known is None or known.status != event.status):
            self.pods[key] = event
            self.events.append(event)

    def _end_attempt(self, held: Allocation, after: Job, event: JobEvent) -> None:
        """Keep what is known of the attempt; steps that still run are killed with it."""
        self.attempts.append(_attempt(held, after, event))
        staged = self.steps.get((held.job, held.attempt), {})
        for _, each in sorted({**self._written_steps(held), **staged}.items()):
            if each.ended_at is None:
                over = replace(each, ended_at=event.at, signal=int(SIGKILL))
                self._apply_to_step(StepEnded(at=event.at, step=over))

    def _written_steps(self, held: Allocation) -> Mapping[int, Step]:
        """What the record knows of this attempt."""
        known = self.record.allocations.get(held.job)
        is_same = known is not None and known.attempt == held.attempt
        return self.record.steps.of(held.job) if is_same else {}

    def _settle(self, job: Job, at: Instant) -> None:
        """Count what the user has used up to here, before they hold more or less."""
        leaf = leaf_of(job)
        if leaf not in self.used:
            self.used[leaf] = self.record.usage.settled(leaf, at, self.site.policy.share)

    def _end(self, job: Job, held: Allocation | None, at: Instant) -> None:
        started = held.started_at or held.placed_at if held is not None else None
        self.ended[job.id] = Ended(job=job, started_at=started, ended_at=at)


def _stepped(job: Job, event: JobEvent, held: Allocation | None) -> Job:
    """The job after the event; when it runs no more, how long it ran is counted."""
    after = step(job, event)
    if job.state is JobState.RUNNING and after.state is not JobState.RUNNING:
        after = replace(after, ran=ran_by(job, held, event.at))
    return after


def without_launch(event: JobSubmitted) -> JobSubmitted:
    """The event with its launch left out: that is kept apart, and once for a whole array."""
    return replace(event, spec=replace(event.spec, launch=NO_LAUNCH))


def _changed(node: Node, event: NodeChanged) -> Node:
    """Who keeps work off a node is remembered with the reason, until it takes work again."""
    is_up = event.state is NodeState.UP
    return replace(
        node,
        state=event.state,
        reason=event.reason,
        drained_by=None if is_up else event.by,
        drained_at=None if is_up else event.at,
    )


def _cut(node: Node, cut: DeviceCut) -> Node:
    devices = tuple(
        replace(device, mig=cut.instances) if device.id == cut.device else device
        for device in node.devices
    )
    return replace(node, devices=devices)


def _attempt(held: Allocation, after: Job, event: JobEvent) -> Attempt:
    amount = amount_of(held)
    began = held.started_at or held.placed_at
    safe = max(began, held.checkpointed_at or began)
    again = after.state is JobState.PENDING
    return Attempt(
        job=held.job,
        number=held.attempt,
        cluster=held.cluster,
        pools=tuple(sorted({placed.pool for placed in held.placements})),
        nodes=tuple(sorted({placed.node for placed in held.placements})),
        amount=amount,
        placed_at=held.placed_at,
        started_at=held.started_at,
        ended_at=event.at,
        why=_why(after),
        checkpointed_at=held.checkpointed_at,
        lost_gpu_ms=max(0, event.at - safe) * amount.gpu_milli // 1_000 if again else 0,
        stood=_stood(held, event.at),
        nodes_of=_nodes_of(held),
        used=event.used if isinstance(event, JobEnded) else None,
    )


def _stood(held: Allocation, at: Instant) -> Duration:
    return Duration(
        held.stood + max(0, at - (at if held.stands_since is None else held.stands_since))
    )


def _nodes_of(held: Allocation) -> dict[str, tuple[NodeId, ...]]:
    found: dict[str, set[NodeId]] = {}
    for placed in held.placements:
        found.setdefault(placed.group, set()).add(placed.node)
    if len(found) == 1:
        return {}
    return {group: tuple(sorted(nodes)) for group, nodes in sorted(found.items())}


def _why(job: Job) -> EndReason | None:
    return None if isinstance(job.why, HeldBy) else job.why


def _own(value: Any) -> Any:
    """A copy of what transactions add to; all else that they hold is never changed."""
    return copy(value) if type(value) in {dict, list} else value
