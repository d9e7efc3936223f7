"""What a controller and its backends make of a plan, without delay and without failure."""

from muster.model.cluster import Node
from muster.model.gpu import Device
from muster.model.job import JobState
from muster.model.levels import ran_by
from muster.model.placement import Allocation, Claim
from muster.model.plan import (
    Clear,
    Measure,
    Move,
    Plan,
    Preempt,
    Repartition,
    Resize,
    Resume,
    Start,
)
from muster.model.queue import PreemptMode
from muster.model.value import JobId, replace
from stories.scene import Scene

Stopping = dict[JobId, PreemptMode]
"""Victims on their way out, and what becomes of them then."""


def carry_out(scene: Scene, plan: Plan) -> Stopping:
    """Do all that the plan says; victims are ordered to stop, and still hold what they have."""
    for measure in plan.measures:
        _take(scene, measure)
    for decision in plan.moves:
        _follow(scene, decision)
    return {one.job: one.mode for one in plan.measures if isinstance(one, Preempt)}


def stop(scene: Scene, job: JobId, mode: PreemptMode) -> None:
    """The victim has stopped: it waits again, stands still where it is, or is over."""
    match mode:
        case PreemptMode.REQUEUE | PreemptMode.CHECKPOINT:
            scene.requeue(job)
        case PreemptMode.SUSPEND:
            scene.jobs[job] = replace(scene.jobs[job], state=JobState.SUSPENDED)
        case PreemptMode.CANCEL:
            scene.end(job, JobState.CANCELLED)


def _take(scene: Scene, measure: Measure) -> None:
    match measure:
        case Repartition():
            _repartition(scene, measure)
        case Resize():
            _resize(scene, measure)
        case Preempt(job=job):
            one = scene.jobs[job]
            ran = ran_by(one, scene.allocations.get(job), scene.now)
            scene.jobs[job] = replace(one, state=JobState.STOPPING, ran=ran)


def _follow(scene: Scene, decision: Move) -> None:
    match decision:
        case Start():
            _start(scene, decision)
        case Resume(job=job):
            scene.jobs[job] = replace(scene.jobs[job], state=JobState.RUNNING)
        case Clear():
            _claim(scene, decision)


def _start(scene: Scene, start: Start) -> None:
    allocation = Allocation(
        job=start.job,
        attempt=start.attempt,
        cluster=start.cluster,
        placements=start.placements,
        placed_at=scene.now,
        started_at=scene.now,
    )
    scene.begin(start.job, allocation)


def _claim(scene: Scene, clear: Clear) -> None:
    claim = Claim(
        cluster=clear.cluster,
        placements=clear.placements,
        victims=clear.victims,
        until=clear.until,
    )
    scene.jobs[clear.job] = replace(scene.jobs[clear.job], claim=claim)


def _resize(scene: Scene, resize: Resize) -> None:
    old = scene.allocations[resize.job]
    scene.allocations[resize.job] = replace(old, placements=old.placements + resize.placements)


def _repartition(scene: Scene, cut: Repartition) -> None:
    def recut(device: Device) -> Device:
        return replace(device, mig=cut.instances) if device.id == cut.device else device

    node: Node = scene.nodes[cut.node]
    devices = tuple(recut(device) for device in node.devices)
    scene.nodes[cut.node] = replace(node, devices=devices)
