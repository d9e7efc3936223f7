"""Jobs as `sacct --json` writes them, in the shape of the REST API dbv0.0.38."""

import signal as signals
from collections.abc import Sequence
from typing import Any

import msgspec

from muster.doors.slurm.accounting import values
from muster.doors.slurm.accounting.records import (
    AcctJob,
    AcctRow,
    RecordKind,
    cancelled_by,
    derived_exit,
    exit_of_row,
    rows_of_job,
    state_of_row,
)
from muster.doors.slurm.lists import jobs
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.users import group_of
from muster.model.history import Used
from muster.model.value import Instant

META = {
    "plugin": {"type": "openapi/dbv0.0.38", "name": "Slurm OpenAPI DB v0.0.38"},
    "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"},
}
NOTHING_FOUND = {
    "description": "Nothing found",
    "error_number": 9003,
    "error": "Nothing found with query",
    "source": "slurmdb_jobs_get",
}
TRES_NUMBERS = {"cpu": 1, "mem": 2, "energy": 3, "node": 4, "billing": 5, "fs/disk": 6, "pages": 8}
GRES_NUMBER = 1_001


def document(records: Sequence[AcctJob]) -> str:
    """The whole answer."""
    errors = [] if records else [NOTHING_FOUND]
    whole = {"meta": META, "errors": errors, "jobs": [job_document(each) for each in records]}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def job_document(record: AcctJob) -> dict[str, Any]:
    """One job with its steps."""
    row, spec = record.row, record.job.spec
    job, *steps = rows_of_job(record)
    asked = jobs.asked_amount(record.job)
    return {
        "account": spec.queue,
        "comment": {"administrator": None, "job": row.label("comment"), "system": None},
        "allocation_nodes": len(values.nodes(job)),
        "array": _array(record),
        "association": _association(record),
        "cluster": row.listing.cluster,
        "constraints": row.label("features") or "",
        "container": row.launch.image,
        "derived_exit_code": _exit(derived_exit(record)),
        "time": _job_times(job),
        "exit_code": _exit(exit_of_row(job)),
        "flags": ["CLEAR_SCHEDULING", "STARTED_ON_SCHEDULE"] if job.started_at else [],
        "group": group_of(spec.user)[0],
        "het": _het(record),
        "job_id": record.job.id,
        "name": spec.name,
        "mcs": {"label": ""},
        "nodes": values.node_list(job),
        "partition": jobs.partition(row),
        "priority": jobs.priority(row),
        "qos": spec.job_class,
        "required": {"CPUs": values.cpus(job), "memory": asked.memory_mib},
        "kill_request_user": cancelled_by(record),
        "reservation": {"id": 0, "name": row.job.spec.reservation or 0},
        "state": {"current": state_of_row(job).name, "reason": values.reason(job)},
        "steps": [_step(each) for each in steps],
        "tres": {"allocated": _allocated(job), "requested": _requested(job)},
        "user": spec.user,
        "wckey": {"wckey": row.label("wckey") or "", "flags": []},
        "working_directory": row.launch.workdir or "",
    }


def _array(record: AcctJob) -> dict[str, Any]:
    part, indices = record.job.spec.array, record.row.indices
    mask = sum(1 << index for index in indices)
    return {
        "job_id": 0 if part is None else part.array,
        "limits": {"max": {"running": {"tasks": (part.at_once if part else None) or 0}}},
        "task": f"0x{mask:X}" if indices else None,
        "task_id": None if part is None or indices else part.index,
    }


def _association(record: AcctJob) -> dict[str, Any]:
    spec, cluster = record.job.spec, record.row.listing.cluster
    return {"account": spec.queue, "cluster": cluster, "partition": None, "user": spec.user}


def _het(record: AcctJob) -> dict[str, Any]:
    leader = 0 if record.component is None else record.job.id
    return {"job_id": leader, "job_offset": record.component}


def _job_times(job: AcctRow) -> dict[str, Any]:
    limit = jobs.time_limit(job.row)
    times = _times(job) | {
        "eligible": _seconds(job.record.eligible_at),
        "submission": _seconds(job.record.submitted_at),
        "limit": None if limit is None else limit // 60_000,
    }
    if job.started_at is None and job.ended_at is not None:
        times["start"] = None
    return times


