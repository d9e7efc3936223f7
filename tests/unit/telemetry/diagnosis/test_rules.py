from typing import Any

import pytest

from muster.model.finding import SENTENCES, USE_OF, Cause
from muster.model.value import MINUTE, DeviceId, Duration, NodeId, replace
from muster.telemetry.diagnosis.course import DeviceCourse
from muster.telemetry.diagnosis.judging import Course, Judged, Member, Part, judge
from muster.telemetry.diagnosis.signals import NOTHING, Signals, missing_of

WELL = Signals(
    busy=980, sm=800, occupancy=350, tensor=400, fp32=50, fp64=0, dram=400, memory=600, power=800,
    clock=970, link=20, pcie=20, heat=0, power_cap=0, brake=0, clocks_set=0, processes=1, cpu=300,
    cpu_throttled=0, thread=600, io=20, blocked=0, written=50, moved=30_000,
)  # fmt: skip
STARVED = replace(WELL, busy=400, sm=300, tensor=150, dram=150, power=400)


def part(index: int = 0, node: str = "n1") -> Part:
    return Part(node=NodeId(node), device=DeviceId(f"gpu{index}"))


def members(*signals: Signals) -> list[Member]:
    return [
        Member(part=part(index), signals=each, held=MINUTE) for index, each in enumerate(signals)
    ]


def after_minutes(count: int, *signals: Signals, before: Course | None = None) -> list[Judged]:
    course = before or Course()
    judged: tuple[Judged, ...] = ()
    for _ in range(count):
        judged, course = judge(members(*signals), course)
    return list(judged)


def causes(count: int, *signals: Signals, before: Course | None = None) -> list[Cause]:
    return [each.cause for each in after_minutes(count, *signals, before=before)]


def used_before() -> Course:
    _, course = judge(members(WELL), Course())
    return course


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({}, Cause.FINE),
        ({"is_broken": True}, Cause.BROKEN),
        ({"heat": 400}, Cause.HEAT),
        ({"power_cap": 900, "clock": 600}, Cause.POWER),
        ({"power_cap": 900, "clock": 900}, Cause.FINE),
        ({"brake": 400}, Cause.BRAKE),
        ({"clocks_set": 1_000, "clock": 500}, Cause.CLOCKS),
        ({"dram": 700, "tensor": 50}, Cause.MEMORY_BOUND),
        ({"tensor": 0, "fp32": 400}, Cause.NO_TENSOR),
        ({"tensor": 0, "fp32": 50, "fp64": 500}, Cause.FINE),
        ({"sm": 200, "tensor": 20, "dram": 100}, Cause.SMALL_WORK),
    ],
)
def test_a_gpu_that_computes_is_told_by_what_it_does(changes: dict[str, Any], cause: Cause) -> None:
    assert causes(1, replace(WELL, **changes)) == [cause]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"io": 600}, Cause.INPUT_IO),
        ({"cpu": 950}, Cause.INPUT_CPU),
        ({"cpu": 950, "io": 600}, Cause.INPUT_CPU),
        ({"cpu_throttled": 300}, Cause.INPUT_CPU),
        ({"thread": 980}, Cause.HOST),
        ({"cpu": 50, "thread": 100, "io": 0}, Cause.WAITING),
        ({"pcie": 800, "link": 800}, Cause.COPYING),
        ({"pcie": 550, "is_narrow": True}, Cause.COPYING),
        ({"pcie": 550, "is_narrow": False}, Cause.UNKNOWN),
    ],
)
def test_a_gpu_that_waits_is_told_by_what_its_job_does_meanwhile(
    changes: dict[str, Any], cause: Cause
) -> None:
    assert causes(1, replace(STARVED, **changes)) == [cause]


def test_a_job_that_has_no_process_yet_is_starting_for_ten_minutes() -> None:
    nobody = replace(WELL, busy=0, sm=0, tensor=0, dram=0, memory=4, power=100, processes=0)

    assert causes(10, nobody) == [Cause.STARTING]
    assert causes(11, nobody) == [Cause.NEVER_USED]


def test_a_gpu_that_others_of_its_job_leave_alone_is_unused() -> None:
    nobody = replace(WELL, busy=0, sm=0, tensor=0, dram=0, memory=4, power=100, processes=0)

    assert causes(11, WELL, nobody, nobody) == [Cause.FINE, Cause.SOME_UNUSED, Cause.SOME_UNUSED]


def test_a_gpu_that_was_used_and_does_nothing_is_idle_after_a_while() -> None:
    still = replace(WELL, busy=0, sm=0, tensor=0, dram=0, power=100, cpu=10, thread=20)

    assert causes(3, still, before=used_before()) == [Cause.WAITING]
    assert causes(4, still, before=used_before()) == [Cause.IDLE]


