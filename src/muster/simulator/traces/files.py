"""Where traces lie, and their rows. Traces are not part of the project: it downloads nothing."""

import csv
import gzip
import io
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from muster.model.errors import MusterError

FOLDER_VARIABLE = "MUSTER_TRACES"

PUBLISHERS: Mapping[str, str] = {
    "openb": "Alibaba, github.com/alibaba/clusterdata, cluster-trace-gpu-v2023",
    "fgd_expected": "HKUST, github.com/hkust-adsl/kubernetes-scheduler-simulator, expected_results",
    "fgd_sequences": "our own: the order of arrival in the published runs, by seed",
    "philly": "Microsoft, github.com/msr-fiddle/philly-traces (82k: github.com/petuum/adaptdl)",
    "helios": "SenseTime, github.com/S-Lab-System-Group/HeliosData",
    "itp_microsoft2021": "Microsoft, github.com/microsoft/elasticflow-traces",
    "muri": "Peking University, github.com/Rivendile/Muri, simulator/trace-data",
}
"""Who publishes what lies in which part of the folder."""


class TraceAbsentError(MusterError):
    """A trace is not where it should be."""

    def __init__(self, path: Path) -> None:
        publisher = PUBLISHERS.get(path.parent.name) or PUBLISHERS.get(path.name)
        whence = f" It is published by {publisher}." if publisher else ""
        super().__init__(
            f"there is no trace at {path}.{whence} Get it there, and name the folder that holds"
            f" {path.parent.name}/{path.name} with {FOLDER_VARIABLE}=folder"
        )
        self.path = path


def folder(named: str | None = None) -> Path:
    """The folder with all traces: as named, else by the environment."""
    found = named or os.environ.get(FOLDER_VARIABLE)
    if not found:
        known = "; ".join(f"{part}: {publisher}" for part, publisher in PUBLISHERS.items())
        raise MusterError(
            f"say where the traces are with {FOLDER_VARIABLE}=folder. They are published by others"
            f" and not kept here ({known})"
        )
    return Path(found)


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file, packed by gzip or alone in a zip archive or as it is."""
    if not path.exists():
        raise TraceAbsentError(path)
    match path.suffix:
        case ".gz":
            with gzip.open(path, "rt", encoding="utf-8", newline="") as packed:
                yield from packed
        case ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as member:
                yield from io.TextIOWrapper(member, encoding="utf-8", newline="")
        case _:
            with path.open(encoding="utf-8", newline="") as plain:
                yield from plain


Row = Mapping[str, str]


def rows(text: Iterable[str], separator: str = ",") -> Iterator[Row]:
    """Rows under the names in the first line; lines that begin with # are remarks."""
    lines = (line for line in text if not line.startswith("#"))
    for row in csv.DictReader(lines, delimiter=separator):
        yield {name: value or "" for name, value in row.items() if name}
