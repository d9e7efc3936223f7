"""`muster simulate`: what would have happened."""

from pathlib import Path
from typing import Any

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
from muster.doors.cli.screen.printing import show_one
from muster.doors.cli.surroundings import Call


@click.command(
    epilog=example(
        "muster simulate --format history --site cluster.yaml",
        "muster simulate jobs.csv --nodes 64 --set policy.packing=spread",
        "muster simulate jobs.csv --cluster nodes.yaml --mtbf 30d --repair 4h -o json",
    )
)
@scenario_options
@click.option(
    "--site",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The rules: a configuration file, as `muster apply` takes it.",
)
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Turn a knob of these rules."
)
@document_options
@click.pass_obj
def simulate(call: Call, *, site: Path | None, changes: tuple[str, ...], **chosen: Any) -> None:
    """Run jobs through the rules of a configuration in pretend time, and report.

    The jobs come from TRACE, or from this installation's own history; the machines are pretend
    ones, or those that this installation has now. Nothing is done to any real job or machine.
    """
    # The simulator is the whole controller: only who simulates loads it.
    from muster.doors.cli.rehearse.report import report_lines  # noqa: PLC0415
    from muster.simulator.rehearsal import rehearse  # noqa: PLC0415

    rules = changed(site_of(call, site, live=is_live(chosen)), changes)
    scenario = scenario_of(call, chosen, rules)
    with Bar(call.around.environ) as bar:
        report = rehearse(scenario, bar.watch)
    show_one(call, report, lambda: report_lines(report, call.screen), name=report.name)
