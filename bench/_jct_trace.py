"""The traces of `bench jct`: jobs by virtual cluster, and how large each is taken to be."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.simulator.traces import files, helios
from muster.simulator.traces import itp as itp_trace
from muster.simulator.traces import philly as philly_trace
from muster.simulator.traces.traced import TracedJob

GPUS_PER_NODE = 8
MEAN_LOAD = 0.8
"""Where a trace does not say how large a cluster was: so that this part of it would be in use."""

VENUS_NODES = {"vcvGl": 20, "vcvlY": 2}


@dataclass(frozen=True, slots=True)
class Row:
    """One job: seconds since the trace began; `user` is empty where the trace names none."""

    number: int
    at_s: int
    lasts_s: int
    gpus: int
    park: str
    user: str = ""


@dataclass(frozen=True, slots=True)
class Park:
    """A virtual cluster that shares nothing with others, and its jobs in the order of coming."""

    name: str
    nodes: int
    rows: tuple[Row, ...]


def folder() -> Path:
    """Where the traces are; the product says who publishes them if they are not there."""
    return files.folder()


def venus(where: Path) -> list[Park]:
    """Two virtual clusters of Helios' Venus, September 2020, with the nodes that they had."""
    path = where / "helios" / "helios_venus_2vc_sept.csv.gz"
    return _parks(_rows(helios.jobs(_read(path))), VENUS_NODES.get)


def venus_together(where: Path) -> list[Park]:
    """Both on all of their nodes: large gangs among many small jobs."""
    parks = venus(where)
    rows = sorted((row for park in parks for row in park.rows), key=lambda r: (r.at_s, r.number))
    return [Park("both", sum(park.nodes for park in parks), tuple(rows))]


def itp(where: Path) -> list[Park]:
    """Ten clusters of Microsoft's ITP, 2021; nobody says how large they were."""
    path = where / "itp_microsoft2021" / "itp_raw_10clusters.csv.gz"
    return _parks(_rows(itp_trace.jobs(_read(path))), lambda _: None)


def philly(where: Path) -> list[Park]:
    """Philly's virtual clusters as large as the authors of Helios took them to be."""
    sizes = _read(where / "philly" / "philly_vc_nodes_helios.csv.gz")
    nodes = {row["vc"]: int(row["node num"]) for row in sizes}
    path = where / "philly" / "philly_pollux_82k.csv.gz"
    return _parks(_rows(philly_trace.jobs(_read(path))), nodes.get)


def _read(path: Path) -> Iterator[files.Row]:
    return files.rows(files.lines(path))


def _rows(jobs: Iterable[TracedJob]) -> Iterator[Row]:
    """In whole seconds, as the published simulators count."""
    for number, job in enumerate(jobs):
        yield Row(
            number=number,
            at_s=job.submitted_at // 1_000,
            lasts_s=max(1, round((job.duration or 0) / 1_000)),
            gpus=job.tasks * job.gpus,
            park=job.queue,
            user=job.user,
        )


def _parks(rows: Iterable[Row], nodes: Callable[[str], int | None]) -> list[Park]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.park].append(row)
    begin = min(row.at_s for each in found.values() for row in each)
    return [
        Park(name, nodes(name) or _enough(rows), tuple(_from(begin, rows)))
        for name, rows in sorted(found.items())
    ]


def _from(begin: int, rows: Sequence[Row]) -> list[Row]:
    moved = (Row(r.number, r.at_s - begin, r.lasts_s, r.gpus, r.park, r.user) for r in rows)
    return sorted(moved, key=lambda row: (row.at_s, row.number))


def _enough(rows: Sequence[Row]) -> int:
    """As many nodes as the load needs, and no fewer than the largest job."""
    span_s = max(row.at_s for row in rows) - min(row.at_s for row in rows)
    work = sum(row.lasts_s * row.gpus for row in rows)
    gpus = max(row.gpus for row in rows)
    if span_s:
        gpus = max(gpus, work / span_s / MEAN_LOAD)
    return int(-(-gpus // GPUS_PER_NODE))
