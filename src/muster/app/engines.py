"""The clusters that the settings name, as backends."""

import secrets
from collections.abc import Callable
from pathlib import Path

from muster.backends.slurm.backend import SlurmBackend, SlurmLink
from muster.backends.slurm.commands import Access, Commands, SlurmDownError, SlurmRefusedError
from muster.backends.slurm.nodes import Fleet, nodes, partitions
from muster.backends.slurm.submission import Containers, Manner
from muster.model.cluster import Node
from muster.model.value import ClusterName, GpuModel, Instant
from muster.settings import BadSettingsError, SlurmCluster, keep_file

FOLDER = "clusters"
SITE_NAME = "site"
"""The file that has what our jobs are marked with on clusters that others use too."""


def slurm_backend(
    home: Path, cluster: SlurmCluster, wake: Callable[[], None], clock: Callable[[], Instant]
) -> SlurmBackend:
    """The backend of a cluster that the settings name."""
    link = SlurmLink(
        name=ClusterName(cluster.name),
        site=_site(home),
        manner=Manner(
            delegates=cluster.delegate,
            account=cluster.account,
            qos=cluster.qos,
            containers=Containers(cluster.containers),
        ),
        only=cluster.partitions,
        models=_models(cluster),
        order=cluster.order,
    )
    folder = home / FOLDER / cluster.name
    return SlurmBackend(link, _commands(cluster), folder, wake, clock)


def seen(cluster: SlurmCluster) -> tuple[Node, ...]:
    """The nodes that it has now; BadSettingsError says why it cannot be used."""
    commands = _commands(cluster)
    try:
        fleet = Fleet(
            cluster=ClusterName(cluster.name),
            partitions=partitions(commands.partitions()),
            only=cluster.partitions,
            models=_models(cluster),
        )
        found = nodes(commands.nodes(), fleet)
    except (SlurmDownError, SlurmRefusedError) as error:
        text = f"cluster {cluster.name} does not answer: {error}; is --conf its slurm.conf?"
        raise BadSettingsError(text) from error
    if not found:
        names = ", ".join(each.name for each in fleet.partitions)
        raise BadSettingsError(f"cluster {cluster.name} has no nodes there; partitions: {names}")
    return found


def _commands(cluster: SlurmCluster) -> Commands:
    return Commands(Access(conf=cluster.conf or None, folder=cluster.commands or None))


def _models(cluster: SlurmCluster) -> dict[str, GpuModel]:
    return {kind: GpuModel(model) for kind, model in cluster.models.items()}


def _site(home: Path) -> str:
    """Tells our jobs from those of another Muster on the same cluster."""
    path = home / FOLDER / SITE_NAME
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        keep_file(path, secrets.token_hex(6).encode())
    return path.read_text(encoding="ascii")
