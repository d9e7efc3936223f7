"""What running a job takes of its cluster beside room, and whether some cluster can do it."""

from muster.lifecycle.pod_abilities import taken_by_pods
from muster.lifecycle.refusal import CannotRun, NoContainerTool, Reason, Refusal
from muster.lifecycle.submission import Submission
from muster.model.cluster import Ability, Cluster
from muster.model.launch import Launch, Runs, is_image_file


def takes_of(launch: Launch, *, images_on_host: bool) -> tuple[Ability, ...]:
    """What a cluster must be able to do to run this; nothing special for a plain command.

    images_on_host: where nothing runs images, commands are run without them.
    """
    if launch.adopts:
        return (Ability.ADOPTION,)
    found = set(taken_by_pods(launch))
    if launch.image is not None and not images_on_host:
        found.add(Ability.IMAGE_FILES if is_image_file(launch.image) else Ability.IMAGES)
    if launch.terminal is not None:
        found.add(Ability.TERMINALS)
    if launch.runs is Runs.STEPS_ONLY:
        found.add(Ability.STEPS)
    return tuple(sorted(found))


def some_cluster_can_run_it(asked: Submission) -> Refusal | None:
    """Refuse what could only wait for ever."""
    names = {pool.cluster for pool in asked.pools}
    clusters = [each for name, each in sorted(asked.snapshot.clusters.items()) if name in names]
    lacking = [_lacking(each, asked) for each in clusters]
    first = next(iter(lacking), None)
    if first is None or None in lacking:
        return None
    listed = ", ".join(each.name for each in clusters)
    return Refusal(reason=_reason(first, asked), advice=_advice(first, asked, listed))


def _lacking(cluster: Cluster, asked: Submission) -> Ability | None:
    return cluster.abilities.lacking(asked.spec.takes)


def _reason(lacking: Ability, asked: Submission) -> Reason:
    if lacking in {Ability.IMAGES, Ability.IMAGE_FILES}:
        return NoContainerTool(image=asked.spec.launch.image or "")
    return CannotRun(ability=lacking)


def _advice(lacking: Ability, asked: Submission, clusters: str) -> str:
    image = asked.spec.launch.image
    match lacking:
        case Ability.IMAGES:
            return _no_tool(image, "podman, docker (and its daemon) or apptainer")
        case Ability.IMAGE_FILES:
            return _no_tool(image, "apptainer")
        case _:
            return f"Cluster {clusters} {_ADVICE[lacking]}"


_ADVICE = {
    Ability.COMMANDS: "runs only jobs that name an image. Name one (--image), or another cluster.",
    Ability.PODS: "runs no pods of Muster's Kubernetes API. Name no cluster, or submit a script; "
    "on this machine, podman or docker runs them, and apptainer does not.",
    Ability.POD_GANGS: "runs no pods that start together. Name another cluster, or no gang.",
    Ability.CONTAINERS: "runs one container in a pod. Leave out initContainers and all containers "
    "but one, or name another cluster.",
    Ability.VOLUMES: "mounts no volumes in pods. Leave out `volumes` and read ConfigMaps and "
    "Secrets through `env` or `envFrom`, or name another cluster.",
    Ability.HOST_PATHS: "mounts no folders of its nodes in pods. Leave out the hostPath; on "
    "this machine, podman mounts them, and root's docker does not.",
    Ability.TOKENS: "gives pods no tokens of service accounts. Leave out the volume with the "
    "serviceAccountToken, or name another cluster.",
    Ability.PROBES: "has no probes and hooks of containers. Leave them out, or name another "
    "cluster.",
    Ability.STOP_SIGNALS: "ends containers with SIGTERM. Leave out stopSignal, or name another "
    "cluster.",
    Ability.CHECKPOINT_PROBES: "does not look for checkpoints. Leave out the annotation "
    "muster.io/readiness.",
    Ability.ENTRYPOINTS: "runs a container only where the pod says what. Set `command`.",
    Ability.POD_ADDRESSES: "tells containers nothing of their node. Leave out hostAliases, and "
    "variables of spec.nodeName, status.hostIP, status.podIP and of limits that are not set.",
    Ability.POD_USERS: "runs pods only as the user whose they are. Leave out runAsUser, "
    "runAsGroup, supplementalGroups and fsGroup.",
    Ability.POD_INPUT: "lets nobody type into containers. Leave out `stdin` and `tty`, or name "
    "another cluster.",
    Ability.TERMINALS: "connects nobody to the terminal of a job. Leave out the terminal.",
    Ability.STEPS: "starts no steps of ours. Submit a script with sbatch, or name another cluster.",
    Ability.ADOPTION: "places no pods that its users made. Ask an administrator for `--adopt` "
    "there.",
}


def _no_tool(image: str | None, tools: str) -> str:
    return (
        f"No node can run the image {image}: {tools} is missing. Leave out the image, or ask "
        "an administrator to install one, or to allow images_on_host for your queue."
    )
