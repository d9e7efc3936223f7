"""Facts that happened, in the past tense."""

from collections.abc import Mapping

from muster.model.cluster import Cluster, Node, NodeState, Taint
from muster.model.gpu import DeviceState, MigInstance
from muster.model.history import Used
from muster.model.job import EndReason, JobSpec
from muster.model.placement import Claim, Placement
from muster.model.pod import PodStatus
from muster.model.queue import PreemptMode
from muster.model.site import Site
from muster.model.steps import Step
from muster.model.value import (
    ClusterName,
    DeviceId,
    Duration,
    Instant,
    JobId,
    NodeId,
    UserName,
    Value,
)


class JobSubmitted(Value, tag="job_submitted"):
    """A request was accepted; `held` when it must be released first.

    door: through which it came; empty where nobody said so.
    """

    at: Instant
    job: JobId
    spec: JobSpec
    held: bool = False
    door: str = ""


class JobHeld(Value, tag="job_held"):
    """A user holds a waiting job. as_admin: with the rights of an administrator."""

    at: Instant
    job: JobId
    by: UserName
    as_admin: bool = False


class JobReleased(Value, tag="job_released"):
    """A held job may start again."""

    at: Instant
    job: JobId
    by: UserName


class JobClaimed(Value, tag="job_claimed"):
    """Room is being cleared for the job."""

    at: Instant
    job: JobId
    claim: Claim


class ClaimDropped(Value, tag="claim_dropped"):
    """The room that was held for the job is given up."""

    at: Instant
    job: JobId


class JobPlaced(Value, tag="job_placed"):
    """An attempt got its placements; its backend is about to start it."""

    at: Instant
    job: JobId
    attempt: int
    cluster: ClusterName
    placements: tuple[Placement, ...]


class JobStarted(Value, tag="job_started"):
    """The backend reports that the attempt runs."""

    at: Instant
    job: JobId
    attempt: int
    handle: str | None = None


class JobCheckpointed(Value, tag="job_checkpointed"):
    """A newer checkpoint was really written, there."""

    at: Instant
    job: JobId
    attempt: int
    path: str | None = None


class JobResized(Value, tag="job_resized"):
    """A running elastic job was given more placements."""

    at: Instant
    job: JobId
    attempt: int
    placements: tuple[Placement, ...]


class JobSuspended(Value, tag="job_suspended"):
    """The attempt was stopped in place and keeps its memory."""

    at: Instant
    job: JobId
    attempt: int


class JobResumed(Value, tag="job_resumed"):
    """The suspended attempt goes on."""

    at: Instant
    job: JobId
    attempt: int


class JobPreempted(Value, tag="job_preempted"):
    """The attempt was preempted to make room for another job."""

    at: Instant
    job: JobId
    attempt: int
    by: JobId
    mode: PreemptMode
    grace: Duration


class CancelAsked(Value, tag="cancel_asked"):
    """A user cancelled the job."""

    at: Instant
    job: JobId
    by: UserName


class RequeueAsked(Value, tag="requeue_asked"):
    """A user requeued the job: this attempt ends and the job waits for the next."""

    at: Instant
    job: JobId
    by: UserName


class SignalAsked(Value, tag="signal_asked"):
    """A user sent a signal to the job's processes, or to those of one step or task."""

    at: Instant
    job: JobId
    by: UserName
    signal: int
    step: int | None = None
    task: int | None = None


class DeadlineMissForeseen(Value, tag="deadline_miss_foreseen", gc=False):
    """A waiting job is expected to start too late for its deadline: at `starts_at`."""

    at: Instant
    job: JobId
    deadline: Instant
    starts_at: Instant


class JobUpdated(Value, tag="job_updated"):
    """A user changed what the job requests."""

    at: Instant
    job: JobId
    spec: JobSpec
    by: UserName


class JobEnded(Value, tag="job_ended"):
    """The attempt is over, for this reason, after using so much."""

    at: Instant
    job: JobId
    attempt: int
    why: EndReason
    used: Used | None = None


class JobRequeued(Value, tag="job_requeued"):
    """The job waits again, its attempt being over."""

    at: Instant
    job: JobId
    attempt: int


class StepBegan(Value, tag="step_began"):
    """A step of a running attempt began."""

    at: Instant
    step: Step


class StepEnded(Value, tag="step_ended"):
    """A step is over; `step` is all that is known of it now."""

    at: Instant
    step: Step


class PodSeen(Value, tag="pod_seen"):
    """The containers of a running attempt, as they are now; of a gang, those of one task."""

    at: Instant
    job: JobId
    attempt: int
    status: PodStatus
    task: int = 0


class NodeSeen(Value, tag="node_seen"):
    """A node reported itself."""

    at: Instant
    node: Node


class DeviceCut(Value, tag="device_cut"):
    """A device was to be cut into these MIG instances (None: MIG mode off)."""

    at: Instant
    node: NodeId
    device: DeviceId
    instances: tuple[MigInstance, ...] | None


class DeviceErred(Value, tag="device_erred"):
    """The driver reported this error (Xid) of a device."""

    at: Instant
    node: NodeId
    device: DeviceId
    xid: int


class DeviceJudged(Value, tag="device_judged"):
    """A device is trusted more or less than before, for this reason."""

    at: Instant
    node: NodeId
    device: DeviceId
    state: DeviceState
    why: str = ""


class JobStruck(Value, tag="job_struck"):
    """The driver reported this error (Xid) of a device that the attempt holds."""

    at: Instant
    job: JobId
    attempt: int
    node: NodeId
    device: DeviceId
    xid: int


class NodeGone(Value, tag="node_gone"):
    """A node does not exist any more."""

    at: Instant
    node: NodeId


class NodeChanged(Value, tag="node_changed"):
    """A user set the state of a node, with a reason."""

    at: Instant
    node: NodeId
    state: NodeState
    by: UserName
    reason: str = ""


class NodeMarked(Value, tag="node_marked"):
    """A user gave a node these labels and taints beside its own, in place of all given before."""

    at: Instant
    node: NodeId
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    by: UserName


class SiteChanged(Value, tag="site_changed"):
    """The administrators' rules were changed; `site` is all of them."""

    at: Instant
    site: Site
    by: UserName


class ClusterSeen(Value, tag="cluster_seen"):
    """A backend says what its cluster is and can do, or that it does not answer."""

    at: Instant
    cluster: Cluster


JobEvent = (
    JobHeld
    | JobReleased
    | JobClaimed
    | ClaimDropped
    | JobPlaced
    | JobStarted
    | JobCheckpointed
    | JobResized
    | JobSuspended
    | JobResumed
    | JobPreempted
    | CancelAsked
    | RequeueAsked
    | SignalAsked
    | DeadlineMissForeseen
    | JobUpdated
    | JobEnded
    | JobRequeued
)
"""What can happen to a job that exists."""

StepEvent = StepBegan | StepEnded
"""What can happen within a running attempt; the job stays as it is."""

NodeEvent = NodeSeen | DeviceCut | NodeGone | NodeChanged | NodeMarked
"""What can happen to a machine."""

DeviceEvent = DeviceErred | DeviceJudged | JobStruck
"""What is told of devices, beside what `NodeSeen` says of them: nothing follows from it."""

Event = (
    JobSubmitted
    | JobEvent
    | StepEvent
    | PodSeen
    | NodeEvent
    | DeviceEvent
    | ClusterSeen
    | SiteChanged
)
