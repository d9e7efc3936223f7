from typing import Any

import msgspec
import pytest

from muster.api.jobs import UpdateDocument
from muster.api.requests import GroupDocument, SubmitDocument
from muster.doors.request.arrays import array_of
from muster.doors.request.bad import BadRequestError
from muster.doors.request.parse import Submitter, Wanted, wanted
from muster.doors.rest.updates import change_of
from muster.model.gpu import GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import (
    ANYWHERE,
    Ask,
    Dependency,
    DependencyKind,
    JobSpec,
    LabelRule,
    RetryPolicy,
    Spot,
    TaskGroup,
    Together,
    Toleration,
    Where,
)
from muster.model.launch import Checkpointing, Launch, Runs, Terminal, Warn
from muster.model.queue import PreemptMode
from muster.model.value import (
    HOUR,
    MINUTE,
    ClassName,
    ClusterName,
    Duration,
    GpuModel,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueuePath,
    UserName,
)

NOW = Instant(1_790_000_000_000)
ANNA = Submitter(user=UserName("anna"), queue=QueuePath("nlp"), now=NOW)


def test_a_command_alone_is_a_whole_request() -> None:
    found = wanted(SubmitDocument(command=("/usr/bin/python3", "train.py")), ANNA)

    assert found == Wanted(
        spec=JobSpec(
            name="python3",
            user=UserName("anna"),
            queue=QueuePath("nlp"),
            groups=(TaskGroup(each=Ask(cpu_milli=1_000)),),
            job_class=ClassName(""),
            launch=Launch(argv=("/usr/bin/python3", "train.py")),
        )
    )


def test_every_field_finds_its_place() -> None:
    document = SubmitDocument(
        groups=(
            GroupDocument(
                name="workers",
                tasks=4,
                min_tasks=2,
                cpus=2.5,
                memory="16G",
                gpus=2,
                gpu_models=("A100-40GB",),
                gpu_memory="20G",
                together="rack?",
                require={"zone": "a"},
                nodes=("n1",),
                not_nodes=("n2",),
                tolerate=("spot", "owner=nlp", "*"),
                exclusive=True,
                max_per_node=1,
            ),
        ),
        name="big",
        queue="acme",
        job_class="high",
        command=("a",),
        script="#!/bin/sh\n",
        image="pytorch",
        env={"A": "1"},
        workdir="/home/anna",
        every_task=False,
        stdin="in",
        stdout="out.%j",
        stderr="err.%j",
        append=True,
        umask=0o27,
        time="2h",
        begin="now+1h",
        deadline="2026-12-01T00:00:00Z",
        after=("afterok:3:4", "after:5+10", "singleton"),
        cancel_if_hopeless=True,
        array="1-3%2",
        pools=("a100",),
        clusters=("east",),
        spot="allowed",
        priority=7,
        preemptible=False,
        preempt_mode="suspend",
        attempts=3,
        requeue=False,
        restart_cost="5m",
        labels={"team": "x"},
        held=True,
        warn="B:USR1@120",
        checkpoint="/ckpt",
        checkpoint_signal="USR2",
        terminal=(30, 100),
    )

    found = wanted(document, ANNA)

    assert (found.indices, found.at_once, found.held) == ((1, 2, 3), 2, True)
    assert found.spec == JobSpec(
        name="big",
        user=UserName("anna"),
        queue=QueuePath("acme"),
        groups=(
            TaskGroup(
                name="workers",
                count=4,
                min_count=2,
                each=Ask(
                    cpu_milli=2_500,
                    memory_mib=16_384,
                    gpus=GpuAsk(count=2, models=(GpuModel("A100-40GB"),), min_memory_mib=20_480),
                ),
                together=Together(level="rack", required=False),
                where=Where(
                    require=(LabelRule(key="zone", values=("a",)),),
                    tolerate=(
                        Toleration(key="spot"),
                        Toleration(key="owner", value="nlp"),
                        Toleration(),
                    ),
                    nodes=(NodeId("n1"),),
                    not_nodes=(NodeId("n2"),),
                    exclusive=True,
                    max_per_node=1,
                ),
            ),
        ),
        job_class=ClassName("high"),
        pools=(PoolName("a100"),),
        clusters=(ClusterName("east"),),
        spot=Spot.ALLOWED,
        priority=7,
        time_limit=Duration(2 * HOUR),
        begin_at=Instant(NOW + HOUR),
        deadline=Instant(1_796_083_200_000),
        after=(
            Dependency(kind=DependencyKind.AFTER_OK, job=JobId(3)),
            Dependency(kind=DependencyKind.AFTER_OK, job=JobId(4)),
            Dependency(kind=DependencyKind.AFTER, job=JobId(5), delay=Duration(10 * MINUTE)),
            Dependency(kind=DependencyKind.SINGLETON),
        ),
        cancel_if_hopeless=True,
        preemptible=False,
        preempt_mode=PreemptMode.SUSPEND,
        restart_cost=Duration(5 * MINUTE),
        max_attempts=3,
        retry=RetryPolicy(requeue=False),
        labels={"team": "x"},
        launch=Launch(
            argv=("a",),
            script="#!/bin/sh\n",
            image="pytorch",
            env={"A": "1"},
            workdir="/home/anna",
            runs=Runs.FIRST_TASK,
            stdin="in",
            stdout="out.%j",
            stderr="err.%j",
            append=True,
            umask=0o27,
            warn=Warn(signal=10, lead=Duration(120_000), shell_only=True),
            checkpoint=Checkpointing(path="/ckpt", signal=12),
            terminal=Terminal(rows=30, columns=100),
        ),
    )


