"""TFJob: the variable by which the processes of `tf.distribute` find each other."""

import json
import zlib

from muster.doors.kubernetes.controllers.kubeflow.framework import (
    Framework,
    Replica,
    least_of,
    port_of,
    total_of,
)
from muster.doors.kubernetes.foreign.kinds import TF_JOB
from muster.doors.kubernetes.objects.value import JsonObject, part, uid_of

CONTAINER, PORT_NAME = "tensorflow", "tfjob-port"
FIELD = "tfReplicaSpecs"
CHIEFS = ("Chief", "Master")
WORKER, EVALUATOR = "Worker", "Evaluator"
ROLES = (*CHIEFS, "PS", WORKER, EVALUATOR)
_LOWEST, _MANY = 20_000, 12_000
"""Ports of jobs that name none: below those that the kernel gives to connections."""

_ALL_PORTS = 65_536


def environment(job: JsonObject, replica: Replica) -> list[JsonObject]:
    """As the training operator sets it; a job of one replica needs nobody else."""
    if total_of(part(job, "spec", FIELD)) == 1:
        return []
    told = {
        "cluster": _cluster(job),
        "task": {"type": replica.role.lower(), "index": replica.index},
        "environment": "cloud",
    }
    return [{"name": "TF_CONFIG", "value": json.dumps(told, separators=(",", ":"))}]


def _cluster(job: JsonObject) -> dict[str, list[str]]:
    """Who is where. Pods share the machine's ports, so that each replica has one of its own."""
    found: dict[str, list[str]] = {}
    replicas = TENSORFLOW.replicas(job)
    first = _first_port(job, len(replicas))
    for rank, each in enumerate(replicas):
        if each.role != EVALUATOR:
            found.setdefault(each.role.lower(), []).append(f"{each.name_in(job)}:{first + rank}")
    return found


def _first_port(job: JsonObject, count: int) -> int:
    """The one that a template names, if there are enough behind it; else one of few jobs."""
    specs = part(job, "spec", FIELD)
    named = (port_of(part(specs, role), CONTAINER, PORT_NAME) for role in ROLES if role in specs)
    known = next((each for each in named if each is not None), None)
    if known is not None and known + count <= _ALL_PORTS:
        return known
    return _LOWEST + zlib.crc32(uid_of(job).encode()) % _MANY


def leader(job: JsonObject) -> str:
    """The role whose first replica's end is the job's; none where all workers must end well."""
    specs = part(job, "spec", FIELD)
    chief = next((each for each in CHIEFS if each in specs), "")
    if chief:
        return chief
    needs_all = part(job, "spec").get("successPolicy") == "AllWorkers"
    return WORKER if WORKER in specs and not needs_all else ""


def _least(job: JsonObject) -> int:
    return least_of(job, part(job, "spec", FIELD))


TENSORFLOW = Framework(
    kind=TF_JOB,
    field=FIELD,
    roles=ROLES,
    container=CONTAINER,
    port_name=PORT_NAME,
    environment=environment,
    leader=leader,
    least=_least,
    restart="Never",
    counted=frozenset({WORKER}),
    once=frozenset(CHIEFS),
    defaults={"successPolicy": ""},
)
