"""Jobs as `squeue --json` writes them, in the shape of the REST API v0.0.38."""

from collections.abc import Iterable
from typing import Any

import msgspec

from muster.doors.slurm import jobs
from muster.doors.slurm.jobs import JobRow
from muster.doors.slurm.scene import group_of, uid_of
from muster.model.job import Exited
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
    """One job; what we cannot know is left out or has Slurm's word for nothing."""
    return _who(row) | _when(row) | _where(row) | _what(row)


def _who(row: JobRow) -> dict[str, Any]:
    job, spec = row.job, row.job.spec
    part = spec.array
    return {
        "account": spec.queue,
        "array_job_id": 0 if part is None else part.array,
        "array_task_id": None if part is None or row.indices else part.index,
        "array_task_string": jobs.index_text(row) if row.indices else "",
        "array_max_tasks": (part.at_once if part else None) or 0,
        "cluster": row.scene.cluster,
        "comment": row.label("comment") or "",
        "group_id": group_of(spec.user)[1],
        "job_id": job.id,
        "job_state": row.state.name,
        "name": spec.name,
        "partition": jobs.partition(row),
        "priority": jobs.priority(row),
        "qos": spec.job_class,
        "restart_cnt": max(0, job.attempt - 1),
        "requeue": spec.retry.requeue,
        "state_reason": jobs.reason(row),
        "user_id": uid_of(spec.user),
        "user_name": spec.user,
        "wckey": row.label("wckey") or "",
    }


def _when(row: JobRow) -> dict[str, Any]:
    limit = row.job.spec.time_limit
    return {
        "submit_time": _seconds(row.job.submitted_at),
        "eligible_time": _seconds(row.job.begin_at or row.job.submitted_at),
        "start_time": _seconds(jobs.expected_at(row)),
        "end_time": _seconds(jobs.ends_at(row)),
        "deadline": _seconds(row.job.spec.deadline),
        "suspend_time": 0,
        "time_limit": None if limit is None else limit // 60_000,
    }


def _where(row: JobRow) -> dict[str, Any]:
    there = jobs.nodes(row)
    return {
        "batch_flag": True,
        "batch_host": there[0] if there else "",
        "nodes": jobs.node_list(row),
        "node_count": jobs.node_count(row),
        "cpus": jobs.cpus(row),
        "tasks": jobs.task_count(row),
        "cpus_per_task": jobs.cpus_per_task(row),
        "memory_per_node": jobs.memory_per_node_mib(row) or None,
        "tres_req_str": jobs.tres(row, typed=False),
        "tres_alloc_str": jobs.tres(row, typed=True) if there else "",
        "tres_per_node": "" if jobs.tres_per_node(row) == "N/A" else jobs.tres_per_node(row),
        "job_resources": {"nodes": jobs.node_list(row), "allocated_nodes": list(there)},
    }


def _what(row: JobRow) -> dict[str, Any]:
    why = row.job.why
    return {
        "command": row.label("command") or "",
        "current_working_directory": row.launch.workdir or "",
        "dependency": "" if not row.job.spec.after else jobs.dependency_text(row),
        "exit_code": why.code if isinstance(why, Exited) else 0,
        "features": row.label("features") or "",
        "standard_error": jobs.output_file(row, stderr=True),
        "standard_input": row.launch.stdin or "/dev/null",
        "standard_output": jobs.output_file(row),
    }


def _seconds(at: Instant | None) -> int:
    return 0 if at is None else at // 1_000
