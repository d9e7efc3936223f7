"""From pods of Muster's own Kubernetes API to pods of another cluster. Pure.

A pod there for each pod here, with the same containers, volumes and probes. What ConfigMaps and
Secrets hold of it is in a Secret of the attempt, since those themselves are not there.
"""

from collections.abc import Iterator
from typing import Any

from muster.backends.base import Run
from muster.backends.kubernetes import pod_values
from muster.backends.kubernetes.containers import Around, Room, containers
from muster.backends.kubernetes.manifest import (
    Identity,
    Manner,
    Part,
    address_of,
    frame,
    holding,
    meeting,
    name_of,
    namespace_of,
    prepared_for,
    secret_of,
    shared_mounts,
    shared_volumes,
)
from muster.backends.kubernetes.pod_values import Readable
from muster.backends.kubernetes.pods import OF_USERS, PART, Key
from muster.launch.attempt import memory_limit_of
from muster.launch.pods.variables import NodeFacts
from muster.lifecycle.pod_abilities import taken_by_pods
from muster.model.cluster import Ability
from muster.model.pod import PodLaunch, Restart

Json = dict[str, Any]

POD = "muster.io/pod"
"""Which pod of Muster's API it is, as NAMESPACE/NAME."""

NOT_HERE = frozenset(
    {
        Ability.HOST_PATHS,
        Ability.TOKENS,
        Ability.STOP_SIGNALS,
        Ability.CHECKPOINT_PROBES,
    }
)
"""What pods may have, and have not on a cluster that is not Muster's own machine."""

_RESTARTS = {
    Restart.ALWAYS: "Always",
    Restart.ON_FAILURE: "OnFailure",
    Restart.NEVER: "Never",
}
_GIVEN = ("MUSTER_", "MASTER_")
_HERE = "127.0.0.1"


class NotThereError(Exception):
    """The user: a pod that waited before Muster knew what is to be had there, and wants more."""

    def __init__(self, beyond: frozenset[Ability]) -> None:
        super().__init__(
            f"the cluster does not have all that the pod asks for ({', '.join(sorted(beyond))}); "
            "create it again, and it is placed where that is to be had"
        )


def pods(run: Run, manner: Manner, key: Key, whose: Identity | None) -> tuple[Json, ...]:
    """A pod for each task, in the order of the ranks; MissingError where a source is missing."""
    if beyond := taken_by_pods(run.launch) & NOT_HERE:
        raise NotThereError(beyond)
    return tuple(
        _pod(run, readable, whose, manner, key) for readable in _all_readable(run, manner, key)
    )


def secret(run: Run, manner: Manner, key: Key) -> Json:
    """What the pods read of ConfigMaps and Secrets. It changes when those do."""
    held: dict[str, bytes] = {}
    for each in _all_readable(run, manner, key):
        held |= pod_values.kept(each)
    return {**secret_of(run, manner, key), "data": holding(held)}


def _all_readable(run: Run, manner: Manner, key: Key) -> Iterator[Readable]:
    prepared, launch = prepared_for(run, manner, key), run.launch
    mates = {
        pod.hostname: address_of(run, manner, key, rank) for rank, pod in enumerate(launch.pods)
    }
    for rank, pod in enumerate(launch.pods):
        node = run.nodes.get(prepared.tasks[rank].node)
        given = {**prepared.env, **meeting(prepared), **prepared.tasks[rank].env}
        yield Readable(
            rank=rank,
            pod=pod,
            node=NodeFacts(
                name=prepared.tasks[rank].node,
                ip="",
                cpu_milli=0 if node is None else node.cpu_milli,
                memory_mib=0 if node is None else node.memory_mib,
            ),
            secret=name_of(key),
            given={name: text for name, text in given.items() if name.startswith(_GIVEN)},
            mates=mates if launch.gang is not None else {},
            sources=run.supplies,
        )


def _pod(run: Run, readable: Readable, whose: Identity | None, manner: Manner, key: Key) -> Json:
    pod, placement = readable.pod, run.allocation.placements[readable.rank]
    chooses = whose is None or whose.uid == 0
    node = run.nodes.get(placement.node)
    room = Room(placement=placement, limit_mib=memory_limit_of(run, placement), node=node)
    around = Around(part=readable, room=room, mounts=tuple(shared_mounts(manner)), chooses=chooses)
    made = frame(run, Part(rank=readable.rank, placement=placement, whose=whose), manner, key)
    made["metadata"]["annotations"] |= {PART: OF_USERS, POD: f"{pod.namespace}/{pod.name}"}
    spec: Json = made["spec"]
    spec |= {
        "restartPolicy": _RESTARTS[pod.restart],
        "terminationGracePeriodSeconds": max(1, pod.grace_s),
        **containers(around),
        "volumes": [*pod_values.volumes(readable), *shared_volumes(manner)],
        "hostAliases": _aliases(pod, readable),
        "securityContext": _security(pod, spec.get("securityContext") or {}, whose),
    }
    if readable.mates:
        # By their plain names, where the cluster's domain is the usual one.
        domain = f"{name_of(key)}.{namespace_of(run, manner)}.svc.cluster.local"
        spec["dnsConfig"] = {"searches": [domain]}
    return made


def _aliases(pod: PodLaunch, readable: Readable) -> list[Json]:
    """Names of the user's own; those of its gang are found by the Service."""
    return [
        {"ip": address, "hostnames": [name]}
        for name, address in pod.aliases
        if not (name in readable.mates and address == _HERE)
    ]


def _security(pod: PodLaunch, usual: Json, whose: Identity | None) -> Json:
    """Files of volumes are for the user too, whose processes would not be let in otherwise."""
    if whose is not None and whose.uid:
        return {**usual, "fsGroup": whose.gid}
    own: Json = {}
    if pod.groups:
        own["supplementalGroups"] = list(pod.groups)
    if pod.volume_group is not None:
        own["fsGroup"] = pod.volume_group
    return {**usual, **own}