def test_of_conditions_in_one_text_each_is_enough() -> None:
    want = wanted(SubmitDocument(command=("x",), after=("afterok:3:4?after:5+10",)), ANNA)

    assert want.spec.after == (
        Dependency(kind=DependencyKind.AFTER_OK, job=JobId(3)),
        Dependency(kind=DependencyKind.AFTER_OK, job=JobId(4), way=1),
        Dependency(kind=DependencyKind.AFTER, job=JobId(5), delay=Duration(10 * MINUTE), way=2),
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mig:1g.5gb", Mig(profile="1g.5gb")),
        ("mps:25%", MpsShare(milli=250)),
        ("time:4", TimeShare(replicas=4)),
    ],
)
def test_a_slice_means_one_of_it_unless_named(text: str, part: object) -> None:
    document = SubmitDocument(command=("x",), groups=(GroupDocument(slice=text),))

    gpus = wanted(document, ANNA).spec.groups[0].each.gpus

    assert gpus is not None
    assert (gpus.count, gpus.slice) == (1, part)


def test_a_group_without_wishes_may_land_anywhere() -> None:
    assert wanted(SubmitDocument(command=("x",)), ANNA).spec.groups[0].where is ANYWHERE


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"command": []}, "command"),
    ({"command": [""]}, "command"),
    ({"command": ["a\0b"]}, "command"),
    ({"script": "a\0b"}, "script"),
    ({"env": {"A=B": "1"}}, "env"),
    ({"env": {"A": "\0"}}, "env"),
    ({"workdir": "here"}, "workdir"),
    ({"umask": 0o1000}, "umask"),
    ({"time": "long"}, "time"),
    ({"begin": "tomorrow"}, "begin"),
    ({"deadline": "17:00"}, "deadline"),
    ({"spot": "maybe"}, "spot"),
    ({"preempt_mode": "kick"}, "preempt_mode"),
    ({"priority": 10**12}, "priority"),
    ({"attempts": 0}, "attempts"),
    ({"restart_cost": "much"}, "restart_cost"),
    ({"name": "two\nlines"}, "name"),
    ({"after": ["before:1"]}, "after"),
    ({"after": ["afterok"]}, "after"),
    ({"after": ["afterok:x"]}, "after"),
    ({"after": ["after:1+soon"]}, "after"),
    ({"after": ["singleton:1"]}, "after"),
    ({"after": ["afterok:1?"]}, "after"),
    ({"after": ["afterok:1?afterok:2", "afterok:3"]}, "after"),
    ({"warn": "LOUD@1"}, "warn"),
    ({"warn": "USR1@soon"}, "warn"),
    ({"checkpoint_signal": "USR1"}, "checkpoint_signal"),
    ({"terminal": [0, 80]}, "terminal"),
    ({"groups": [{"tasks": 0}]}, "groups[0].tasks"),
    ({"groups": [{}, {"memory": "lots"}]}, "groups[1].memory"),
    ({"groups": [{"cpus": -1}]}, "groups[0].cpus"),
    ({"groups": [{"gpus": -1}]}, "groups[0].gpus"),
    ({"groups": [{"gpu_models": ["A100"]}]}, "groups[0].gpus"),
    ({"groups": [{"gpus": 1, "slice": "half"}]}, "groups[0].slice"),
    ({"groups": [{"max_per_node": 0}]}, "groups[0].max_per_node"),
    ({"groups": [{}] * 101}, "groups"),
]


@pytest.mark.parametrize(("fields", "where"), BAD_FIELDS)
def test_a_field_that_cannot_be_read_is_named(fields: dict[str, Any], where: str) -> None:
    document = msgspec.convert({"command": ["x"]} | fields, SubmitDocument, strict=False)

    with pytest.raises(BadRequestError) as refused:
        wanted(document, ANNA)

    assert refused.value.where == where
    assert str(refused.value).startswith(f"{where}: ")


@pytest.mark.parametrize(
    ("text", "indices", "at_once"),
    [
        (None, (), None),
        ("7", (7,), None),
        ("0-3", (0, 1, 2, 3), None),
        ("1,3,5-9:2", (1, 3, 5, 7, 9), None),
        ("5,1,1-2", (1, 2, 5), None),
        ("0-3%2", (0, 1, 2, 3), 2),
    ],
)
def test_an_array_is_read(text: str | None, indices: tuple[int, ...], at_once: int | None) -> None:
    assert array_of(text) == (indices, at_once)


@pytest.mark.parametrize(
    "text", ["", "a", "3-1", "1-", "1-9:0", "0-3%", "0-3%0", "0-200000", "1-2-3", "-1", "99999999"]
)
def test_an_array_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        array_of(text)

    assert refused.value.where == "array"


def test_an_update_touches_only_what_it_names() -> None:
    spec = wanted(SubmitDocument(command=("x",), time="1h", name="a"), ANNA).spec

    changed = change_of(UpdateDocument(time="2h", pools=("fast",)), NOW)(spec)

    assert (changed.time_limit, changed.pools) == (2 * HOUR, ("fast",))
    assert (changed.name, changed.launch, changed.groups) == (spec.name, spec.launch, spec.groups)


def test_an_update_of_nothing_is_refused() -> None:
    with pytest.raises(BadRequestError):
        change_of(UpdateDocument(), NOW)
