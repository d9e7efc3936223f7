"""What `muster simulate` and `muster compare` ask for: a trace, machines, rules, misfortunes."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from muster.doors.cli.surroundings import Call
from muster.model.value import DAY, Duration, Instant, replace

if TYPE_CHECKING:
    from muster.api.jobs import JobDocument
    from muster.model.cluster import Node
    from muster.model.site import Site
    from muster.simulator.outages import Outage, OutagePeriod
    from muster.simulator.rehearsal import Scenario
    from muster.simulator.traces.traced import TracedJob

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FORMATS = "openb philly helios itp muri swf sacct kubernetes csv history".split()


def scenario_options(command: F) -> F:
    """Everything but the rules, which `simulate` and `compare` ask for in their own way."""
    wraps: tuple[Callable[[F], F], ...] = (
        click.argument("trace", required=False, metavar="[TRACE]", type=FILE),
        click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            help="What TRACE is; csv if not said. `history`: no file, but this installation's own.",
        ),
        click.option("--nodes", type=click.IntRange(min=1), help="So many pretend nodes."),
        click.option("--gpus", default="0", metavar="SPEC", help="GPUs of each: 8xA100-80GB."),
        click.option("--pool", default="", help="The pool of these nodes."),
        click.option(
            "--cluster", type=FILE, help="A file of pretend nodes instead: YAML, or openb's table."
        ),
        click.option("--outages", type=FILE, help="A file with node,from,to: when nodes are down."),
        click.option("--mtbf", metavar="TIME", help="Each node fails so often in the mean: 30d."),
        click.option("--repair", metavar="TIME", default="2h", help="How long a repair takes."),
        click.option(
            "--spot-interruptions",
            "spot",
            metavar="TIME",
            help="Each node of a spot pool is taken away so often in the mean: 12h.",
        ),
        click.option(
            "--checkpoint-every",
            "saves",
            metavar="TIME",
            help="Jobs write a checkpoint this often; without it a stopped job starts over.",
        ),
        click.option("--seed", type=int, default=1, help="Of what is drawn by chance."),
        click.option("--speed", type=float, default=1.0, help="Jobs come so many times as fast."),
        click.option("--until", metavar="TIME", help="Stop so long after the beginning: 30d."),
        click.option("--jobs", type=click.IntRange(min=1), help="Only the first so many jobs."),
    )
    for wrap in reversed(wraps):
        command = wrap(command)
    return command


def scenario_of(call: Call, chosen: dict[str, Any], site: "Site") -> "Scenario":
    """What is to be simulated, under these rules."""
    from muster.simulator.rehearsal import Scenario, fitted  # noqa: PLC0415  only to simulate
    from muster.simulator.workload import checkpointing, faster, workload  # noqa: PLC0415  so

    nodes = _nodes(call, chosen, site)
    most = max((len(node.devices) for node in nodes), default=0)
    given = faster(workload(_jobs(call, chosen), most), chosen["speed"])
    if (every := _span(chosen["saves"], "--checkpoint-every")) is not None:
        given = checkpointing(given, every)
    arrivals = given.arrivals[: chosen["jobs"]]
    if not arrivals:
        raise click.UsageError("There are no jobs in this trace.")
    site, fitting = fitted(site, arrivals)
    until = _span(chosen["until"], "--until")
    begin = arrivals[0].at
    scenario = Scenario(
        site=site,
        nodes=nodes,
        arrivals=fitting,
        lasts=given.lasts,
        until=None if until is None else Instant(begin + until),
    )
    return replace(scenario, outages=tuple(_outages(chosen, scenario)))


def is_live(chosen: dict[str, Any]) -> bool:
    """Is it about what this installation did itself?"""
    if chosen["trace"] is None and chosen["form"] not in {"history", None}:
        raise click.UsageError("Name the file of the trace.")
    return chosen["trace"] is None


def site_of(call: Call, file: Path | None, *, live: bool) -> "Site":
    """The rules in a file; without one those in force here if they are wanted, else usual ones."""
    from muster.doors.config.default import DEFAULT_SITE  # noqa: PLC0415  only to simulate
    from muster.doors.config.parse import site_from  # noqa: PLC0415  the same

    if file is not None:
        return site_from(file.read_text(encoding="utf-8"))
    return site_from(call.client.site()) if live else DEFAULT_SITE


def changed(site: "Site", changes: Sequence[str]) -> "Site":
    """The site with knobs turned: `policy.packing=spread`, `policy.order.short=4000`."""
    from muster.doors.config.parse import site_from  # noqa: PLC0415  only to simulate
    from muster.doors.config.show import site_text  # noqa: PLC0415  the same

    if not changes:
        return site
    import yaml  # noqa: PLC0415  slow to import

    # Every word stays as it is written: the file's own reader knows what it means.
    tree: dict[str, Any] = yaml.load(site_text(site), Loader=yaml.BaseLoader) or {}  # noqa: S506  makes texts only
    for change in changes:
        way, equals, value = change.partition("=")
        keys = way.strip().split(".")
        if not equals or not all(keys):
            raise click.UsageError(f"{change!r}: write KEY=VALUE, such as policy.packing=spread.")
        _turn(tree, keys, value.strip())
    return site_from(yaml.safe_dump(tree, sort_keys=False))


def _turn(tree: dict[str, Any], keys: Sequence[str], value: str) -> None:
    for key in keys[:-1]:
        below: Any = tree.setdefault(key, {})
        if not isinstance(below, dict):
            raise click.UsageError(f"There is no key below {key!r} in the configuration.")
        tree = cast("dict[str, Any]", below)
    tree[keys[-1]] = value


def _jobs(call: Call, chosen: dict[str, Any]) -> "Iterator[TracedJob]":
    from muster.simulator.workload import jobs_in, past_jobs  # noqa: PLC0415  only to simulate

    trace: Path | None = chosen["trace"]
    if trace is None:
        return past_jobs(_ended(call))
    if chosen["form"] == "history":
        raise click.UsageError("--format history takes no file: it is this installation's own.")
    return jobs_in(trace, chosen["form"] or "csv")


def _ended(call: Call) -> "Iterator[JobDocument]":
    from muster.api.pages import JobFilter  # noqa: PLC0415  only here

    states = ("cancelled", "completed", "failed")
    return call.client.all_jobs(JobFilter(states=states, ended=True, limit=1_000))


def _nodes(call: Call, chosen: dict[str, Any], site: "Site") -> "tuple[Node, ...]":
    from muster.model.rack import Rack  # noqa: PLC0415  the same
    from muster.simulator.nodes import as_seen, made, nodes_in  # noqa: PLC0415  the same

    if chosen["cluster"] is not None:
        if chosen["nodes"] is not None:
            raise click.UsageError("Either --nodes or --cluster, not both.")
        return nodes_in(chosen["cluster"], site)
    if chosen["nodes"] is not None:
        rack = Rack(nodes=chosen["nodes"], gpus=chosen["gpus"], pool=chosen["pool"])
        return tuple(made((rack,), site))
    if chosen["gpus"] != "0":
        raise click.UsageError("--gpus goes with --nodes; say how many nodes.")
    return as_seen(call.client.nodes())


def _outages(chosen: dict[str, Any], scenario: "Scenario") -> "list[Outage]":
    from muster.simulator.outages import (  # noqa: PLC0415  only to simulate
        Failures,
        Interruptions,
        drawn,
        interruptions,
        outages_from,
    )

    found: list[Outage] = []
    begin = scenario.arrivals[0].at
    if chosen["outages"] is not None:
        found += outages_from(chosen["outages"].read_text(encoding="utf-8"), begin)
    repair = _span(chosen["repair"], "--repair") or Duration(1)
    mtbf, spot = _span(chosen["mtbf"], "--mtbf"), _span(chosen["spot"], "--spot-interruptions")
    if mtbf is None and spot is None:
        return found
    span = _whole_time(scenario)
    if mtbf is not None:
        found += drawn(scenario.nodes, Failures(mtbf=mtbf, repair=repair), span, chosen["seed"])
    if spot is not None:
        on_spot = Interruptions(every=spot)
        found += interruptions(scenario.nodes, scenario.site.pools, on_spot, span, chosen["seed"])
    return found


def _whole_time(scenario: "Scenario") -> "OutagePeriod":
    """Misfortunes may come as long as jobs may run: longer than they take to arrive."""
    from muster.simulator.outages import OutagePeriod  # noqa: PLC0415  only to simulate

    begin, last = scenario.arrivals[0].at, scenario.arrivals[-1].at
    end = scenario.until or Instant(last + max(30 * DAY, (last - begin) // 2))
    return OutagePeriod(begins_at=begin, ends_at=end)


def _span(text: str | None, option: str) -> Duration | None:
    from muster.doors.units import BadTextError, duration  # noqa: PLC0415  only to simulate

    if text is None:
        return None
    try:
        return duration(text)
    except BadTextError as wrong:
        raise click.UsageError(f"{option}: {wrong}") from wrong
