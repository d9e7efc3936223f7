"""From an attempt that was placed to the objects that begin it. Pure.

A pod for each task, with its node in its annotations; the script and the variables are in a Secret,
because they hold keys and passwords; tasks find each other by the names of a Service.
"""

import base64
import hmac
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from muster.backends.base import Run
from muster.backends.kubernetes.amounts import GPU, GPU_PART, MIG
from muster.backends.kubernetes.nodes import PRODUCT_LABEL, SHARED
from muster.backends.kubernetes.pods import (
    ATTEMPT,
    CONTAINER,
    HOLDS,
    JOB,
    NODE,
    PART,
    RANK,
    SCHEDULER,
    SITE,
    TASKS,
    Key,
)
from muster.launch.attempt import DeviceAccess, memory_limit_of
from muster.launch.images import reference
from muster.launch.prepare import PreparedAttempt, prepare
from muster.model.cluster import Node
from muster.model.gpu import Mig, MpsShare, Slice, TimeShare
from muster.model.job import Toleration
from muster.model.launch import Runs
from muster.model.placement import Placement
from muster.model.queue import of_nearest
from muster.model.value import Duration, QueuePath, Value

Json = dict[str, Any]

_FOLDER = "/muster"
_SEAL_LENGTH = 12
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_LABEL = 63
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OF_THE_HOST = frozenset(
    {"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR"}
)
"""What a script took along from where it was submitted, and what its image knows better."""
_THEIRS = frozenset({"NVIDIA_VISIBLE_DEVICES"})
"""The device plugin says which GPUs a container has."""

NO_GPUS: Json = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
"""Some images ask for every GPU of the node, and some nodes give them."""

_START = """#!/bin/sh
# Muster begins a job with this: it keeps the job's code, and passes signals on to all of it.
# usage: start RANK PROGRAM ARGUMENTS
. {folder}/env
. "{folder}/env-$1"
shift
{umask}cd -- {workdir} 2>/dev/null || {{
    echo "muster: there is no folder {plain_workdir} in this container" >&2
    cd /tmp 2>/dev/null || cd /
}}
"$@" {stdin}&
job=$!
trap 'kill -TERM -1' TERM
for name in HUP INT QUIT USR1 USR2 CONT; do
    trap "kill -$name $job" $name
done
wait $job
code=$?
# A signal ends the wait, and not the job.
while kill -0 $job 2>/dev/null; do
    wait $job
    code=$?
done
exit $code
"""

_HOLD = """#!/bin/sh
# The room of a task whose command is begun elsewhere, until the job is over.
trap 'exit 0' TERM
while :; do
    sleep 3600 &
    wait $!
done
"""


class Identity(Value, gc=False):
    """As whom the processes run: by number, because images know no names."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Mount(Value, gc=False):
    """What every pod finds at this path: a folder of its node, or a claim of a volume."""

    path: str
    claim: str = ""


class Manner(Value):
    """How jobs become pods.

    image: for jobs that name none. namespaces, images: for queues and those below them, in place of
    the usual ones. lost_after: so long a node may be silent before its pods count
    as lost. account: the service account; pods have no token of it.
    """

    namespace: str
    image: str = ""
    namespaces: Mapping[QueuePath, str] = {}
    images: Mapping[QueuePath, str] = {}
    mounts: tuple[Mount, ...] = ()
    pull_secret: str = ""
    account: str = ""
    lost_after: Duration = Duration(300_000)

    def namespace_of(self, queue: QueuePath) -> str:
        """Where the pods of this queue's jobs are."""
        return of_nearest(self.namespaces, queue) or self.namespace

    def image_of(self, queue: QueuePath) -> str:
        """In what this queue's jobs run that name no image."""
        return of_nearest(self.images, queue) or self.image


class NoImageError(Exception):
    """The user or the administrator: nothing says which image the job runs in."""

    def __init__(self) -> None:
        super().__init__(
            "the job names no image, and the cluster has none for such jobs; "
            "name one (--image), or ask your administrator for `muster cluster add --image`"
        )


class Part(Value):
    """One task of an attempt. whose: as whom it runs; None for what its image says."""

    rank: int
    placement: Placement
    whose: Identity | None


def name_of(key: Key) -> str:
    """What the objects of an attempt are called; pods have their rank behind it.

    Who does not know the secret of the installation cannot tell it before they are there: nobody
    can put something of theirs in their place.
    """
    whole = hmac.new(key.seal.encode(), f"{key.job}.{key.attempt}".encode(), "sha256")
    return f"muster-{key.site}-{key.job}-{key.attempt}-{whole.hexdigest()[:_SEAL_LENGTH]}"


def prepared_for(run: Run, manner: Manner, key: Key) -> PreparedAttempt:
    """What the attempt finds around it. The device plugin says which GPUs; ours are counted."""
    placements = run.allocation.placements
    access = [
        DeviceAccess(devices=tuple(str(number) for number in range(len(each.devices))))
        for each in placements
    ]
    master = "127.0.0.1" if len(placements) == 1 else address_of(run, manner, key, 0)
    return prepare(run, access, master=master)


