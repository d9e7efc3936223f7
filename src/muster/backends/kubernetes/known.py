"""What is known of attempts and of their users outside of the cluster."""

import os
import pwd
from collections.abc import Iterable, Mapping
from pathlib import Path

from muster.backends.base import Run, Supplies
from muster.backends.kept import KeptJob
from muster.backends.kubernetes.client import KubernetesRefusedError
from muster.backends.kubernetes.manifest import Identity, Manner, prepared_for
from muster.backends.kubernetes.pod_news import noted
from muster.backends.kubernetes.pods import Key
from muster.backends.notes import Note
from muster.launch.attempt import in_rank_order
from muster.model.cluster import Node
from muster.model.event import Event, JobStarted
from muster.model.job import Job, JobState
from muster.model.placement import Allocation, DeviceShare
from muster.model.value import Instant, NodeId, UserName, replace

MUSTER = UserName("muster")
"""On whose behalf is what nobody else asked for."""


def note_of(allocation: Allocation, usual: str) -> Note | None:
    """What can be known of an attempt that somebody else began; None: it was never begun."""
    if allocation.started_at is None:
        return None
    return Note(
        job=allocation.job,
        attempt=allocation.attempt,
        user=MUSTER,
        nodes=tuple(each.node for each in allocation.placements),
        began_at=allocation.placed_at,
        started_at=allocation.started_at,
        handle=allocation.handle or usual,
    )


def note_of_run(run: Run, manner: Manner, mark: Key, now: Instant) -> Note:
    """What is noted of an attempt before anything is made for it."""
    job, placements, adopts = run.job, run.allocation.placements, run.launch.adopts
    checkpoint = run.launch.checkpoint if adopts else prepared_for(run, manner, mark).checkpoint
    if checkpoint is not None and not adopts:
        path = Path(run.launch.workdir or "/", checkpoint.path)
        checkpoint = replace(checkpoint, path=str(path))
    return Note(
        job=job.id,
        attempt=run.allocation.attempt,
        user=job.spec.user,
        nodes=tuple(each.node for each in placements),
        began_at=now,
        limit=job.spec.time_limit,
        grace=run.grace,
        warn=run.launch.warn,
        checkpoint=checkpoint,
        parts=tuple(each.uid for each in adopts),
        names=tuple(each.name for each in adopts),
        pods=noted(run.launch),
        leader=None if run.launch.gang is None else run.launch.gang.leader,
    )


def run_again(kept: KeptJob, nodes: Mapping[NodeId, Node], supplies: Supplies) -> Run:
    """An attempt that was begun, as it was written down, with what its pods read now."""
    spec = kept.spec
    job = Job(
        id=kept.job,
        spec=spec,
        state=JobState.RUNNING,
        submitted_at=kept.submitted_at,
        attempt=kept.allocation.attempt,
    )
    names = {each.node for each in kept.allocation.placements}
    run = Run(
        job=job,
        allocation=kept.allocation,
        launch=spec.launch,
        nodes={name: nodes[name] for name in sorted(names & nodes.keys())},
        supplies=supplies,
    )
    return in_rank_order(run)


def told_again(note: Note) -> Iterable[Event]:
    """All that is known of an attempt that is over."""
    if note.ended is None:
        return
    if note.started_at is not None:
        yield JobStarted(at=note.started_at, job=note.job, attempt=note.attempt, handle=note.handle)
    if note.saved is not None:
        yield note.saved
    yield note.ended


def shares_of(allocation: Allocation) -> tuple[DeviceShare, ...]:
    return tuple(share for each in allocation.placements for share in each.devices)


def identity_of(user: UserName, manner: Manner) -> Identity | None:
    """Who the user is by number, where this machine knows it."""
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        if not manner.mounts:
            return None
        text = f"user {user} is not known here, so that they may not use the cluster's folders"
        raise KubernetesRefusedError(403, text) from None
    groups = sorted(os.getgrouplist(user, found.pw_gid))
    return Identity(uid=found.pw_uid, gid=found.pw_gid, groups=tuple(groups))
