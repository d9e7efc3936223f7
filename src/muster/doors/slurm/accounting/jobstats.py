"""What a job used as Jobstats keeps it in AdminComment, for tools that read it there (pure).

`JS1:` and JSON, compressed and in base64: jobstats, reportseff and Job Defense Shield know it.
"""

import base64
import gzip

import msgspec

from muster.model.efficiency import DeviceUse, JobReport, NodeUse

PREFIX = "JS1:"
NOTHING = f"{PREFIX}None"
SHORT = f"{PREFIX}Short"

SHORTEST_MS = 60_000
"""Of attempts that were over sooner nothing can be said."""


def comment(report: JobReport | None) -> str:
    """What stands in AdminComment of a job that is over; empty while it runs."""
    if report is None or not report.is_over:
        return ""
    if report.elapsed_ms < SHORTEST_MS:
        return SHORT
    if not report.devices and not report.nodes:
        return NOTHING
    # The same report gives the same text: no instant is written into it.
    packed = gzip.compress(msgspec.json.encode(_summary(report)), mtime=0)
    return PREFIX + base64.b64encode(packed).decode("ascii")


def _summary(report: JobReport) -> dict[str, object]:
    nodes = {node.node: node for node in report.nodes}
    names = sorted({*nodes, *(each.node for each in report.devices)})
    return {
        "gpus": len(report.devices),
        "total_time": report.elapsed_ms / 1_000,
        "nodes": {
            name: _node(nodes.get(name), [each for each in report.devices if each.node == name])
            for name in names
        },
    }


def _node(node: NodeUse | None, devices: list[DeviceUse]) -> dict[str, object]:
    found: dict[str, object] = {}
    if node is not None:
        peak = node.memory_peak_bytes or 0
        found = {
            "cpus": max(1, (node.cpu_granted_milli or 0) // 1_000),
            "total_time": (node.cpu_used_ms or 0) / 1_000,
            "total_memory": node.memory_granted_bytes or peak,
            "used_memory": peak,
        }
    numbered = {
        str(place if each.index is None else each.index): each for place, each in enumerate(devices)
    }
    if not numbered:
        return found
    return {
        **found,
        # Readers divide by it.
        "gpu_total_memory": {key: each.memory_bytes or 1 for key, each in numbered.items()},
        "gpu_used_memory": {key: each.memory_peak_bytes or 0 for key, each in numbered.items()},
        "gpu_utilization": {
            key: round(each.means.get("busy", 0) / 10, 1) for key, each in numbered.items()
        },
    }
