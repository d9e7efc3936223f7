"""`muster cluster add|remove|list`: other places to run jobs besides this machine."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import click

from muster.doors.cli.daemon.commands import home_option
from muster.doors.cli.daemon.port import (
    AddClusterOptions,
    AddKubernetesOptions,
    ClustersOptions,
    RemoveClusterOptions,
)
from muster.doors.cli.options import example
from muster.doors.cli.surroundings import Call


@click.group()
def cluster() -> None:
    """Use other clusters besides this machine: one queue, one quota, one fair share."""


_OF_SLURM = {
    *("rest", "token_file", "token_command"),
    *("conf", "commands", "delegate", "partition", "qos", "containers", "prefix"),
    *("queue_account", "queue_qos"),
}
_OF_KUBERNETES = {
    *("kubeconfig", "context", "namespace", "queue_namespace", "image", "queue_image"),
    *("mount", "pull_secret", "level", "adopt"),
}


@cluster.command(
    epilog=example(
        "muster cluster add lab --slurm --conf /etc/slurm/slurm.conf",
        "muster cluster add big --slurm --delegate --model a100=A100-80GB",
        "muster cluster add far --slurm --rest https://slurm:6820 --token-file jwt",
        "muster cluster add hpc --slurm --queue-account acme/nlp=science",
        "muster cluster add gke --kubernetes --context gke --image python:3.12",
        "muster cluster add aks --kubernetes --queue-namespace acme/nlp=nlp",
        "muster cluster add eks --kubernetes --adopt nlp=acme/nlp",
    )
)
@click.argument("name")
@click.option("--slurm", is_flag=True, help="It is a Slurm cluster.")
@click.option("--kubernetes", is_flag=True, help="It is a Kubernetes cluster.")
@click.option("--rest", metavar="URL", help="Its slurmrestd: http://host:6820 or unix:/path.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="The JWT for slurmrestd, of root or SlurmUser; read again whenever it is shown.",
)
@click.option("--token-command", help="What prints that JWT, in the place of a file.")
@click.option("--conf", help="Its slurm.conf; else what its commands find themselves.")
@click.option("--commands", help="The folder of its sbatch, squeue ...; else the PATH.")
@click.option(
    "--delegate", is_flag=True, help="Let Slurm choose the nodes: others use the cluster too."
)
@click.option("--partition", multiple=True, help="Use this partition only; may be repeated.")
@click.option("--account", help="Slurm: submit in this account. Kubernetes: the service account.")
@click.option(
    "--queue-account",
    multiple=True,
    metavar="QUEUE=ACCOUNT",
    help="Slurm: the account for jobs of a queue, and of all below it; may be repeated.",
)
@click.option("--qos", help="Submit with this QOS; else each user's own.")
@click.option(
    "--queue-qos",
    multiple=True,
    metavar="QUEUE=QOS",
    help="The same for jobs of a queue, and of all below it; may be repeated.",
)
@click.option("--prefix", help="Begin the names of its nodes and pools with this, such as lab-.")
@click.option(
    "--containers",
    type=click.Choice(["none", "pyxis", "apptainer"]),
    default="none",
    show_default=True,
    help="What runs images on the nodes of a Slurm cluster.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Where the Kubernetes cluster is, and who Muster is there; else KUBECONFIG.",
)
@click.option("--context", help="Which one of the kubeconfig; else its current one.")
@click.option("--namespace", help="Where the pods of jobs are; else the context's.")
@click.option(
    "--queue-namespace",
    multiple=True,
    metavar="QUEUE=NAMESPACE",
    help="Where those of a queue, and of all below it, are; may be repeated.",
)
@click.option("--image", help="What jobs run in that name no image; else they are refused there.")
@click.option(
    "--queue-image",
    multiple=True,
    metavar="QUEUE=IMAGE",
    help="The same for a queue and all below it; may be repeated.",
)
@click.option(
    "--mount",
    multiple=True,
    metavar="[CLAIM:]PATH",
    help="A folder of the nodes, or a claim of a volume, that every job finds at this path.",
)
@click.option("--pull-secret", help="The Secret by which images are pulled.")
@click.option(
    "--level",
    multiple=True,
    metavar="LABEL",
    help="A label that says where a node is, the widest first; may be repeated.",
)
@click.option(
    "--adopt",
    multiple=True,
    metavar="NAMESPACE=QUEUE[:USER]",
    help="Place pods that users make there with `schedulerName: muster`; may be repeated.",
)
@click.option(
    "--model",
    multiple=True,
    metavar="TYPE=MODEL",
    help="Which GPU a type of its gres, or a product of its labels, is: a100=A100-80GB.",
)
@home_option
@click.pass_obj
def add(
    call: Call, *, name: str, slurm: bool, kubernetes: bool, home: Path | None, **said: Any
) -> int:
    """Run jobs on a Slurm or a Kubernetes cluster as well.

    Muster decides who runs where, and the cluster starts it there. What others run there counts as
    used, and is never touched. A Muster that runs is started again; its jobs run on.
    """
    if slurm == kubernetes:
        raise click.UsageError("say which kind of cluster it is: --slurm or --kubernetes")
    _refuse(said, _OF_KUBERNETES if slurm else _OF_SLURM, "Kubernetes" if slurm else "Slurm")
    models = tuple(_pair(each, "TYPE=MODEL, such as a100=A100-80GB") for each in said["model"])
    if slurm:
        options = AddClusterOptions(
            name=name,
            rest=said["rest"],
            token_file=said["token_file"],
            token_command=said["token_command"],
            conf=said["conf"],
            commands=said["commands"],
            delegate=said["delegate"],
            partitions=said["partition"],
            account=said["account"],
            accounts=tuple(_pair(each, "QUEUE=ACCOUNT") for each in said["queue_account"]),
            qos=said["qos"],
            qualities=tuple(_pair(each, "QUEUE=QOS") for each in said["queue_qos"]),
            containers=said["containers"],
            models=models,
            prefix=said["prefix"],
            home=home,
        )
        return call.daemon.add_cluster(options)
    wanted = AddKubernetesOptions(
        name=name,
        kubeconfig=said["kubeconfig"],
        context=said["context"],
        namespace=said["namespace"],
        namespaces=tuple(_pair(each, "QUEUE=NAMESPACE") for each in said["queue_namespace"]),
        image=said["image"],
        images=tuple(_pair(each, "QUEUE=IMAGE") for each in said["queue_image"]),
        mounts=said["mount"],
        pull_secret=said["pull_secret"],
        account=said["account"],
        models=models,
        levels=said["level"],
        adopts=tuple(_pair(each, "NAMESPACE=QUEUE") for each in said["adopt"]),
        home=home,
    )
    return call.daemon.add_kubernetes(wanted)


def _refuse(said: Mapping[str, Any], theirs: Set[str], kind: str) -> None:
    """Options of the other kind would be forgotten without a word."""
    given = sorted(name for name in theirs if said[name] not in {None, False, (), "none"})
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} is for {kind} clusters")


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


def _pair(text: str, form: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise click.BadParameter(f"{text}: write {form}")
    return name, value
