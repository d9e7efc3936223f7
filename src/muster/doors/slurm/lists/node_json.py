"""Nodes as `sinfo --json` writes them, in the shape of the REST API v0.0.38."""

from collections.abc import Iterable
from typing import Any

import msgspec

from muster.doors.slurm.call import VERSION
from muster.doors.slurm.lists import node_rows
from muster.doors.slurm.lists.job_json import META
from muster.doors.slurm.lists.node_rows import NodeRow
from muster.model.cluster import NodeState


def nodes_json(rows: Iterable[NodeRow]) -> str:
    """The whole document: nodes, not partitions, with states in small letters."""
    document = {"meta": META, "errors": [], "nodes": [node_document(row) for row in rows]}
    return msgspec.json.format(msgspec.json.encode(document), indent=3).decode() + "\n"


def node_document(row: NodeRow) -> dict[str, Any]:
    node = row.node
    draining = node.state is NodeState.DRAINING
    base = {"drained": "idle", "draining": "mixed"}.get(row.state, row.state)
    features = node_rows.features(row).replace("(null)", "")
    return {
        **NOTHING,
        "architecture": "x86_64",
        "name": node.id,
        "hostname": node.id,
        "address": node.id,
        "state": base,
        "state_flags": ["DRAIN"] if draining else [],
        "cpus": row.cpus,
        "alloc_cpus": row.cpus_used,
        "idle_cpus": row.cpus - row.cpus_used,
        "real_memory": node.memory_mib,
        "alloc_memory": row.used.memory_mib,
        "free_memory": max(0, node.memory_mib - row.used.memory_mib),
        "gres": node_rows.gres(row).replace("(null)", ""),
        "gres_used": node_rows.gres_used(row).replace("(null)", ""),
        "partitions": [node.pool],
        "reason": node.reason,
        "reason_changed_at": (node.drained_at or 0) // 1_000,
        "reason_set_by_user": node.drained_by,
        "features": features,
        "active_features": features,
        "cores": row.cpus,
        "operating_system": node_rows.system(),
        "tres_weighted": float(row.cpus_used),
        "slurmd_version": VERSION.rpartition(" ")[2],
        "tres": node_rows.tres(row),
        "tres_used": node_rows.tres_used(row),
    }


NOTHING: dict[str, Any] = {
    **dict.fromkeys("burstbuffer_network_address comment extra mcs_label".split(), ""),
    **dict.fromkeys(
        "boot_time cpu_binding cpu_load last_busy port reason_changed_at slurmd_start_time "
        "temporary_disk".split(),
        0,
    ),
    **dict.fromkeys("boards sockets threads weight".split(), 1),
    "gres_drained": "N/A",
    "next_state_after_reboot": "invalid",
    "next_state_after_reboot_flags": [],
    "owner": None,
    "reason_set_by_user": None,
}
"""What we do not know of nodes, in Slurm's words."""
