"""`muster compare`: several sets of rules on the same jobs, side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muster.doors.cli.options import document_options, example
from muster.doors.cli.rehearse.progress import Bar
from muster.doors.cli.rehearse.scenario import (
    changed,
    is_live,
    scenario_of,
    scenario_options,
    site_of,
)
from muster.doors.cli.screen.printing import note, say_lines, show_data
from muster.doors.cli.surroundings import Call
from muster.model.value import replace

if TYPE_CHECKING:
    from muster.model.site import Site
    from muster.simulator.report import Report

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(
    epilog=example(
        "muster compare jobs.csv --nodes 64 --policy a.yaml --policy b.yaml",
        "muster compare --set spread:policy.packing=spread --html report.html",
        "muster compare jobs.csv --set short:policy.order.short=9000 --svg plots",
    )
)
@scenario_options
@click.option(
    "--policy",
    "files",
    multiple=True,
    type=FILE,
    help="A configuration file to compare; named after the file.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME:KEY=VALUE",
    help="A variant of the first rules, by its name, with a knob turned; may be repeated.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page.")
@click.option("--svg", type=FOLDER, metavar="DIR", help="Write the plots as SVG files.")
@click.option("--png", type=FOLDER, metavar="DIR", help="Write the plots as PNG files.")
@document_options
@click.pass_obj
def compare(
    call: Call, *, files: tuple[Path, ...], changes: tuple[str, ...], **chosen: Any
) -> None:
    """Run the same jobs under several sets of rules, and put the results side by side.

    Without --policy, the first rules are those in force here for the history of this installation,
    else the usual ones. The best figure of each line has a star.
    """
    # The simulator is the whole controller: only who simulates loads it.
    from muster.doors.cli.rehearse.report import compared  # noqa: PLC0415

    plots = {kind: chosen.pop(kind) for kind in ("html", "svg", "png")}
    rules = _rules(call, files, changes, live=is_live(chosen))
    reports = [_report(call, name, site, chosen) for name, site in rules.items()]
    if call.look.is_table:
        say_lines(compared(reports, call.screen))
    else:
        show_data(call, reports)
    _write(reports, **plots)


def _rules(
    call: Call, files: Sequence[Path], changes: Sequence[str], *, live: bool
) -> "dict[str, Site]":
    """Each set of rules by its name; the first is what variants begin with."""
    found = {file.stem: site_of(call, file, live=live) for file in files}
    if len(found) < len(files):
        raise click.UsageError("Two of these files have the same name; call them differently.")
    if not found:
        found["usual" if not live else "in force"] = site_of(call, None, live=live)
    first = next(iter(found.values()))
    for name, turned in _variants(changes).items():
        found[name] = changed(found.get(name, first), turned)
    if len(found) < 2:
        raise click.UsageError("There is nothing to compare; name another --policy, or --set.")
    return found


def _variants(changes: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for change in changes:
        name, colon, knob = change.partition(":")
        if not colon or not name or "=" in name:
            text = f"{change!r}: write NAME:KEY=VALUE, such as spread:policy.packing=spread."
            raise click.UsageError(text)
        found.setdefault(name, []).append(knob)
    return found


def _report(call: Call, name: str, site: "Site", chosen: dict[str, Any]) -> "Report":
    from muster.simulator.rehearsal import rehearse  # noqa: PLC0415  only to simulate

    scenario = replace(scenario_of(call, chosen, site), name=name)
    with Bar(call.around.environ, name) as bar:
        return rehearse(scenario, bar.watch)


def _write(
    reports: "Sequence[Report]", *, html: Path | None, svg: Path | None, png: Path | None
) -> None:
    from muster.simulator.charts import charts_of  # noqa: PLC0415  only where plots are wanted
    from muster.simulator.page import page_of  # noqa: PLC0415  the same
    from muster.simulator.plots import write_png, write_svg  # noqa: PLC0415  the same

    if html is not None:
        title = " and ".join(report.name for report in reports)
        html.write_text(page_of(reports, title=f"Muster: {title}"), encoding="utf-8")
        note(f"Written: {html}")
    if svg is not None:
        note(f"Written: {len(write_svg(charts_of(reports), svg))} plots in {svg}")
    if png is not None:
        note(f"Written: {len(write_png(charts_of(reports), png))} plots in {png}")