def meeting(prepared: PreparedAttempt) -> Mapping[str, str]:
    """Where tasks meet. Each pod has a network of its own, in which every port is free."""
    return {"MASTER_PORT": str(prepared.master_port)}


def address_of(run: Run, manner: Manner, key: Key, rank: int) -> str:
    """Where the others find this task, by the attempt's Service."""
    return f"{hostname_of(run, key, rank)}.{name_of(key)}.{namespace_of(run, manner)}.svc"


def hostname_of(run: Run, key: Key, rank: int) -> str:
    """A pod of a user's keeps its own, unless that is no name there or another one's too."""
    names = [each.hostname for each in run.launch.pods]
    own = names[rank] if names else ""
    if _LABEL.fullmatch(own) and names.count(own) == 1:
        return own
    return f"{name_of(key)}-{rank}"[-_LONGEST_LABEL:].lstrip("-")


def secret(run: Run, manner: Manner, key: Key) -> Json:
    """The script, and the variables of all tasks and of each."""
    prepared = prepared_for(run, manner, key)
    launch = run.launch
    files = {
        "start": _start(run),
        "hold": _HOLD,
        "env": _exports({**prepared.env, **meeting(prepared)}),
        **{f"env-{rank}": _exports(task.env) for rank, task in enumerate(prepared.tasks)},
    }
    if launch.script is not None:
        files["script"] = launch.script
    held = holding({name: text.encode() for name, text in files.items()})
    return {**secret_of(run, manner, key), "data": held, "immutable": True}


def secret_of(run: Run, manner: Manner, key: Key) -> Json:
    """The Secret of an attempt, with nothing in it."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": named(run, key, manner)}


def holding(kept: Mapping[str, bytes]) -> dict[str, str]:
    """As Secrets write what they hold."""
    return {name: base64.b64encode(content).decode() for name, content in kept.items()}


def service(run: Run, manner: Manner, key: Key) -> Json | None:
    """What gives the tasks names; one alone needs none."""
    if len(run.allocation.placements) == 1:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": named(run, key, manner),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": _labels(key),
            "ports": [{"name": "meet", "port": prepared_for(run, manner, key).master_port}],
        },
    }


def pods(run: Run, manner: Manner, key: Key, whose: Identity | None) -> tuple[Json, ...]:
    """A pod for each task, in the order of the ranks."""
    image = run.launch.image or manner.image_of(run.job.spec.queue)
    if not image:
        raise NoImageError
    parts = (
        Part(rank=rank, placement=placement, whose=whose)
        for rank, placement in enumerate(run.allocation.placements)
    )
    return tuple(_pod(run, part, image, manner, key) for part in parts)


def frame(run: Run, part: Part, manner: Manner, key: Key) -> Json:
    """The pod of a task without its containers: what holds whatever runs in it."""
    name = name_of(key)
    spec: Json = {
        "schedulerName": SCHEDULER,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": hostname_of(run, key, part.rank),
        "subdomain": name,
        "tolerations": list(_tolerations(run, part.placement, manner)),
    }
    if part.whose is not None:
        spec["securityContext"] = {
            "runAsUser": part.whose.uid,
            "runAsGroup": part.whose.gid,
            "supplementalGroups": list(part.whose.groups),
        }
    if manner.account:
        spec["serviceAccountName"] = manner.account
    if manner.pull_secret:
        spec["imagePullSecrets"] = [{"name": manner.pull_secret}]
    metadata = named(run, key, manner)
    metadata["name"] = f"{name}-{part.rank}"
    metadata["labels"] = {**_labels(key), RANK: str(part.rank)}
    metadata["annotations"] = {
        NODE: part.placement.node,
        TASKS: str(len(run.allocation.placements)),
        "muster.io/name": run.job.spec.name,
        "muster.io/user": run.job.spec.user,
        "muster.io/queue": run.job.spec.queue,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pod(run: Run, part: Part, image: str, manner: Manner, key: Key) -> Json:
    pod = frame(run, part, manner, key)
    script = {"name": "muster", "secret": {"secretName": name_of(key), "defaultMode": 0o555}}
    pod["spec"] |= {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": max(1, -(-run.grace // 1_000)),
        "containers": [_container(run, part, image, manner)],
        "volumes": [script, *shared_volumes(manner)],
    }
    if _only_holds(run, part.rank):
        pod["metadata"]["annotations"][PART] = HOLDS
    return pod


def shared_volumes(manner: Manner) -> list[Json]:
    """What every pod can mount."""
    return [_volume(number, each) for number, each in enumerate(manner.mounts)]


def shared_mounts(manner: Manner) -> list[Json]:
    """Where every container finds it."""
    return [
        {"name": _mount_name(number), "mountPath": each.path}
        for number, each in enumerate(manner.mounts)
    ]


def _container(run: Run, part: Part, image: str, manner: Manner) -> Json:
    script = {"name": "muster", "mountPath": _FOLDER, "readOnly": True}
    found: Json = {
        "name": CONTAINER,
        "image": reference(image),
        "command": list(_command(run, part.rank)),
        "resources": _resources(run, part.placement),
        "volumeMounts": [script, *shared_mounts(manner)],
        "securityContext": {"allowPrivilegeEscalation": False},
        "terminationMessagePolicy": "File",
    }
    if not part.placement.devices:
        found["env"] = [NO_GPUS]
    return found


def _command(run: Run, rank: int) -> tuple[str, ...]:
    launch = run.launch
    if _only_holds(run, rank):
        return ("/bin/sh", f"{_FOLDER}/hold")
    start = ("/bin/sh", f"{_FOLDER}/start", str(rank))
    if launch.script is None:
        return (*start, *launch.argv)
    return (*start, *_interpreter(launch.script), f"{_FOLDER}/script", *launch.argv)


def _interpreter(script: str) -> tuple[str, ...]:
    """As its first line says: the file is not ours to make executable for everybody."""
    first = script.partition("\n")[0]
    words = tuple(first.removeprefix("#!").split()) if first.startswith("#!") else ()
    return words or ("/bin/sh",)


def _only_holds(run: Run, rank: int) -> bool:
    runs = run.launch.runs
    return runs is Runs.STEPS_ONLY or (runs is Runs.FIRST_TASK and rank > 0)


def _start(run: Run) -> str:
    launch = run.launch
    workdir = launch.workdir or "/tmp"  # noqa: S108 -- of the container, which has it to itself
    return _START.format(
        folder=_FOLDER,
        umask="" if launch.umask is None else f"umask {launch.umask:04o}\n",
        workdir=shlex.quote(workdir),
        plain_workdir=re.sub(r"[^\w./-]", "?", workdir),
        stdin="" if launch.stdin is None else f"<{shlex.quote(launch.stdin)} ",
    )


def _exports(env: Mapping[str, str]) -> str:
    lines = [
        f"export {name}={shlex.quote(value)}"
        for name, value in sorted(env.items())
        if _NAME.fullmatch(name) and name not in _OF_THE_HOST and name not in _THEIRS
    ]
    return "\n".join((*lines, ""))


def _resources(run: Run, placement: Placement) -> Json:
    amount = placement.amount
    requests, limits = {}, {}
    if amount.cpu_milli:
        requests["cpu"] = f"{amount.cpu_milli}m"
    memory_mib = memory_limit_of(run, placement)
    if memory_mib:
        requests["memory"] = limits["memory"] = f"{memory_mib}Mi"
    for name, count in devices_of(placement, run.nodes.get(placement.node)).items():
        requests[name] = limits[name] = str(count)
    return {"requests": requests, "limits": limits}


def devices_of(placement: Placement, node: Node | None) -> dict[str, int]:
    """How many of what a device plugin gives."""
    found: dict[str, int] = {}
    for share in placement.devices:
        name = _name_of(share.slice, node)
        found[name] = found.get(name, 0) + 1
    return found


def _name_of(part: Slice | None, node: Node | None) -> str:
    """Parts of GPUs have a name of their own, unless the product of the node's GPUs says so."""
    match part:
        case None:
            return GPU
        case Mig(profile=profile):
            return f"{MIG}{profile}"
        case TimeShare() | MpsShare():
            product = "" if node is None else node.labels.get(PRODUCT_LABEL, "")
            return GPU if product.endswith(SHARED) else GPU_PART


