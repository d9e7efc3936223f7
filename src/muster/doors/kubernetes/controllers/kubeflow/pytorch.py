"""PyTorchJob: the variables by which the processes of `torch.distributed` find each other."""

from muster.doors.kubernetes.controllers.kubeflow.framework import (
    Framework,
    Replica,
    count_of,
    policy_of,
    port_of,
    total_of,
)
from muster.doors.kubernetes.foreign.kinds import PYTORCH_JOB
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part

CONTAINER, PORT_NAME = "pytorch", "pytorchjob-port"
MASTER, WORKER = "Master", "Worker"
DEFAULT_PORT = 23_456
OWN_PORT = "$(MASTER_PORT)"
"""Muster gives each attempt a port that is free: two jobs of one machine do not meet at one."""


def environment(job: JsonObject, replica: Replica) -> list[JsonObject]:
    """As the training operator sets them."""
    spec = part(job, "spec")
    specs = part(spec, "pytorchReplicaSpecs")
    found = [("PYTHONUNBUFFERED", "1")]
    if MASTER in specs:
        found += _meeting(job, replica)
    if spec.get("nprocPerNode") is not None:
        found.append(("PET_NPROC_PER_NODE", str(spec["nprocPerNode"])))
    if isinstance(spec.get("elasticPolicy"), dict):
        found += _elastic(job)
    else:
        found.append(("PET_NNODES", str(total_of(specs))))
    return [{"name": name, "value": value} for name, value in found]


def _meeting(job: JsonObject, replica: Replica) -> list[tuple[str, str]]:
    spec = part(job, "spec")
    specs = part(spec, "pytorchReplicaSpecs")
    address = Replica(role=MASTER, index=0, spec={}).name_in(job)
    per_node = str(spec.get("nprocPerNode") or "")
    world = total_of(specs) * (int(per_node) if per_node.isdecimal() else 1)
    rank = str(replica.index + (replica.role == WORKER))
    named = port_of(part(specs, MASTER), CONTAINER, PORT_NAME)
    if named is None and not starts_whole(job):
        # Those who follow later are jobs of their own, with another port.
        named = DEFAULT_PORT
    port = OWN_PORT if named is None else str(named)
    found = [] if named is None else [("MASTER_PORT", port)]
    return [
        *found,
        ("PET_MASTER_PORT", port),
        ("MASTER_ADDR", address),
        ("PET_MASTER_ADDR", address),
        ("WORLD_SIZE", str(world)),
        ("RANK", rank),
        ("PET_NODE_RANK", rank),
    ]


def starts_whole(job: JsonObject) -> bool:
    """Do all replicas start together?"""
    specs = part(job, "spec", "pytorchReplicaSpecs")
    return least_of(job) >= total_of(specs)


def least_of(job: JsonObject) -> int:
    """So many replicas start together: as the policy says, or as elastic training allows."""
    specs = part(job, "spec", "pytorchReplicaSpecs")
    said = part(policy_of(job), "schedulingPolicy").get("minAvailable")
    fewest = part(job, "spec", "elasticPolicy").get("minReplicas")
    if said is None and fewest is not None:
        masters = count_of(part(specs, MASTER)) if MASTER in specs else 0
        said = int(fewest) + masters
    return total_of(specs) if said is None else max(1, min(int(said), total_of(specs)))


def _elastic(job: JsonObject) -> list[tuple[str, str]]:
    policy, specs = part(job, "spec", "elasticPolicy"), part(job, "spec", "pytorchReplicaSpecs")
    port = policy.get("rdzvPort") or port_of(part(specs, WORKER), CONTAINER, PORT_NAME)
    if port is None:
        port = OWN_PORT if starts_whole(job) else DEFAULT_PORT
    host = policy.get("rdzvHost") or f"{name_of(job)}-worker-0"
    workers = count_of(part(specs, WORKER))
    fewest, most = policy.get("minReplicas", workers), policy.get("maxReplicas", workers)
    found = [
        ("PET_RDZV_ENDPOINT", f"{host}:{port}"),
        ("PET_RDZV_BACKEND", str(policy.get("rdzvBackend") or "c10d")),
        ("PET_NNODES", f"{fewest}:{most}"),
    ]
    for field, name in (
        ("maxRestarts", "PET_MAX_RESTARTS"),
        ("nProcPerNode", "PET_NPROC_PER_NODE"),
        ("rdzvId", "PET_RDZV_ID"),
    ):
        if policy.get(field) is not None:
            found.append((name, str(policy[field])))
    conf = [f"{each.get('key')}={each.get('value')}" for each in items(policy, "rdzvConf")]
    if conf:
        found.append(("PET_RDZV_CONF", ",".join(conf)))
    if policy.get("standalone"):
        found.append(("PET_STANDALONE", ""))
    return found


def leader(job: JsonObject) -> str:
    """The role whose first replica's end is the job's."""
    return MASTER if MASTER in part(job, "spec", "pytorchReplicaSpecs") else ""


PYTORCH = Framework(
    kind=PYTORCH_JOB,
    field="pytorchReplicaSpecs",
    roles=(MASTER, WORKER),
    container=CONTAINER,
    port_name=PORT_NAME,
    environment=environment,
    leader=leader,
    least=least_of,
    restart="OnFailure",
    once=frozenset({MASTER}),
    defaults={"nprocPerNode": "auto"},
)
