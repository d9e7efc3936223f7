"""What is given: the trace, the order of arrival in the published runs, and their curves.

The orders are NumPy archives: a zip of arrays, each a short header and then plain numbers.
"""

import ast
import struct
import sys
import zipfile
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.packing.protocol import POINTS, Order, Workload, task_of
from muster.simulator.traces import openb
from muster.simulator.traces.files import TraceAbsentError, lines, rows

NODES = Path("openb/openb_node_list_gpu_node.csv.gz")
CURVES = Path("fgd_expected/analysis_allo_discrete.csv.gz")
ORDERS = Path("fgd_sequences")
SEEDS = (42, 43, 44, 45, 46)
_CODES = {"<u2": "H", "<u4": "I", "<i4": "i", "<i8": "q"}
_HEADER = struct.Struct("<6s2BH")

Curves = Mapping[tuple[str, str, int], list[float]]
"""By workload, policy and seed."""


def workload(name: str, folder: Path, orders: Path) -> Workload:
    """One of the 17 workloads, with its runs."""
    nodes = sorted(openb.nodes(rows(lines(folder / NODES))), key=lambda node: node.name)
    listed = rows(lines(folder / f"openb/openb_pod_list_{name}.csv.gz"))
    jobs = sorted(openb.jobs(listed), key=lambda job: job.name)
    found = _arrays(orders / f"{name}.npz")
    by_seed = {seed: Order(found[f"pods_{seed}"], found[f"noderank_{seed}"]) for seed in SEEDS}
    return Workload(tuple(nodes), tuple(map(task_of, jobs)), by_seed)


def curves(folder: Path) -> Curves:
    """The allocation curves of the published runs."""
    found: dict[tuple[str, str, int], list[float]] = {}
    for row in rows(lines(folder / CURVES)):
        name = row["workload"].removeprefix("openb_pod_list_")
        policy = row["sc_policy"].partition("-")[2]
        points = [float(row[str(point)]) for point in range(POINTS)]
        found[name, policy, int(row["seed"])] = points
    return found


def _arrays(path: Path) -> dict[str, Sequence[int]]:
    if not path.exists():
        raise TraceAbsentError(path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in names}


def _array(packed: bytes) -> Sequence[int]:
    _, _, _, length = _HEADER.unpack_from(packed)
    begin = _HEADER.size + length
    header = ast.literal_eval(packed[_HEADER.size : begin].decode("latin-1"))
    numbers = array(_CODES[header["descr"]], packed[begin:])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