def _times(acct: AcctRow) -> dict[str, Any]:
    whole, system = values.cpu_ms(acct)
    return {
        "elapsed": acct.elapsed // 1_000,
        "end": _seconds(acct.ended_at),
        "start": _seconds(acct.started_at),
        "suspended": acct.record.suspended // 1_000,
        "system": _split(system),
        "total": _split(whole),
        "user": _split(whole - system),
    }


def _split(milliseconds: int) -> dict[str, int]:
    return {"seconds": milliseconds // 1_000, "microseconds": milliseconds % 1_000 * 1_000}


def _exit(ended: tuple[int, int]) -> dict[str, Any]:
    code, number = ended
    if number:
        described = {"signal_id": number, "name": signals.strsignal(number) or "Unknown"}
        return {"status": "SIGNALED", "return_code": None, "signal": described}
    return {"status": "ERROR" if code else "SUCCESS", "return_code": code}


def _step(acct: AcctRow) -> dict[str, Any]:
    there = values.nodes(acct)
    return {
        "nodes": {"list": list(there), "count": len(there), "range": compressed(there)},
        "tres": {
            "requested": _consumed(acct, (_written, "fs/disk")),
            "consumed": _consumed(acct, (_read, "cpu", "fs/disk", "mem", "pages")),
            "allocated": _allocated(acct),
        },
        "time": _times(acct),
        "exit_code": _exit(exit_of_row(acct)),
        "tasks": {"count": values.tasks(acct)},
        "pid": None,
        "CPU": {"requested_frequency": {"min": 0, "max": 0}, "governor": []},
        "kill_request_user": None,
        "state": state_of_row(acct).name,
        "statistics": {"CPU": {"actual_frequency": 0}, "energy": {"consumed": 0}},
        "step": {
            "job_id": acct.row.job.id,
            "het": {"component": None},
            "id": acct.name if acct.step is None else acct.step.number,
            "name": values.name(acct),
        },
        "task": {"distribution": "Unknown"},
    }


def _consumed(acct: AcctRow, wanted: tuple[Any, ...]) -> dict[str, Any]:
    count_of, *kinds = wanted
    used = acct.used
    if used is None:
        return {"max": [], "min": [], "average": [], "total": []}
    tasks = values.tasks(acct)
    counts = {kind: count_of(used, kind) for kind in kinds}
    place = {"node": values.where_measured(acct), "task": 0}
    each = [_tres(kind, count) | place for kind, count in counts.items()]
    average = [_tres(kind, count // tasks) for kind, count in counts.items()]
    total = [_tres(kind, count) for kind, count in counts.items()]
    return {"max": each, "min": each, "average": average, "total": total}


def _read(used: Used, kind: str) -> int:
    return {
        "cpu": used.cpu_ms,
        "fs/disk": used.read_kib * 1_024,
        "mem": used.max_memory_mib * 1_048_576,
        "pages": used.faults,
    }[kind]


def _written(used: Used, _: str) -> int:
    return used.written_kib * 1_024


def _allocated(acct: AcctRow) -> list[dict[str, Any]]:
    if acct.kind is RecordKind.JOB and not values.nodes(acct):
        return []
    found = _counted(values.allocated_parts(acct), values.amount(acct).memory_mib)
    if acct.kind is RecordKind.JOB:
        # Energy is not measured, and Slurm says so of each job.
        found.append(_tres("energy", None))
    return _in_order(found)


def _requested(acct: AcctRow) -> list[dict[str, Any]]:
    mib = jobs.asked_amount(acct.row.job).memory_mib
    return _in_order(_counted(values.requested_parts(acct), mib))


def _counted(parts: dict[str, str], memory_mib: int) -> list[dict[str, Any]]:
    """Memory is counted in MiB, whatever it is shown in."""
    return [_tres(name, memory_mib if name == "mem" else int(parts[name])) for name in parts]


def _in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda each: (each["id"], each["name"] or ""))


def _tres(name: str, count: int | None) -> dict[str, Any]:
    kind, _, detail = name.partition("/")
    number = TRES_NUMBERS.get(name, GRES_NUMBER + (":" in detail))
    return {"type": kind, "name": detail or None, "id": number, "count": count}


def _seconds(at: Instant | None) -> int:
    return 0 if at is None else at // 1_000
