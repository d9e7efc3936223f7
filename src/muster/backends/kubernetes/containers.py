"""The containers of a user's pod, as Kubernetes writes them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.backends.kubernetes.manifest import NO_GPUS, devices_of
from muster.backends.kubernetes.pod_values import Readable, text_of, variables
from muster.launch.images import reference
from muster.lifecycle.pod_abilities import own_volumes
from muster.model.cluster import Node
from muster.model.placement import Placement
from muster.model.pod import (
    CheckpointSeen,
    Container,
    Exec,
    GrpcHealth,
    HttpGet,
    Mount,
    PodLaunch,
    Probe,
    Pull,
    Sleep,
    Stage,
    TcpConnect,
)
from muster.model.resources import Resources
from muster.model.value import Value

Json = dict[str, Any]

_PULLS = {Pull.ALWAYS: "Always", Pull.IF_MISSING: "IfNotPresent", Pull.NEVER: "Never"}


class Room(Value):
    """What one task has of its node. limit_mib: of its memory; 0 where there is none."""

    placement: Placement
    limit_mib: int
    node: Node | None = None


class Around(Value):
    """What each container of a pod is given beside its own. mounts: what all of them find.

    chooses: may its user say as whom it runs?
    """

    part: Readable
    room: Room
    mounts: tuple[Json, ...]
    chooses: bool


def containers(around: Around) -> Json:
    """Those that run first, and the others."""
    pod, asks = around.part.pod, shares(around.part.pod, around.room.placement)
    made = [(each, _container(each, around, asks[each.name])) for each in pod.containers]
    found: Json = {"containers": [own for each, own in made if each.stage is Stage.MAIN]}
    inits = [own for each, own in made if each.stage is not Stage.MAIN]
    return {**found, "initContainers": inits} if inits else found


def shares(pod: PodLaunch, placement: Placement) -> dict[str, Resources]:
    """What each container has of the task's room: all together have what was placed.

    Each has what it asks for, and the first main one the rest.
    """
    gpu_milli = 1_000 * len(placement.devices)
    amount = placement.amount
    whole = Resources(cpu_milli=amount.cpu_milli, memory_mib=amount.memory_mib, gpu_milli=gpu_milli)
    first = next(each for each in pod.containers if each.stage is Stage.MAIN)
    found, rest = dict[str, Resources](), whole
    for each in pod.containers:
        if each.stage is Stage.INIT:
            found[each.name] = _least(each.asks, whole)
        elif each is not first:
            found[each.name] = _least(each.asks, rest)
            rest -= found[each.name]
    return {**found, first.name: rest}


def _least(one: Resources, other: Resources) -> Resources:
    return Resources(
        cpu_milli=min(one.cpu_milli, other.cpu_milli),
        memory_mib=min(one.memory_mib, other.memory_mib),
        gpu_milli=min(one.gpu_milli, other.gpu_milli),
    )


def _container(own: Container, around: Around, has: Resources) -> Json:
    env = variables(around.part, own)
    if not has.gpu_milli and all(each["name"] != NO_GPUS["name"] for each in env):
        env = [NO_GPUS, *env]
    found: Json = {
        "name": own.name,
        "image": reference(own.image),
        "imagePullPolicy": _PULLS[own.pull],
        "command": _words(around.part, own.entrypoint or ()),
        "args": _words(around.part, own.args),
        "workingDir": own.workdir,
        "env": env,
        "resources": _resources(own, around.room, has),
        "volumeMounts": list(_mounts(own, around)),
        "securityContext": _security(own, chooses=around.chooses),
        "lifecycle": _lifecycle(own),
        "startupProbe": _probe(own.startup),
        "livenessProbe": _probe(own.liveness),
        "readinessProbe": _probe(own.readiness),
        "terminationMessagePath": own.message_path,
        "terminationMessagePolicy": "FallbackToLogsOnError" if own.message_of_log else "File",
        "stdin": own.stdin or None,
        "stdinOnce": own.stdin_once or None,
        "tty": own.tty or None,
        "restartPolicy": "Always" if own.stage is Stage.SIDECAR else None,
    }
    return {name: value for name, value in found.items() if value not in (None, [], {})}


def _words(part: Readable, words: Sequence[str]) -> list[str]:
    return [text_of(part, each) for each in words]


def _resources(own: Container, room: Room, has: Resources) -> Json:
    """Requests are always said: where there are none, limits would be taken for them."""
    cpu_milli = max(own.cpu_milli, has.cpu_milli) if own.cpu_milli else 0
    memory_mib = max(own.memory_mib or room.limit_mib, has.memory_mib)
    requests = {"cpu": f"{has.cpu_milli}m", "memory": f"{has.memory_mib}Mi"}
    limits: dict[str, str] = {}
    if cpu_milli:
        limits["cpu"] = f"{cpu_milli}m"
    if memory_mib and (own.memory_mib or room.limit_mib):
        limits["memory"] = f"{memory_mib}Mi"
    for name in devices_of(room.placement, room.node) if has.gpu_milli else ():
        requests[name] = limits[name] = str(has.gpu_milli // 1_000)
    return {"requests": requests, "limits": limits}


def _mounts(own: Container, around: Around) -> Iterator[Json]:
    """Its own, and of those that all find what is not in their place."""
    volumes = {each.name for each in own_volumes(around.part.pod)}
    wanted = [each for each in own.mounts if each.volume in volumes]
    yield from map(_mount, wanted)
    taken = {each.path.rstrip("/") for each in wanted}
    yield from (each for each in around.mounts if each["mountPath"].rstrip("/") not in taken)


def _mount(mount: Mount) -> Json:
    found: Json = {"name": mount.volume, "mountPath": mount.path}
    if mount.read_only:
        found["readOnly"] = True
    if mount.part:
        found["subPathExpr" if mount.expands else "subPath"] = mount.part
    return found


def _security(own: Container, *, chooses: bool) -> Json:
    found: Json = {"allowPrivilegeEscalation": False}
    if own.read_only:
        found["readOnlyRootFilesystem"] = True
    if own.not_root:
        found["runAsNonRoot"] = True
    for name, number in (("runAsUser", own.user), ("runAsGroup", own.group)):
        if chooses and number is not None:
            found[name] = number
    return found


def _lifecycle(own: Container) -> Json:
    hooks = {"postStart": own.after_start, "preStop": own.before_stop}
    return {name: _action(hook) for name, hook in hooks.items() if hook is not None}


def _probe(probe: Probe | None) -> Json | None:
    if probe is None:
        return None
    found: Json = {
        **_action(probe.action),
        "initialDelaySeconds": probe.delay_s,
        "periodSeconds": probe.period_s,
        "timeoutSeconds": probe.timeout_s,
        "successThreshold": probe.successes,
        "failureThreshold": probe.failures,
    }
    return (
        found
        if probe.grace_s is None
        else {**found, "terminationGracePeriodSeconds": probe.grace_s}
    )


def _action(
    action: Exec | HttpGet | TcpConnect | GrpcHealth | Sleep | CheckpointSeen,
) -> Mapping[str, Json]:
    match action:
        case Exec(argv=argv):
            return {"exec": {"command": list(argv)}}
        case HttpGet():
            return {"httpGet": _http(action)}
        case TcpConnect(port=port, host=host):
            return {"tcpSocket": {"port": port, **({"host": host} if host else {})}}
        case GrpcHealth(port=port, service=service):
            return {"grpc": {"port": port, "service": service}}
        case Sleep(seconds=seconds):
            return {"sleep": {"seconds": seconds}}
        case CheckpointSeen():
            raise NotImplementedError("what looks for checkpoints is no ability of this engine")


def _http(action: HttpGet) -> Json:
    found: Json = {
        "port": action.port,
        "path": action.path,
        "scheme": "HTTPS" if action.secure else "HTTP",
        "httpHeaders": [{"name": name, "value": value} for name, value in action.headers],
    }
    return {**found, "host": action.host} if action.host else found