def test_a_kernel_that_waits_for_ever_looks_busy_and_draws_little() -> None:
    spinning = replace(
        WELL, busy=1_000, sm=100, tensor=0, fp32=0, dram=2, link=0, pcie=0, power=250
    )

    assert causes(4, spinning, spinning) == [Cause.SMALL_WORK] * 2
    assert causes(5, spinning, spinning) == [Cause.HANG] * 2


def test_one_device_that_stands_is_no_hang_while_others_work() -> None:
    spinning = replace(
        WELL, busy=1_000, sm=100, tensor=0, fp32=0, dram=2, link=0, pcie=0, power=250
    )

    assert Cause.HANG not in causes(8, spinning, WELL)


def test_a_job_whose_processes_all_wait_for_a_disk_hangs() -> None:
    silent = replace(STARVED, busy=0, sm=0, cpu=0, thread=0, io=950, blocked=900)

    assert causes(5, silent, before=used_before()) == [Cause.HANG]


def test_a_burst_of_writing_while_the_gpu_waits_is_a_checkpoint() -> None:
    course = Course()
    for _ in range(5):
        _, course = judge(members(WELL), course)
    saving = replace(STARVED, busy=50, written=500_000, io=500)

    assert causes(1, saving, before=course) == [Cause.CHECKPOINT]


def test_devices_that_wait_for_a_slower_one_are_told_so() -> None:
    slow = replace(WELL, clock=500)
    others = replace(WELL, sm=400, tensor=150)

    assert causes(1, slow, others, others, others) == [Cause.STRAGGLER] * 4


def test_a_slower_one_that_is_too_hot_says_so_itself() -> None:
    slow = replace(WELL, clock=500, heat=600)
    others = replace(WELL, sm=400, tensor=150)

    assert causes(1, slow, others, others) == [Cause.HEAT, Cause.STRAGGLER, Cause.STRAGGLER]


def test_gpus_that_send_more_than_they_compute_communicate() -> None:
    talking = replace(WELL, sm=300, tensor=100, dram=150, link=400)

    assert causes(1, talking, talking) == [Cause.COMMUNICATION] * 2


def test_where_nothing_was_measured_nothing_is_claimed() -> None:
    judged = after_minutes(30, NOTHING)

    assert [(each.cause, each.slack_milli) for each in judged] == [(Cause.UNKNOWN, 0)]
    assert missing_of(NOTHING)[:2] == ("busy", "sm")


@pytest.mark.parametrize(
    "missing", ["busy", "sm", "tensor", "dram", "power", "cpu", "thread", "io"]
)
def test_a_missing_signal_never_makes_a_rule_hold(missing: str) -> None:
    """A starved GPU without the signal that would tell is unknown, or told by the others."""
    without = replace(STARVED, **{missing: float("nan")})

    assert causes(1, without)[0] in {Cause.UNKNOWN, Cause.FINE}


def test_without_gpm_power_tells_good_work_from_small() -> None:
    plain = replace(
        WELL, sm=float("nan"), tensor=float("nan"), dram=float("nan"), fp32=float("nan"),
        occupancy=float("nan"), pcie=float("nan"),
    )  # fmt: skip

    assert causes(1, plain) == [Cause.FINE]
    assert causes(1, replace(plain, power=300)) == [Cause.SMALL_WORK]


def test_small_kernels_on_an_h200_are_no_hang() -> None:
    """As measured: 16 blocks of 128 threads draw as little power as a kernel that waits."""
    small = replace(
        WELL, busy=965, sm=116, occupancy=9, tensor=2, fp32=26, dram=0, power=193, link=0
    )

    assert causes(20, small) == [Cause.SMALL_WORK]


def test_a_collective_that_waits_on_an_h200_hangs() -> None:
    """As measured: a kernel on 24 SMs that looks at a flag."""
    waits = replace(
        WELL, busy=1_000, sm=182, occupancy=60, tensor=0, fp32=0, dram=0, power=194, link=0
    )

    assert causes(20, waits) == [Cause.HANG]


def test_what_fp32_shows_of_tensor_cores_on_an_h200_does_not_count() -> None:
    """As measured: kernels of FP32 alone, on all SMs."""
    plain = replace(WELL, sm=989, tensor=50, fp32=805, dram=0)

    assert causes(1, plain) == [Cause.NO_TENSOR]


def test_lost_clocks_count_as_waste_though_the_gpu_computes_all_the_time() -> None:
    (judged,) = after_minutes(1, replace(WELL, heat=500, clock=600))

    assert judged.slack_milli == 400


def test_a_course_counts_only_the_time_that_was_held() -> None:
    half = Member(part=part(), signals=WELL, held=Duration(30_000))

    _, course = judge([half], Course())

    assert course.devices[part()] == DeviceCourse(held_ms=30_000, touched=True)


def test_every_cause_has_a_use_and_a_sentence() -> None:
    assert set(USE_OF) == set(SENTENCES) == set(Cause)
