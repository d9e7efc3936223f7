"""Jobs as `squeue --json` writes them, in the shape of the REST API v0.0.38."""

from collections.abc import Iterable
from math import ceil
from typing import Any

import msgspec

from muster.doors.slurm.lists import job_facts, jobs
from muster.doors.slurm.lists.job_facts import unmet_text
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.words import states
from muster.doors.slurm.words.hostlist import compressed, ranges_text
from muster.doors.slurm.words.users import group_of, uid_of
from muster.model.placement import Allocation
from muster.model.value import Instant

META = {
    "plugin": {"type": "openapi/v0.0.38", "name": "Slurm OpenAPI v0.0.38"},
    "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"},
}


def jobs_json(rows: Iterable[JobRow]) -> str:
    """The whole document."""
    document = {"meta": META, "errors": [], "jobs": [job_document(row) for row in rows]}
    return msgspec.json.format(msgspec.json.encode(document), indent=3).decode() + "\n"


def job_document(row: JobRow) -> dict[str, Any]:
    """One job; what no job here can have has Slurm's word for nothing."""
    return {**NOTHING, **_who(row), **_when(row), **_where(row), **_asked(row), **_what(row)}


NOTHING: dict[str, Any] = {
    **dict.fromkeys(
        "admin_comment batch_features burst_buffer burst_buffer_state cluster_features container "
        "cpus_per_tres federation_origin federation_siblings_active federation_siblings_viable "
        "het_job_id_set licenses mcs_label memory_per_tres prefer state_description system_comment "
        "tres_bind tres_freq tres_per_socket".split(),
        "",
    ),
    **dict.fromkeys(
        "association_id delay_boot derived_exit_code het_job_id het_job_offset max_cpus "
        "minimum_tmp_disk_per_node pre_sus_time preempt_time resize_time sockets_per_board "
        "suspend_time tasks_per_board time_minimum".split(),
        0,
    ),
    **dict.fromkeys(
        "core_spec cores_per_socket cpu_frequency_governor cpu_frequency_maximum "
        "cpu_frequency_minimum cpus_per_task memory_per_cpu profile shared sockets_per_node "
        "tasks_per_core tasks_per_socket thread_spec threads_per_core".split()
    ),
    "contiguous": False,
    "reboot": False,
    "show_flags": ["SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"],
}


def _who(row: JobRow) -> dict[str, Any]:
    job, spec = row.job, row.job.spec
    part = spec.array
    group, number = group_of(spec.user)
    return {
        "account": spec.queue,
        "array_job_id": 0 if part is None else part.array,
        "array_task_id": None if part is None or row.indices else part.index,
        "array_task_string": jobs.index_text(row) if row.indices else "",
        "array_max_tasks": (part.at_once if part else None) or 0,
        "cluster": row.listing.cluster,
        "comment": row.label("comment") or "",
        "group_id": number,
        "group_name": group,
        "job_id": job.id,
        "job_state": row.state.name,
        "name": spec.name,
        "nice": -spec.priority or None,
        "partition": jobs.partition(row),
        "priority": jobs.priority(row),
        "qos": spec.job_class,
        "restart_cnt": max(0, job.attempt - 1),
        "requeue": spec.retry.requeue,
        "resv_name": row.job.spec.reservation or "",
        "state_reason": jobs.reason(row),
        "user_id": uid_of(spec.user),
        "user_name": spec.user,
        "wckey": row.label("wckey") or "",
    }


def _when(row: JobRow) -> dict[str, Any]:
    limit = jobs.time_limit(row)
    return {
        "accrue_time": _seconds(job_facts.accrues_since(row)),
        "submit_time": _seconds(row.job.submitted_at),
        "eligible_time": _seconds(job_facts.eligible_at(row)),
        "last_sched_evaluation": _seconds(row.listing.now),
        "start_time": _seconds(jobs.expected_at(row)),
        "end_time": _seconds(jobs.ends_at(row)),
        "deadline": _seconds(row.job.spec.deadline),
        "time_limit": None if limit is None else limit // 60_000,
    }


