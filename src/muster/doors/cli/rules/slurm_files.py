"""Slurm's configuration files to ours, and back."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muster.doors.cli.options import example
from muster.doors.cli.screen.printing import note, say
from muster.doors.cli.screen.text import counted
from muster.doors.cli.surroundings import Call
from muster.model.value import GpuModel

if TYPE_CHECKING:
    from muster.doors.slurm.conf.found import Files, Note
    from muster.doors.slurm.conf.lines import ConfLine

FILES = click.Path(exists=True, dir_okay=False, path_type=Path)
MOST_INCLUDED = 20


@click.command(
    name="slurm",
    epilog=example(
        "muster import /etc/slurm/slurm.conf /etc/slurm/gres.conf > cluster.yaml",
        "muster import slurm.conf gres.conf lab.cfg qos.txt --nodes nodes.yaml",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILES)
@click.option(
    "--nodes",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write its nodes, for muster up --pretend and muster simulate --cluster.",
)
@click.option(
    "--gpu",
    "models",
    multiple=True,
    metavar="TYPE=MODEL",
    help="What a GPU type of Slurm is: a100=A100-80GB.",
)
def import_slurm(files: tuple[Path, ...], nodes: Path | None, models: tuple[str, ...]) -> None:
    """Make a configuration file of Slurm's files, and list what has no counterpart.

    FILE is slurm.conf, gres.conf, topology.conf, the output of `sacctmgr dump CLUSTER`, or that of
    `sacctmgr -P show qos`; each is known by what is in it. The configuration is printed, ready for
    `muster apply -f`; notes go to stderr.
    """
    from muster.doors.config.show import site_text  # noqa: PLC0415  only here
    from muster.doors.slurm.conf.importing import imported  # noqa: PLC0415  the same

    made = imported(_read(files, models))
    say(site_text(made.site).rstrip("\n"))
    if nodes is not None:
        nodes.write_text(_nodes_text(made.racks), encoding="utf-8")
        note(f"{counted(sum(rack.count for rack in made.racks), 'node')} are in {nodes}.")
    tell(made.notes)


@click.command(
    name="slurm",
    epilog=example(
        "muster export slurm out", "muster export slurm out --site c.yaml --nodes n.yaml"
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--site", "site_file", type=FILES, help="Another configuration than that in force.")
@click.option("--nodes", "nodes_file", type=FILES, help="Pretend nodes instead of those there are.")
@click.option("--name", default="muster", help="What Slurm's cluster is called.")
@click.pass_obj
def export_slurm(call: Call, folder: Path, **chosen: Any) -> None:
    """Write slurm.conf, gres.conf, the accounts and the QOS, and list what Slurm cannot do.

    accounting.sh tells a slurmdbd of the QOS and accounts.
    """
    from muster.doors.config.parse import site_from  # noqa: PLC0415  only here
    from muster.doors.slurm.conf.exporting import exported  # noqa: PLC0415  the same
    from muster.simulator.nodes import as_seen, nodes_in  # noqa: PLC0415  the same

    site_file: Path | None = chosen["site_file"]
    site = site_from(
        call.client.site() if site_file is None else site_file.read_text(encoding="utf-8")
    )
    given: Path | None = chosen["nodes_file"]
    nodes = as_seen(call.client.nodes()) if given is None else nodes_in(given, site)
    made = exported(site, nodes, chosen["name"])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in made.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    say(f"{len(made.files)} files are in {folder}: {' '.join(sorted(made.files))}")
    tell(made.notes)


def tell(notes: "Iterable[Note]") -> None:
    found = list(notes)
    if found:
        note(f"Not taken over as it is ({counted(len(found), 'note')}):")
    for each in found:
        note(f"  {each.about}: {each.text}")


def _read(paths: tuple[Path, ...], models: tuple[str, ...]) -> "Files":
    """Each file as what it is by its contents."""
    from muster.doors.slurm.conf.association_file import (  # noqa: PLC0415  only here
        entries_of,
        is_association_file,
    )
    from muster.doors.slurm.conf.found import Files  # noqa: PLC0415  the same
    from muster.doors.slurm.conf.queues_of import rows_of  # noqa: PLC0415  the same

    found: dict[str, list[Any]] = {
        "conf": [], "gres": [], "topology": [], "accounts": [], "classes": []
    }  # fmt: skip
    for path in paths:
        text = _text(path)
        if is_association_file(text):
            found["accounts"] += entries_of(text)
        elif text.lstrip().lower().startswith("name|"):
            found["classes"] += rows_of(text)
        else:
            lines = list(_lines(path, text))
            found[_kind(path, lines)] += lines
    parts = {name: tuple(each) for name, each in found.items()}
    return Files(**parts, models=_models(models))


def _kind(path: Path, lines: "list[ConfLine]") -> str:
    firsts = {line.first for line in lines}
    if "switchname" in firsts:
        return "topology"
    if "gres" in path.name or firsts <= {"autodetect", "name"} or _names_gres(lines):
        return "gres"
    return "conf"


def _names_gres(lines: "list[ConfLine]") -> bool:
    return all("name" in line.fields or line.first == "autodetect" for line in lines)


def _lines(path: Path, text: str, depth: int = 0) -> "Iterator[ConfLine]":
    """With the files that it includes in their places."""
    from muster.doors.slurm.conf.lines import lines_of  # noqa: PLC0415  only here

    for line in lines_of(text):
        if line.include is None:
            yield line
            continue
        if depth > MOST_INCLUDED:
            raise click.UsageError(f"{path}: files include each other without end")
        other = path.parent / line.include
        yield from _lines(other, _text(other), depth + 1)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise click.UsageError(f"{path} cannot be read: {wrong}") from wrong


def _models(texts: tuple[str, ...]) -> dict[str, GpuModel]:
    found: dict[str, GpuModel] = {}
    for text in texts:
        kind, equals, model = text.partition("=")
        if not equals or not model:
            raise click.UsageError(f"--gpu {text!r}: write TYPE=MODEL, such as a100=A100-80GB.")
        found[kind] = GpuModel(model)
    return found


def _nodes_text(racks: Iterable[Any]) -> str:
    """As YAML that is JSON at the same time, a rack a line."""
    import msgspec  # noqa: PLC0415  only here

    lines = [msgspec.json.encode(_short(rack)).decode() for rack in racks]
    return "".join(f"- {line}\n" for line in lines) or "[]\n"


def _short(rack: Any) -> dict[str, Any]:
    """Without what has its default value."""
    usual = type(rack)()
    return {
        name: value
        for name in rack.__struct_fields__
        if (value := getattr(rack, name)) != getattr(usual, name)
    }
