"""The traces of `bench jct`: jobs by virtual cluster, and how large each is taken to be."""

import csv
import gzip
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

GPUS_PER_NODE = 8
MEAN_LOAD = 0.8
"""Where a trace does not say how large a cluster was: so that this part of it would be in use."""


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


class MissingTraceError(Exception):
    """The traces are not part of this project."""

    def __init__(self, wanted: Path | None) -> None:
        where = "MUSTER_TRACES is not set" if wanted is None else f"{wanted} is not there"
        super().__init__(
            f"{where}. Set MUSTER_TRACES to a folder that has helios/helios_venus_2vc_sept.csv.gz "
            "(from github.com/S-Lab-System-Group/HeliosData), "
            "itp_microsoft2021/itp_raw_10clusters.csv.gz (github.com/microsoft/elasticflow-traces) "
            "and philly/philly_pollux_82k.csv.gz (github.com/petuum/adaptdl, branch "
            "osdi21-artifact; VC sizes from github.com/S-Lab-System-Group/HeliosArtifact)"
        )


def folder() -> Path:
    """Where the traces are."""
    named = os.environ.get("MUSTER_TRACES") or os.environ.get("TRACES")
    path = Path(named) if named else None
    if path is None or not path.is_dir():
        raise MissingTraceError(path)
    return path


def venus(where: Path) -> list[Park]:
    """Two virtual clusters of Helios' Venus, September 2020, with the nodes that they had."""
    rows = (
        Row(
            number=number,
            at_s=int(row["submit_time"]) // 1_000_000,
            lasts_s=_seconds(row["duration_s"]),
            gpus=int(row["num_chips"]),
            park=row["tenant"],
            user=row["user"],
        )
        for number, row in enumerate(_lines(where / "helios" / "helios_venus_2vc_sept.csv.gz"))
    )
    nodes = {"vcvGl": 20, "vcvlY": 2}
    return _parks(rows, nodes.get)


def itp(where: Path) -> list[Park]:
    """Ten clusters of Microsoft's ITP, 2021; nobody says how large they were."""
    path = where / "itp_microsoft2021" / "itp_raw_10clusters.csv.gz"
    rows = (
        Row(
            number=number,
            at_s=int(float(row["submission_time_s"])),
            lasts_s=_seconds(row["duration_s"]),
            gpus=int(row["num_gpu"]),
            park=row["cluster"],
        )
        for number, row in enumerate(_lines(path))
    )
    return _parks(rows, lambda _: None)


def philly(where: Path) -> list[Park]:
    """Philly's virtual clusters as large as the authors of Helios took them to be."""
    path = where / "philly" / "philly_vc_nodes_helios.csv.gz"
    nodes = {row["vc"]: int(row["node num"]) for row in _lines(path)}
    return _parks(_philly_rows(where), nodes.get)


def _philly_rows(where: Path) -> Iterator[Row]:
    for number, row in enumerate(_lines(where / "philly" / "philly_pollux_82k.csv.gz")):
        at = datetime.fromisoformat(row["submit_time_utc"]).replace(tzinfo=UTC)
        yield Row(
            number=number,
            at_s=int(at.timestamp()),
            lasts_s=_seconds(row["duration_s"]),
            gpus=int(row["num_gpus"]),
            park=row["vc"],
        )


def _seconds(text: str) -> int:
    return max(1, round(float(text)))


def _lines(path: Path) -> Iterator[Mapping[str, str]]:
    if not path.exists():
        raise MissingTraceError(path)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(line for line in text if not line.startswith("#"))


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
