"""Configuration of Kueue and Volcano to ours, and back."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import yaml

from muster.doors.cli.options import example
from muster.doors.cli.rules.slurm_files import FILES, tell
from muster.doors.cli.screen.printing import say
from muster.doors.cli.surroundings import Call
from muster.model.value import ClusterName

if TYPE_CHECKING:
    from muster.doors.kubernetes.importing.kueue import Exported
    from muster.doors.slurm.conf.found import Imported
    from muster.model.site import Site

HERE = ClusterName("local")
"""The cluster of pools that are imported: this machine's."""


@click.command(
    name="kueue",
    epilog=example(
        "kubectl get -o yaml clusterqueues,localqueues -A > k.yaml",
        "muster import kueue k.yaml > cluster.yaml",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILES)
def import_kueue(files: tuple[Path, ...]) -> None:
    """Make a configuration file of Kueue's objects, and list what has no counterpart.

    FILE has ResourceFlavors, ClusterQueues, Cohorts, LocalQueues and WorkloadPriorityClasses as
    YAML. The configuration is printed, ready for `muster apply -f`; notes go to stderr.
    """
    from muster.doors.kubernetes.importing.kueue import imported  # noqa: PLC0415  only here

    _import(files, imported)


@click.command(name="volcano", epilog=example("muster import volcano queues.yaml > cluster.yaml"))
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILES)
def import_volcano(files: tuple[Path, ...]) -> None:
    """Make a configuration file of queues of Volcano or KAI, and list what has no counterpart.

    FILE has Queues, and perhaps PodGroups and Jobs, as YAML. The configuration is printed, ready
    for `muster apply -f`; notes go to stderr.
    """
    from muster.doors.kubernetes.importing.volcano import imported  # noqa: PLC0415  only here

    _import(files, imported)


@click.command(name="kueue", epilog=example("muster export kueue > kueue.yaml"))
@click.option("--site", "site_file", type=FILES, help="Another configuration than that in force.")
@click.pass_obj
def export_kueue(call: Call, site_file: Path | None) -> None:
    """Print queues, pools and classes as objects of Kueue, and list what Kueue cannot do."""
    from muster.doors.kubernetes.importing.kueue import exported  # noqa: PLC0415  only here

    _export(call, site_file, exported)


@click.command(name="volcano", epilog=example("muster export volcano > queues.yaml"))
@click.option("--site", "site_file", type=FILES, help="Another configuration than that in force.")
@click.pass_obj
def export_volcano(call: Call, site_file: Path | None) -> None:
    """Print the queues as those of Volcano, and list what Volcano cannot do."""
    from muster.doors.kubernetes.importing.volcano import exported  # noqa: PLC0415  only here

    _export(call, site_file, exported)


def _import(
    files: tuple[Path, ...],
    imported: "Callable[[Iterable[dict[str, Any]], ClusterName], Imported]",
) -> None:
    from muster.doors.config.show import site_text  # noqa: PLC0415  only here

    made = imported([each for path in files for each in _objects(path)], HERE)
    say(site_text(made.site).rstrip("\n"))
    tell(made.notes)


def _export(call: Call, site_file: Path | None, exported: "Callable[[Site], Exported]") -> None:
    from muster.doors.config.parse import site_from  # noqa: PLC0415  only here

    text = call.client.site() if site_file is None else site_file.read_text(encoding="utf-8")
    made = exported(site_from(text))
    say(yaml.safe_dump_all(made.objects, sort_keys=False).rstrip("\n"))
    tell(made.notes)


def _objects(path: Path) -> list[dict[str, Any]]:
    """Every object of a file; lists are taken apart."""
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as wrong:
        raise click.UsageError(f"{path} cannot be read: {wrong}") from wrong
    return [each for one in documents if one is not None for each in _parts(path, one)]


def _parts(path: Path, document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict) or "kind" not in document:
        raise click.UsageError(f"{path}: it holds something that is no object of Kubernetes")
    found = cast("dict[str, Any]", document)
    return found.get("items") or [] if str(found["kind"]).endswith("List") else [found]