def _where(row: JobRow) -> dict[str, Any]:
    there = jobs.nodes(row)
    found: dict[str, Any] = {
        "batch_flag": jobs.is_batch(row),
        "batch_host": there[0] if there else "",
        "billable_tres": float(jobs.cpus(row)) if there else None,
        "nodes": jobs.node_list(row),
        "node_count": jobs.node_count(row),
        "max_nodes": 0 if there else jobs.most_nodes(row),
        "cpus": jobs.cpus(row),
        "tasks": jobs.task_count(row),
        "gres_detail": _gres_detail(row),
        "tres_alloc_str": jobs.tres(row, typed=True) if there else "",
    }
    if row.view.allocation is not None:
        found["job_resources"] = _resources(row.view.allocation)
    return found


def _gres_detail(row: JobRow) -> list[str]:
    """`gpu:a100:2(IDX:0-1)` for each node on which it holds devices."""
    held = row.view.allocation
    by_node: dict[str, dict[str, list[int]]] = {}
    for placed in held.placements if held is not None else ():
        node = row.listing.nodes.get(placed.node)
        devices = {each.id: each for each in node.devices} if node else {}
        for share in placed.devices:
            if share.device in devices:
                device = devices[share.device]
                kind = row.listing.gpu_type(device.model)
                by_node.setdefault(placed.node, {}).setdefault(kind, []).append(device.index)
    return [
        ",".join(
            f"gpu:{kind}:{len(found)}(IDX:{ranges_text(tuple(sorted(found)))})"
            for kind, found in sorted(by_node[name].items())
        )
        for name in sorted(by_node, key=jobs.by_number)
    ]


def _resources(held: Allocation) -> dict[str, Any]:
    """What it holds of each node. Cores have no numbers here: they are counted from zero."""
    nodes = sorted({placed.node for placed in held.placements}, key=jobs.by_number)
    documents = [_node_document(node, held) for node in nodes]
    return {
        "nodes": compressed(nodes),
        "allocated_cores": sum(len(each["sockets"]["0"]["cores"]) for each in documents),
        "allocated_hosts": len(nodes),
        "allocated_nodes": documents,
    }


def _node_document(node: str, held: Allocation) -> dict[str, Any]:
    there = [placed.amount for placed in held.placements if placed.node == node]
    cores = ceil(sum(each.cpu_milli for each in there) / 1_000)
    return {
        "sockets": {"0": {"cores": {str(core): "allocated" for core in range(cores)}}},
        "nodename": node,
        "cpus_used": 0,
        "memory_used": 0,
        "memory_allocated": sum(each.memory_mib for each in there),
    }


def _asked(row: JobRow) -> dict[str, Any]:
    where = row.job.spec.groups[0].where
    per_node = jobs.tres_per_node(row)
    return {
        "excluded_nodes": compressed(where.not_nodes),
        "required_nodes": compressed(where.nodes),
        "features": row.label("features") or "",
        "flags": _flags(row),
        "memory_per_node": jobs.memory_per_node_mib(row) or None,
        "minimum_cpus_per_node": jobs.cpus_per_node(row),
        "tasks_per_node": int(row.label("ntasks-per-node") or 0),
        "tres_per_job": row.label("tres-per-job") or "",
        "tres_per_node": "" if per_node == "N/A" else per_node,
        "tres_per_task": row.label("tres-per-task") or "",
        "tres_req_str": jobs.tres(row, typed=False),
    }


def _flags(row: JobRow) -> list[str]:
    found = {
        "JOB_CPUS_SET": row.label("cpus-per-task") is not None,
        "JOB_WAS_RUNNING": row.job.attempt > 0,
        "JOB_MEM_SET": jobs.memory_per_node_mib(row) > 0,
    }
    return [name for name, is_so in found.items() if is_so]


def _what(row: JobRow) -> dict[str, Any]:
    return {
        "command": row.launch.script_line or "",
        "current_working_directory": row.launch.workdir or "",
        "dependency": unmet_text(row),
        "exit_code": 0 if row.state in states.LIVE else states.exit_status(row.job),
        "standard_error": job_facts.output_file(row, stderr=True),
        "standard_input": job_facts.input_file(row),
        "standard_output": job_facts.output_file(row),
    }


def _seconds(at: Instant | None) -> int:
    return 0 if at is None else at // 1_000
