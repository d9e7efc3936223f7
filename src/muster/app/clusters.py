"""`muster cluster`: which clusters are used besides this machine."""

from collections.abc import Sequence
from pathlib import Path

import click

from muster.app import daemon
from muster.app.engines import seen
from muster.backends.local.hardware.inventory import CLUSTER
from muster.client.address import own_home
from muster.doors.cli.daemon.port import (
    AddClusterOptions,
    ClustersOptions,
    DownOptions,
    RemoveClusterOptions,
    UpOptions,
)
from muster.model.value import replace
from muster.settings import (
    BadSettingsError,
    Settings,
    SlurmCluster,
    keep_settings,
    made_home,
    read_settings,
    state_folder,
)


def add(options: AddClusterOptions) -> int:
    """Keep it in the settings, if it answers, and use it from now on."""
    home, kept = _opened(options.home)
    cluster = SlurmCluster(
        name=options.name,
        conf=options.conf or "",
        commands=options.commands or "",
        delegate=options.delegate,
        partitions=options.partitions,
        account=options.account or "",
        qos=options.qos or "",
        containers=options.containers,
        models=dict(options.models),
        order=1 + len(kept.clusters),
    )
    _demand_new(cluster.name, kept)
    found = seen(cluster)
    _keep(home, replace(kept, clusters=(*kept.clusters, cluster)))
    gpus = sum(len(node.devices) for node in found)
    click.echo(f"Cluster {cluster.name}: {len(found)} nodes, {gpus} GPUs.")
    return 0


def remove(options: RemoveClusterOptions) -> int:
    """Use it no more. What runs there goes on, and nobody looks after it."""
    home, kept = _opened(options.home)
    rest = tuple(each for each in kept.clusters if each.name != options.name)
    if len(rest) == len(kept.clusters):
        names = ", ".join(each.name for each in kept.clusters) or "there are none"
        raise BadSettingsError(f"there is no cluster {options.name}; {names}")
    _keep(home, replace(kept, clusters=rest))
    click.echo(f"Cluster {options.name} is used no more; what runs there goes on.")
    return 0


def show(options: ClustersOptions) -> int:
    """Every cluster, and whether it answers."""
    _, kept = _opened(options.home)
    click.echo(f"{'NAME':<16} {'KIND':<8} {'NODES':>6} {'GPUS':>6}  STATE")
    for each in kept.clusters:
        click.echo(_line(each))
    return 0


def _line(cluster: SlurmCluster) -> str:
    try:
        found = seen(cluster)
    except BadSettingsError as error:
        return f"{cluster.name:<16} {'slurm':<8} {'-':>6} {'-':>6}  {error}"
    gpus = sum(len(node.devices) for node in found)
    manner = "delegates" if cluster.delegate else "places"
    return f"{cluster.name:<16} {'slurm':<8} {len(found):>6} {gpus:>6}  answers, {manner}"


def _opened(home: Path | None) -> tuple[Path, Settings]:
    wanted = home or own_home()
    with state_folder(wanted):
        found = made_home(wanted).resolve()
        return found, read_settings(found)


def _demand_new(name: str, kept: Settings) -> None:
    taken: Sequence[str] = (CLUSTER, *(each.name for each in kept.clusters))
    if name in taken:
        raise BadSettingsError(f"there is a cluster {name} already; name it otherwise")


def _keep(home: Path, settings: Settings) -> None:
    """A Muster that runs is started again with them; its jobs run on."""
    runs = daemon.running_pid(home) is not None
    if runs:
        daemon.down(DownOptions(home=home))
    keep_settings(home, settings)
    if runs:
        daemon.up(UpOptions(home=home))
