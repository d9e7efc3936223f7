"""What running pods takes of a cluster, by what each of them has beside one plain container."""

from collections.abc import Callable, Iterator

from muster.model.cluster import Ability
from muster.model.launch import Launch
from muster.model.pod import (
    CheckpointSeen,
    Container,
    EmptyFolder,
    Files,
    HostFolder,
    OfNode,
    PodLaunch,
    Stage,
    TextsAsFiles,
    TokenFile,
    Volume,
)

TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 -- what the names of volumes begin with
"""Of the volume with the token of Muster's own API, which every pod is given that asks for none.

A pod that runs where nobody reaches that API goes without; who runs it says so.
"""

_HERE = "127.0.0.1"


def taken_by_pods(launch: Launch) -> frozenset[Ability]:
    """Nothing where it is no pod."""
    found = {Ability.PODS} if launch.pods else set[Ability]()
    if launch.gang is not None:
        found.add(Ability.POD_GANGS)
    for pod in launch.pods:
        found |= {ability for ability, has in _MARKS if has(pod)}
        if _has_further_names(pod, launch):
            found.add(Ability.POD_ADDRESSES)
    return frozenset(found)


def own_volumes(pod: PodLaunch) -> Iterator[Volume]:
    """Those that its user asked for."""
    yield from (each for each in pod.volumes if not each.name.startswith(TOKEN_VOLUME))


def has_token(pod: PodLaunch) -> bool:
    """Was it given the token of its service account?"""
    return any(each.name.startswith(TOKEN_VOLUME) for each in pod.volumes)


def _has_containers(pod: PodLaunch) -> bool:
    return [each.stage for each in pod.containers] != [Stage.MAIN]


def _has_volumes(pod: PodLaunch) -> bool:
    return any(isinstance(each.source, EmptyFolder | Files) for each in own_volumes(pod))


def _has_host_paths(pod: PodLaunch) -> bool:
    return any(isinstance(each.source, HostFolder) for each in own_volumes(pod))


def _has_tokens(pod: PodLaunch) -> bool:
    files = [each.source for each in own_volumes(pod) if isinstance(each.source, Files)]
    return any(isinstance(source, TokenFile) for each in files for source in each.sources)


def _has_probes(pod: PodLaunch) -> bool:
    return any(_is_looked_after(each) for each in pod.containers)


def _is_looked_after(each: Container) -> bool:
    probes = [probe for probe in (each.startup, each.liveness, each.readiness) if probe is not None]
    asks = any(not isinstance(probe.action, CheckpointSeen) for probe in probes)
    return asks or bool(each.after_start or each.before_stop)


def _has_stop_signals(pod: PodLaunch) -> bool:
    return any(each.stop_signal for each in pod.containers)


def _waits_for_checkpoints(pod: PodLaunch) -> bool:
    probes = [each.readiness for each in pod.containers if each.readiness is not None]
    return any(isinstance(probe.action, CheckpointSeen) for probe in probes)


def _runs_images_alone(pod: PodLaunch) -> bool:
    return any(not each.entrypoint for each in pod.containers)


def _learns_of_its_node(pod: PodLaunch) -> bool:
    said = [variable.value for each in pod.containers for variable in each.env]
    for volume in own_volumes(pod):
        for source in volume.source.sources if isinstance(volume.source, Files) else ():
            if isinstance(source, TextsAsFiles):
                said += [file.value for file in source.files]
    return any(isinstance(each, OfNode) for each in said)


def _has_further_names(pod: PodLaunch, launch: Launch) -> bool:
    """Beside those of the other pods of its gang, which have them from us."""
    mates = {each.hostname for each in launch.pods} if launch.gang is not None else set[str]()
    return any(not (name in mates and address == _HERE) for name, address in pod.aliases)


def _has_users(pod: PodLaunch) -> bool:
    """Who may not choose is the same user everywhere: what they say of it is refused or nothing."""
    chosen = [each.user is not None or each.group is not None for each in pod.containers]
    return any(chosen) or bool(pod.groups) or pod.volume_group is not None


def _is_typed_into(pod: PodLaunch) -> bool:
    return any(each.stdin or each.tty for each in pod.containers)


_MARKS: tuple[tuple[Ability, Callable[[PodLaunch], bool]], ...] = (
    (Ability.CONTAINERS, _has_containers),
    (Ability.VOLUMES, _has_volumes),
    (Ability.HOST_PATHS, _has_host_paths),
    (Ability.TOKENS, _has_tokens),
    (Ability.PROBES, _has_probes),
    (Ability.STOP_SIGNALS, _has_stop_signals),
    (Ability.CHECKPOINT_PROBES, _waits_for_checkpoints),
    (Ability.ENTRYPOINTS, _runs_images_alone),
    (Ability.POD_ADDRESSES, _learns_of_its_node),
    (Ability.POD_USERS, _has_users),
    (Ability.POD_INPUT, _is_typed_into),
)
