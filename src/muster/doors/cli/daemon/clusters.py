"""`muster cluster add|remove|list`: other places to run jobs besides this machine."""

from pathlib import Path

import click

from muster.doors.cli.daemon.commands import home_option
from muster.doors.cli.daemon.port import AddClusterOptions, ClustersOptions, RemoveClusterOptions
from muster.doors.cli.options import example
from muster.doors.cli.surroundings import Call


@click.group()
def cluster() -> None:
    """Use other clusters besides this machine: one queue, one quota, one fair share."""


@cluster.command(
    epilog=example(
        "muster cluster add lab --slurm --conf /etc/slurm/slurm.conf",
        "muster cluster add big --slurm --delegate --model a100=A100-80GB",
    )
)
@click.argument("name")
@click.option("--slurm", is_flag=True, required=True, help="It is a Slurm cluster.")
@click.option("--conf", help="Its slurm.conf; else what its commands find themselves.")
@click.option("--commands", help="The folder of its sbatch, squeue ...; else the PATH.")
@click.option(
    "--delegate", is_flag=True, help="Let Slurm choose the nodes: others use the cluster too."
)
@click.option("--partition", multiple=True, help="Use this partition only; may be repeated.")
@click.option("--account", help="Submit in this account; else each user's own.")
@click.option("--qos", help="Submit with this QOS; else each user's own.")
@click.option(
    "--containers",
    type=click.Choice(["none", "pyxis", "apptainer"]),
    default="none",
    show_default=True,
    help="What runs images on its nodes.",
)
@click.option(
    "--model",
    multiple=True,
    metavar="TYPE=MODEL",
    help="Which GPU a type of its gres is, such as a100=A100-80GB.",
)
@home_option
@click.pass_obj
def add(  # noqa: PLR0913 -- one for each option
    call: Call,
    *,
    name: str,
    slurm: bool,  # noqa: ARG001 -- the kind, and so far the only one
    conf: str | None,
    commands: str | None,
    delegate: bool,
    partition: tuple[str, ...],
    account: str | None,
    qos: str | None,
    containers: str,
    model: tuple[str, ...],
    home: Path | None,
) -> int:
    """Run jobs on a Slurm cluster as well.

    Muster decides who runs where, and Slurm starts it there. Jobs that others submit to that Slurm
    count as used, and are never touched. A Muster that runs is started again; its jobs run on.
    """
    options = AddClusterOptions(
        name=name,
        conf=conf,
        commands=commands,
        delegate=delegate,
        partitions=partition,
        account=account,
        qos=qos,
        containers=containers,
        models=tuple(_pair(each) for each in model),
        home=home,
    )
    return call.daemon.add_cluster(options)


@cluster.command(epilog=example("muster cluster remove lab"))
@click.argument("name")
@home_option
@click.pass_obj
def remove(call: Call, *, name: str, home: Path | None) -> int:
    """Use a cluster no more. What runs there goes on, and nobody looks after it."""
    return call.daemon.remove_cluster(RemoveClusterOptions(name=name, home=home))


@cluster.command(name="list", epilog=example("muster cluster list"))
@home_option
@click.pass_obj
def list_(call: Call, *, home: Path | None) -> int:
    """List the clusters besides this machine, and whether they answer."""
    return call.daemon.clusters(ClustersOptions(home=home))


def _pair(text: str) -> tuple[str, str]:
    kind, _, model = text.partition("=")
    if not kind or not model:
        raise click.BadParameter(f"{text}: write TYPE=MODEL, such as a100=A100-80GB")
    return kind, model
