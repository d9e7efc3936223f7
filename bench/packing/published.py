"""What is given: the trace, the order of arrival in the published runs, and their curves.

The orders are NumPy archives with two arrays for each seed: `pods_` and `noderank_`.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.packing.protocol import POINTS, Order, Workload, task_of
from muster.simulator.traces import openb
from muster.simulator.traces.files import TraceAbsentError, lines, rows

NODES = Path("openb/openb_node_list_gpu_node.csv.gz")
CURVES = Path("fgd_expected/analysis_allo_discrete.csv.gz")
ORDERS = Path("fgd_sequences")

Curves = Mapping[tuple[str, str, int], list[float]]
"""By workload, policy and seed."""


def workload(name: str, folder: Path, orders: Path) -> Workload:
    """One of the 17 workloads, with its runs."""
    nodes = sorted(openb.nodes(rows(lines(folder / NODES))), key=lambda node: node.name)
    listed = rows(lines(folder / f"openb/openb_pod_list_{name}.csv.gz"))
    jobs = sorted(openb.jobs(listed), key=lambda job: job.name)
    return Workload(tuple(nodes), tuple(map(task_of, jobs)), orders_in(orders / f"{name}.npz"))


def orders_in(path: Path) -> dict[int, Order]:
    """The runs of one workload by seed: those that the archive has."""
    if not path.exists():
        raise TraceAbsentError(path)
    with np.load(path) as found:
        seeds = sorted(int(each.removeprefix("pods_")) for each in found if each[:5] == "pods_")
        return {
            seed: Order(found[f"pods_{seed}"].tolist(), found[f"noderank_{seed}"].tolist())
            for seed in seeds
        }


def curves(folder: Path) -> Curves:
    """The allocation curves of the published runs."""
    found: dict[tuple[str, str, int], list[float]] = {}
    for row in rows(lines(folder / CURVES)):
        name = row["workload"].removeprefix("openb_pod_list_")
        policy = row["sc_policy"].partition("-")[2]
        points = [float(row[str(point)]) for point in range(POINTS)]
        found[name, policy, int(row["seed"])] = points
    return found