def _tolerations(run: Run, placement: Placement, manner: Manner) -> Iterator[Json]:
    yield {"key": GPU, "operator": "Exists"}
    for state in ("not-ready", "unreachable"):
        yield {
            "key": f"node.kubernetes.io/{state}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": manner.lost_after // 1_000,
        }
    for group in run.job.spec.groups:
        if group.name == placement.group:
            yield from map(_toleration, group.where.tolerate)


def _toleration(each: Toleration) -> Json:
    if each.key is None:
        return {"operator": "Exists"}
    if each.value is None:
        return {"key": each.key, "operator": "Exists"}
    return {"key": each.key, "operator": "Equal", "value": each.value}


def _volume(number: int, mount: Mount) -> Json:
    name = _mount_name(number)
    if mount.claim:
        return {"name": name, "persistentVolumeClaim": {"claimName": mount.claim}}
    return {"name": name, "hostPath": {"path": mount.path, "type": "Directory"}}


def _mount_name(number: int) -> str:
    return f"muster-mount-{number}"


def named(run: Run, key: Key, manner: Manner) -> Json:
    """What every object of an attempt says of itself."""
    return {"name": name_of(key), "namespace": namespace_of(run, manner), "labels": _labels(key)}


def namespace_of(run: Run, manner: Manner) -> str:
    """Where the objects of the attempt are."""
    return manner.namespace_of(run.job.spec.queue)


def _labels(key: Key) -> dict[str, str]:
    return {SITE: key.site, JOB: str(key.job), ATTEMPT: str(key.attempt)}


def binding(pod: Mapping[str, Any], node: str, key: Key | None = None) -> Json:
    """Puts this very pod there: one of the same name that came after it has another uid.

    key: its job, told in an annotation of the pod.
    """
    metadata = pod["metadata"]
    named = {each: metadata[each] for each in ("name", "namespace", "uid")}
    told = {} if key is None else {"annotations": {JOB: str(key.job)}}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {**named, **told},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
