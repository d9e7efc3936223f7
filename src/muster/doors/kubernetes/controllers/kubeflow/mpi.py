"""MPIJob: a launcher that reaches its workers by name, with a list of them at /etc/mpi.

`mpirun` starts its daemons in the workers' pods with `kubectl exec`, as the training operator's
version 1 does; the launcher's image brings kubectl, and its service account the right to exec.
Jobs of version 2, whose operator has ssh do that, are run in the same way: pods share the network
of their machine, where only one of them could listen at the port of ssh.
"""

from collections.abc import Mapping

from muster.doors.kubernetes.controllers.kubeflow.framework import (
    Framework,
    Replica,
    least_of,
)
from muster.doors.kubernetes.controllers.owning import owner_reference
from muster.doors.kubernetes.foreign.kinds import MPI_JOB
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    items,
    name_of,
    namespace_of,
    part,
)

FIELD = "mpiReplicaSpecs"
LAUNCHER, WORKER = "Launcher", "Worker"
FOLDER, HOSTS, AGENT = "/etc/mpi", "hostfile", "kubexec.sh"
VOLUME = "mpi-job-config"
OPEN_MPI = "OpenMPI"
STAYS = ("sleep", "365d")
"""What a worker does that is told nothing: its processes are started from outside."""

_RUNS_FOR_ALL = 0o755
_AGENT_TEXT = """#!/bin/sh
# Runs a command in the pod of a worker: kubexec.sh POD COMMAND...
PATH="$PATH:/opt/kube"
pod="$1"
shift
exec kubectl exec "$pod" -- /bin/sh -c "$*"
"""


def environment(job: JsonObject, replica: Replica) -> list[JsonObject]:
    """What mpirun reads; only the launcher starts it."""
    found: dict[str, str] = {}
    if _is_second(job):
        found["K_MPI_JOB_ROLE"] = replica.role.lower()
    if replica.role == LAUNCHER:
        found |= _of_launcher(job)
    return [{"name": name, "value": value} for name, value in found.items()]


def _is_second(job: JsonObject) -> bool:
    """Is it of version 2 of the operator?"""
    return str(job.get("apiVersion")).startswith("kubeflow.org/v2")


def _of_launcher(job: JsonObject) -> Mapping[str, str]:
    agent, hosts, slots = f"{FOLDER}/{AGENT}", f"{FOLDER}/{HOSTS}", str(_slots(job))
    match _implementation(job):
        case "Intel":
            return {
                "I_MPI_HYDRA_BOOTSTRAP": "rsh",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC": agent,
                "I_MPI_HYDRA_HOST_FILE": hosts,
                "I_MPI_PERHOST": slots,
            }
        case "MPICH":
            return {
                "HYDRA_LAUNCHER": "rsh",
                "HYDRA_LAUNCHER_EXEC": agent,
                "HYDRA_HOST_FILE": hosts,
            }
        case _:
            return {
                "OMPI_MCA_plm_rsh_agent": agent,
                "OMPI_MCA_orte_default_hostfile": hosts,
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_set_default_slots": slots,
            }


def _implementation(job: JsonObject) -> str:
    return str(part(job, "spec").get("mpiImplementation") or OPEN_MPI)


def _slots(job: JsonObject) -> int:
    return int(part(job, "spec").get("slotsPerWorker") or 1)


def configuration(job: JsonObject) -> list[JsonObject]:
    """A ConfigMap with the workers and how to reach them."""
    working = {WORKER, *((LAUNCHER,) if part(job, "spec").get("runLauncherAsWorker") else ())}
    slots = f" slots={_slots(job)}" if _implementation(job) == OPEN_MPI else f":{_slots(job)}"
    hosts = [f"{each.name_in(job)}{slots}\n" for each in MPI.replicas(job) if each.role in working]
    config: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": _config_name(job),
            "namespace": namespace_of(job),
            "ownerReferences": [owner_reference(job)],
        },
        "data": {HOSTS: "".join(hosts), AGENT: _AGENT_TEXT},
    }
    return [config]


def _config_name(job: JsonObject) -> str:
    return f"{name_of(job)}-config"


def furnish(job: JsonObject, replica: Replica, spec: JsonObject) -> None:
    """Each pod finds the list, and the launcher starts what it is told with it."""
    config = {"name": _config_name(job), "defaultMode": _RUNS_FOR_ALL}
    spec["volumes"] = [*items(spec, "volumes"), {"name": VOLUME, "configMap": config}]
    mount = {"name": VOLUME, "mountPath": FOLDER}
    for container in items(spec, "containers"):
        container["volumeMounts"] = [*items(container, "volumeMounts"), mount]
        is_told = container.get("command") or container.get("args")
        if replica.role == WORKER and not is_told:
            container["command"] = list(STAYS)


def leader(_: JsonObject) -> str:
    """The job ends as its launcher does."""
    return LAUNCHER


def _least(job: JsonObject) -> int:
    return least_of(job, part(job, "spec", FIELD))


MPI = Framework(
    kind=MPI_JOB,
    field=FIELD,
    roles=(LAUNCHER, WORKER),
    container="",
    port_name="mpijob-port",
    environment=environment,
    leader=leader,
    least=_least,
    restart="Never",
    once=frozenset({LAUNCHER}),
    unnumbered=frozenset({LAUNCHER}),
    defaults={"slotsPerWorker": 1},
    beside=configuration,
    furnish=furnish,
)
