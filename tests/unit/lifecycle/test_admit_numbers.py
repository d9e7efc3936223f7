"""Numbers that make no sense are refused, and the advice gives their bounds."""

from collections.abc import Mapping
from typing import Any

import pytest

from muster.lifecycle.admit import admit
from muster.lifecycle.refusal import BadNumber, Refusal
from muster.model.gpu import MpsShare, TimeShare
from muster.model.job import ArrayPart, Ask, JobSpec, TaskGroup, Where
from muster.model.value import HOUR, Duration, JobId, replace
from unit.lifecycle.given import group, spec, world


def refused(spec: JobSpec) -> Refusal:
    answer = admit(spec, world())
    assert isinstance(answer, Refusal), answer
    return answer


def tasks(**said: Any) -> dict[str, object]:
    return {"groups": (group(**said),)}


NUMBERS: dict[str, tuple[Mapping[str, object], BadNumber]] = {
    "count": (tasks(tasks=0), BadNumber(what="main.count", value=0, least=1)),
    "min_count": (
        {"groups": (replace(group(gpus=1, tasks=2), min_count=3),)},
        BadNumber(what="main.min_count", value=3, least=1, most=2),
    ),
    "no min_count": (
        {"groups": (replace(group(gpus=1, tasks=2), min_count=0),)},
        BadNumber(what="main.min_count", value=0, least=1, most=2),
    ),
    "gpus": (tasks(gpus=-1), BadNumber(what="main.gpus.count", value=-1, least=1)),
    "cpu": (
        {"groups": (TaskGroup(each=Ask(cpu_milli=-1)),)},
        BadNumber(what="main.cpu_milli", value=-1, least=0),
    ),
    "memory": (
        {"groups": (TaskGroup(each=Ask(memory_mib=-1)),)},
        BadNumber(what="main.memory_mib", value=-1, least=0),
    ),
    "an MPS share of nothing": (
        tasks(gpus=1, part=MpsShare(milli=0)),
        BadNumber(what="main.mps.milli", value=0, least=1, most=1_000),
    ),
    "an MPS share of too much": (
        tasks(gpus=1, part=MpsShare(milli=1_001)),
        BadNumber(what="main.mps.milli", value=1_001, least=1, most=1_000),
    ),
    "a restart that nobody could afford": (
        {"restart_cost": Duration(2 * HOUR)},
        BadNumber(what="restart_cost", value=2 * HOUR, least=0, most=HOUR),
    ),
    "replicas": (
        tasks(gpus=1, part=TimeShare(replicas=1)),
        BadNumber(what="main.replicas", value=1, least=2, most=1_000),
    ),
    "max_per_node": (
        {"groups": (replace(group(gpus=1), where=Where(max_per_node=0)),)},
        BadNumber(what="main.max_per_node", value=0, least=1),
    ),
    "time_limit": (
        {"time_limit": Duration(0)},
        BadNumber(what="time_limit", value=0, least=1),
    ),
    "max_attempts": ({"max_attempts": 0}, BadNumber(what="max_attempts", value=0, least=1)),
    "at_once": (
        {"array": ArrayPart(array=JobId(1), index=0, at_once=0)},
        BadNumber(what="array.at_once", value=0, least=1),
    ),
}


@pytest.mark.parametrize(("asked", "reason"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_must_make_sense(asked: Mapping[str, object], reason: BadNumber) -> None:
    assert refused(spec(**asked)).reason == reason


def test_the_advice_about_a_number_gives_its_bounds() -> None:
    refusal = refused(spec(**tasks(gpus=1, part=TimeShare(replicas=1))))

    assert refusal.advice == "main.replicas is 1; it must be from 2 to 1000."


def test_the_advice_about_a_span_is_read_as_time() -> None:
    refusal = refused(spec(restart_cost=Duration(2 * HOUR)))

    assert refusal.advice == "restart_cost is 2h; it must be from 0 to 1h."
