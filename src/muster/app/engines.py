"""The clusters that the settings name, as backends."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from muster.backends.base import Backend
from muster.backends.kept import CLUSTERS
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.client import (
    Client,
    KubernetesDownError,
    KubernetesRefusedError,
)
from muster.backends.kubernetes.kubeconfig import (
    Access,
    BadKubeconfigError,
    OurPod,
    access_to,
)
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.manifest import Manner as PodManner
from muster.backends.kubernetes.manifest import Mount
from muster.backends.kubernetes.nodes import Fleet as PodFleet
from muster.backends.kubernetes.nodes import node_of
from muster.backends.kubernetes.rights import lacking_rights
from muster.backends.slurm.backend import SlurmBackend, SlurmLink
from muster.backends.slurm.commands import Access as SlurmAccess
from muster.backends.slurm.commands import Commands
from muster.backends.slurm.images import Containers
from muster.backends.slurm.nodes import Fleet
from muster.backends.slurm.rest import Rest, RestAccess
from muster.backends.slurm.submission import Manner
from muster.backends.slurm.version import caution
from muster.backends.slurm.wire import SlurmDownError, SlurmRefusedError, WholeWire
from muster.model.cluster import Node
from muster.model.value import ClusterName, GpuModel, Instant, QueuePath
from muster.settings import (
    BadSettingsError,
    KubernetesCluster,
    OtherCluster,
    SlurmCluster,
    keep_file,
)

SITE_NAME = "site"
"""The file that has what our jobs are marked with on clusters that others use too."""
SEAL_NAME = "seal"
"""The file that has what nobody else can make such marks without."""

Clock = Callable[[], Instant]


def backend_of(
    home: Path, cluster: OtherCluster, wake: Callable[[], None], clock: Clock
) -> Backend:
    """The backend of a cluster that the settings name."""
    match cluster:
        case SlurmCluster():
            return _slurm_backend(home, cluster, wake, clock)
        case KubernetesCluster():
            return _kubernetes_backend(home, cluster, wake, clock)


def seen(cluster: OtherCluster) -> tuple[Node, ...]:
    """The nodes that it has now; BadSettingsError says why it cannot be used."""
    match cluster:
        case SlurmCluster():
            return _slurm_nodes(cluster)
        case KubernetesCluster():
            return _kubernetes_nodes(cluster)


def caution_of(cluster: OtherCluster) -> str:
    """What should be known of what runs there; empty where it is what we know well."""
    match cluster:
        case SlurmCluster():
            try:
                return caution(_wire(cluster).version())
            except (SlurmDownError, SlurmRefusedError) as error:
                return f"it does not say which Slurm it is: {error}"
        case KubernetesCluster():
            return ""


def manner_of(cluster: OtherCluster) -> tuple[str, str]:
    """Its kind, and who chooses nodes, in a word each."""
    match cluster:
        case SlurmCluster():
            way = " by slurmrestd" if cluster.rest else ""
            return "slurm", f"delegates{way}" if cluster.delegate else f"places{way}"
        case KubernetesCluster():
            return "kubernetes", "places"


def _slurm_backend(
    home: Path, cluster: SlurmCluster, wake: Callable[[], None], clock: Clock
) -> SlurmBackend:
    link = SlurmLink(
        name=ClusterName(cluster.name),
        site=_site(home),
        manner=Manner(
            delegates=cluster.delegate,
            account=cluster.account,
            accounts=_by_queue(cluster.accounts),
            qos=cluster.qos,
            qualities=_by_queue(cluster.qualities),
            containers=Containers(cluster.containers),
            prefix=cluster.prefix,
        ),
        only=cluster.partitions,
        models=_models(cluster),
        order=cluster.order,
        suspends=not cluster.rest or _commands(cluster) is not None,
    )
    folder = home / CLUSTERS / cluster.name
    return SlurmBackend(link, _wire(cluster), folder, wake, clock)


def _slurm_nodes(cluster: SlurmCluster) -> tuple[Node, ...]:
    wire = _wire(cluster)
    try:
        fleet = Fleet(
            cluster=ClusterName(cluster.name),
            partitions=wire.partitions(),
            only=cluster.partitions,
            models=_models(cluster),
            prefix=cluster.prefix,
        )
        found = tuple(each.node for each in wire.nodes(fleet))
    except (SlurmDownError, SlurmRefusedError) as error:
        asked = "see --rest and its token" if cluster.rest else "is --conf its slurm.conf?"
        text = f"cluster {cluster.name} does not answer: {error}; {asked}"
        raise BadSettingsError(text) from error
    accounts, qualities = wire.accounts(), wire.qualities()
    for account in (cluster.account, *cluster.accounts.values()):
        _demand_known("account", account, accounts, cluster)
    for quality in (cluster.qos, *cluster.qualities.values()):
        _demand_known("QOS", quality, qualities, cluster)
    if not found:
        names = ", ".join(each.name for each in fleet.partitions)
        raise BadSettingsError(f"cluster {cluster.name} has no nodes there; partitions: {names}")
    return found


def _demand_known(kind: str, wanted: str, known: tuple[str, ...], cluster: SlurmCluster) -> None:
    """Else every job would be refused there, one after the other."""
    if wanted and known and wanted not in known:
        names = ", ".join(known)
        raise BadSettingsError(f"cluster {cluster.name} has no {kind} {wanted}; it has {names}")


def _kubernetes_backend(
    home: Path, cluster: KubernetesCluster, wake: Callable[[], None], clock: Clock
) -> KubernetesBackend:
    link = KubernetesLink(
        name=ClusterName(cluster.name),
        site=_site(home),
        seal=_kept(home, SEAL_NAME, 32),
        manner=PodManner(
            namespace=cluster.namespace,
            namespaces=_by_queue(cluster.namespaces),
            image=cluster.image,
            images=_by_queue(cluster.images),
            mounts=tuple(map(_mount, cluster.mounts)),
            pull_secret=cluster.pull_secret,
            account=cluster.account,
        ),
        models=_models(cluster),
        levels=cluster.levels,
        order=cluster.order,
        adopts=bool(cluster.adopts),
    )
    folder = home / CLUSTERS / cluster.name
    return KubernetesBackend(link, Client(_access(cluster)), folder, wake, clock)


def _kubernetes_nodes(cluster: KubernetesCluster) -> tuple[Node, ...]:
    """All of them, if we may do there what we must."""
    fleet = PodFleet(
        cluster=ClusterName(cluster.name), models=_models(cluster), levels=cluster.levels
    )
    client = Client(_access(cluster))
    try:
        namespaces = sorted({cluster.namespace, *cluster.namespaces.values()})
        lacking = lacking_rights(client, namespaces, sorted(cluster.adopts))
        if lacking:
            text = f"Muster may not {lacking[0]} on cluster {cluster.name}"
            raise BadSettingsError(f"{text}; deploy/kubernetes has all that it needs")
        found, _ = client.listed("/api/v1/nodes")
    except (KubernetesDownError, KubernetesRefusedError) as error:
        text = f"cluster {cluster.name} does not answer: {error}; see --kubeconfig and --context"
        raise BadSettingsError(text) from error
    finally:
        client.close()
    return tuple(node_of(each, fleet) for each in found)


def _access(cluster: KubernetesCluster) -> Access:
    try:
        return access_to(cluster.kubeconfig, cluster.context, OurPod(environ=os.environ))
    except BadKubeconfigError as error:
        raise BadSettingsError(f"cluster {cluster.name}: {error}") from error


def _mount(text: str) -> Mount:
    claim, colon, path = text.rpartition(":")
    return Mount(path=path, claim=claim if colon else "")


def _by_queue(texts: Mapping[str, str]) -> dict[QueuePath, str]:
    return {QueuePath(queue): text for queue, text in texts.items()}


def _wire(cluster: SlurmCluster) -> WholeWire:
    """By slurmrestd where one is named, else by Slurm's commands."""
    if not cluster.rest:
        return Commands(SlurmAccess(conf=cluster.conf or None, folder=cluster.commands or None))
    access = RestAccess(
        url=cluster.rest, token_file=cluster.token_file, token_command=cluster.token_command
    )
    return Rest(access, _commands(cluster))


def _commands(cluster: SlurmCluster) -> Commands | None:
    """Beside slurmrestd only those that are named: others may be of another cluster."""
    if not cluster.conf and not cluster.commands:
        return None
    return Commands(SlurmAccess(conf=cluster.conf or None, folder=cluster.commands or None))


def _models(cluster: OtherCluster) -> dict[str, GpuModel]:
    return {kind: GpuModel(model) for kind, model in cluster.models.items()}


def _site(home: Path) -> str:
    """Tells our jobs from those of another Muster on the same cluster."""
    return _kept(home, SITE_NAME, 6)


def _kept(home: Path, name: str, length: int) -> str:
    """What was thrown for this installation, once and for all."""
    path = home / CLUSTERS / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        keep_file(path, secrets.token_hex(length).encode())
    return path.read_text(encoding="ascii")
