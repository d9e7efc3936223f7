"""`muster cluster`: which clusters are used besides this machine."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click

from muster.app import daemon
from muster.app.engines import caution_of, manner_of, seen
from muster.backends.kubernetes.kubeconfig import (
    BadKubeconfigError,
    OurPod,
    access_to,
    file_to_use,
)
from muster.backends.local.hardware.inventory import CLUSTER
from muster.client.address import own_home
from muster.doors.cli.daemon.port import (
    AddClusterOptions,
    AddKubernetesOptions,
    ClustersOptions,
    DownOptions,
    RemoveClusterOptions,
    UpOptions,
)
from muster.model.cluster import Node
from muster.model.value import replace
from muster.settings import (
    BadSettingsError,
    KubernetesCluster,
    OtherCluster,
    Settings,
    SlurmCluster,
    keep_settings,
    made_home,
    read_settings,
    state_folder,
)

_NAMED = 3


def add(options: AddClusterOptions) -> int:
    """Keep it in the settings, if it answers, and use it from now on."""
    home, kept = _opened(options.home)
    cluster = SlurmCluster(
        name=options.name,
        rest=options.rest or "",
        token_file=str(options.token_file.expanduser().absolute()) if options.token_file else "",
        token_command=options.token_command or "",
        conf=options.conf or "",
        commands=options.commands or "",
        delegate=options.delegate,
        partitions=options.partitions,
        account=options.account or "",
        accounts=dict(options.accounts),
        qos=options.qos or "",
        qualities=dict(options.qualities),
        containers=options.containers,
        models=dict(options.models),
        prefix=options.prefix or "",
        order=1 + len(kept.clusters),
    )
    _demand_rest(cluster)
    _use(cluster, home, kept)
    if cluster.token_file:
        _warn_of_readers(cluster.token_file)
    return 0


def add_kubernetes(options: AddKubernetesOptions) -> int:
    """The same for a Kubernetes cluster, whose kubeconfig stays where it is."""
    home, kept = _opened(options.home)
    path = file_to_use(options.kubeconfig, OurPod(environ=os.environ))
    if options.images and not options.image:
        raise BadSettingsError("--queue-image needs --image as well, for all other queues")
    cluster = KubernetesCluster(
        name=options.name,
        kubeconfig=path,
        context=options.context or "",
        namespace=options.namespace or _namespace(path, options.context or ""),
        namespaces=dict(options.namespaces),
        image=options.image or "",
        images=dict(options.images),
        mounts=options.mounts,
        pull_secret=options.pull_secret or "",
        account=options.account or "",
        models=dict(options.models),
        levels=options.levels,
        adopts=dict(options.adopts),
        order=1 + len(kept.clusters),
    )
    _use(cluster, home, kept)
    if path:
        _warn_of_readers(path)
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
    click.echo(f"{'NAME':<16} {'KIND':<10} {'NODES':>6} {'GPUS':>6}  STATE")
    for each in kept.clusters:
        click.echo(_line(each))
    return 0


def _demand_rest(cluster: SlurmCluster) -> None:
    tokens = [each for each in (cluster.token_file, cluster.token_command) if each]
    if tokens and not cluster.rest:
        raise BadSettingsError("a token is for slurmrestd: say where it is with --rest URL")
    if len(tokens) > 1:
        raise BadSettingsError("either --token-file or --token-command, not both")
    if cluster.rest and urlsplit(cluster.rest).scheme not in {"http", "https", "unix"}:
        raise BadSettingsError(
            f"--rest {cluster.rest}: write http://host:6820, https://host:6820 or unix:/path"
        )

    if cluster.rest and cluster.containers == "pyxis" and not (cluster.conf or cluster.commands):
        raise BadSettingsError(
            "slurmrestd has no word for pyxis: name Slurm's commands as well, with --conf or "
            "--commands, or use --containers apptainer"
        )


def _warn_of_readers(path: str) -> None:
    if os.stat(path).st_mode & 0o044:
        text = f"caution: others can read {path}, and be Muster there: chmod 600 {path}"
        click.echo(text, err=True)


def _use(cluster: OtherCluster, home: Path, kept: Settings) -> None:
    _demand_new(cluster.name, kept)
    found = seen(cluster)
    _demand_own_names(cluster.name, found, kept)
    _keep(home, replace(kept, clusters=(*kept.clusters, cluster)))
    gpus = sum(len(node.devices) for node in found)
    click.echo(f"Cluster {cluster.name}: {len(found)} nodes, {gpus} GPUs.")
    if caution := caution_of(cluster):
        click.echo(f"caution: cluster {cluster.name}: {caution}", err=True)


def _namespace(path: str, context: str) -> str:
    try:
        return access_to(path, context, OurPod(environ=os.environ)).namespace
    except BadKubeconfigError as error:
        raise BadSettingsError(str(error)) from error


def _line(cluster: OtherCluster) -> str:
    kind, manner = manner_of(cluster)
    try:
        found = seen(cluster)
    except BadSettingsError as error:
        return f"{cluster.name:<16} {kind:<10} {'-':>6} {'-':>6}  {error}"
    gpus = sum(len(node.devices) for node in found)
    return f"{cluster.name:<16} {kind:<10} {len(found):>6} {gpus:>6}  answers, {manner}"


def _opened(home: Path | None) -> tuple[Path, Settings]:
    wanted = home or own_home()
    with state_folder(wanted):
        found = made_home(wanted).resolve()
        return found, read_settings(found)


def _demand_new(name: str, kept: Settings) -> None:
    taken: Sequence[str] = (CLUSTER, *(each.name for each in kept.clusters))
    if name in taken:
        raise BadSettingsError(f"there is a cluster {name} already; name it otherwise")


def _demand_own_names(name: str, found: Sequence[Node], kept: Settings) -> None:
    """A node or a pool is known by its name: of two clusters it would be one and the same."""
    for other in kept.clusters:
        theirs: Sequence[Node] = ()
        with contextlib.suppress(BadSettingsError):
            theirs = seen(other)
        nodes = {each.id for each in found} & {each.id for each in theirs}
        pools = {each.pool for each in found} & {each.pool for each in theirs}
        both = sorted(nodes) or sorted(pools)
        if both:
            more = ", ..." if len(both) > _NAMED else ""
            raise BadSettingsError(
                f"clusters {other.name} and {name} both have {'nodes' if nodes else 'pools'} named "
                f"{', '.join(both[:_NAMED])}{more}; add a Slurm cluster with --prefix {name}-"
            )


def _keep(home: Path, settings: Settings) -> None:
    """A Muster that runs is started again with them; its jobs run on."""
    runs = daemon.running_pid(home) is not None
    if runs:
        daemon.down(DownOptions(home=home))
    keep_settings(home, settings)
    if runs:
        daemon.up(UpOptions(home=home))
