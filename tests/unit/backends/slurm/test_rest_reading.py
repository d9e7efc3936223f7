"""What slurmrestd says, in the shape of 22.05 and in those of later versions."""

from typing import Any

import pytest

from muster.backends.attempts import Phase
from muster.backends.slurm.listing import Key
from muster.backends.slurm.nodes import Fleet
from muster.backends.slurm.rest_reading import (
    error_numbers,
    errors_in,
    finished,
    jobs,
    names,
    nodes,
    partitions,
    release_of,
    version_of,
)
from muster.model.cluster import NodeState
from muster.model.value import ClusterName, Duration

Json = dict[str, Any]

OLD_JOB: Json = {
    "job_id": 68,
    "het_job_id": 0,
    "job_state": "RUNNING",
    "user_id": 1001,
    "exit_code": 768,
    "start_time": 1794731688,
    "end_time": 0,
    "cpus": 2,
    "tres_alloc_str": "cpu=2,mem=4G,node=2,billing=2,gres/gpu=2",
    "tres_per_node": "gres:gpu:a100:1",
    "nodes": "node[1-2]",
    "comment": "muster:here:7.1",
}
NEW_JOB: Json = {
    **OLD_JOB,
    "het_job_id": {"set": True, "infinite": False, "number": 0},
    "job_state": ["RUNNING"],
    "exit_code": {
        "status": ["ERROR"],
        "return_code": {"set": True, "infinite": False, "number": 3},
        "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
    },
    "start_time": {"set": True, "infinite": False, "number": 1794731688},
    "end_time": {"set": False, "infinite": False, "number": 0},
    "cpus": {"set": True, "infinite": False, "number": 2},
}
OLD_NODE: Json = {
    "name": "node1",
    "state": "idle",
    "state_flags": ["DRAIN"],
    "reason": "a disk",
    "active_features": "fast,big",
    "gres": "gpu:a100:4",
    "cpus": 64,
    "real_memory": 512000,
    "partitions": ["gpu", "debug"],
}
NEW_NODE: Json = {
    **OLD_NODE,
    "state": ["IDLE", "DRAIN"],
    "active_features": ["fast", "big"],
    "effective_cpus": 64,
}
OLD_PARTITION: Json = {"name": "gpu", "flags": ["default"], "state": "UP", "max_time_limit": 60}
NEW_PARTITION: Json = {
    "name": "gpu",
    "partition": {"state": ["UP"]},
    "maximums": {"time": {"set": True, "infinite": False, "number": 60}},
}


@pytest.mark.parametrize("job", [OLD_JOB, NEW_JOB], ids=["old", "new"])
def test_a_job_is_what_squeue_would_say(job: Json) -> None:
    (read,) = jobs({"jobs": [job]})

    assert (read.id, read.whole, read.uid, read.status) == ("68", "68", 1001, 3 << 8)
    assert (read.phase, read.started_s, read.ended_s) == (Phase.RUNS, 1794731688, None)
    assert read.nodes == ("node1", "node2")
    assert read.holds.amount.gpu_milli == 2_000
    assert read.holds.amount.memory_mib == 4_096
    assert read.key == Key(site="here", job=7, attempt=1)


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        ("PENDING", Phase.WAITS),
        (["RUNNING", "CONFIGURING"], Phase.WAITS),
        (["COMPLETED", "COMPLETING"], Phase.LEAVES),
        (["RUNNING", "SUSPENDED"], Phase.STANDS),
        (["CANCELLED"], Phase.OVER),
        ("TIMEOUT", Phase.OVER),
    ],
)
def test_what_a_job_is_doing_goes_before_its_state(said: object, phase: Phase) -> None:
    assert jobs({"jobs": [{**OLD_JOB, "job_state": said}]})[0].phase is phase


def test_who_was_killed_has_the_signal_in_its_status() -> None:
    exits = {"return_code": 0, "signal": {"signal_id": 9, "name": "KILL"}}

    assert jobs({"jobs": [{**OLD_JOB, "exit_code": exits}]})[0].status == 9


@pytest.mark.parametrize("node", [OLD_NODE, NEW_NODE], ids=["old", "new"])
def test_a_node_is_what_scontrol_would_say(node: Json) -> None:
    fleet = Fleet(
        cluster=ClusterName("lab"), partitions=partitions({"partitions": [OLD_PARTITION]})
    )

    (read,) = nodes({"nodes": [node]}, fleet)

    assert (read.name, read.node.pool, len(read.node.devices)) == ("node1", "gpu", 4)
    assert (read.node.state, read.node.reason) == (NodeState.DRAINING, "a disk")
    assert set(read.node.labels) == {"fast", "big"}
    assert (read.node.cpu_milli, read.node.memory_mib) == (64_000, 512_000)


@pytest.mark.parametrize(
    ("partition", "is_default"), [(OLD_PARTITION, True), (NEW_PARTITION, False)], ids=["old", "new"]
)
def test_a_partition_is_read(partition: Json, is_default: bool) -> None:
    (read,) = partitions({"partitions": [partition]})

    assert (read.name, read.state, read.is_default) == ("gpu", "UP", is_default)
    assert read.max_time == Duration(3_600_000)


@pytest.mark.parametrize("limit", [-1, None, {"set": False, "infinite": True, "number": 0}])
def test_a_partition_without_a_limit_has_none(limit: object) -> None:
    assert partitions({"partitions": [{"name": "a", "max_time_limit": limit}]})[0].max_time is None


@pytest.mark.parametrize("state", ["FAILED", ["FAILED"]])
def test_accounting_tells_how_a_job_ended(state: object) -> None:
    job = {
        "state": {"current": state, "reason": "None"},
        "exit_code": {"status": "ERROR", "return_code": 3},
        "time": {"start": 100, "end": 200},
        "nodes": "node1",
    }

    read = finished({"jobs": [job]}, "7")

    assert read is not None
    assert (read.id, read.state, read.status) == ("7", "FAILED", 3 << 8)
    assert (read.started_s, read.ended_s) == (100, 200)
    assert finished({"jobs": []}, "7") is None


def test_the_newest_version_that_both_know_is_spoken() -> None:
    paths = ("/slurm/v0.0.38/jobs", "/slurm/v0.0.40/jobs/", "/slurm/v0.0.99/jobs/", "/slurmdb/x")

    assert version_of({"paths": dict.fromkeys(paths)}) == "v0.0.40"
    assert version_of({"paths": {"/slurm/v0.0.35/jobs": {}}}) == ""
    assert version_of({}) == ""


@pytest.mark.parametrize("name", ["Slurm", "slurm"])
def test_which_slurm_it_is(name: str) -> None:
    assert release_of({"meta": {name: {"release": "22.05.8"}}}) == "22.05.8"


def test_errors_are_told_in_the_words_of_the_commands() -> None:
    answer = {
        "errors": [
            {"error": "Invalid job id specified", "error_number": 2017, "description": "no job 9"},
            {"error_code": 9001, "error": "Failure during parsing"},
        ]
    }

    assert errors_in(answer) == "Invalid job id specified: no job 9; Failure during parsing"
    assert error_numbers(answer) == {2017, 9001}


@pytest.mark.parametrize("answer", [{}, {"jobs": None}, {"jobs": [None, 3]}, {"jobs": "x"}])
def test_what_makes_no_sense_lists_nothing(answer: Json) -> None:
    assert jobs(answer) == ()
    assert names(answer, "accounts") == ()
