"""Minutes of all devices come on one axis, in as many steps as are wanted."""

from collections.abc import Mapping

from muster.model.finding import Cause
from muster.model.minutes import CAUSES, NOT_KNOWN, MinuteBlock
from muster.model.value import HOUR, MINUTE, DeviceId, Instant, JobId, NodeId
from muster.telemetry.diagnosis.timeline import curves


def block(
    device: str, hour: int, causes: Mapping[int, Cause], **columns: Mapping[int, int]
) -> MinuteBlock:
    return MinuteBlock(
        job=JobId(17),
        attempt=1,
        node=NodeId("n1"),
        device=DeviceId(device),
        hour=Instant(hour * HOUR),
        causes=bytes(CAUSES.index(causes[m]) if m in causes else NOT_KNOWN for m in range(60)),
        columns={
            name: bytes(known.get(m, NOT_KNOWN) for m in range(60))
            for name, known in columns.items()
        },
    )


def test_peaks_are_told_of_memory_and_heat_and_means_of_the_rest() -> None:
    one = block("g0", 0, {5: Cause.FINE}, busy={5: 90}, memory={5: 10}, temperature={5: 60})
    other = block("g1", 0, {5: Cause.FINE}, busy={5: 10}, memory={5: 99}, temperature={5: 70})

    found = curves((one, other), 10)

    assert (found.start, found.causes) == (5 * MINUTE, (Cause.FINE,))
    assert found.values == {"busy": (50,), "memory": (99,), "temperature": (70,)}


def test_what_was_not_measured_is_a_gap() -> None:
    found = curves((block("g0", 0, {0: Cause.FINE, 2: Cause.IDLE}, busy={0: 90}),), 10)

    assert found.causes == (Cause.FINE, None, Cause.IDLE)
    assert found.values == {"busy": (90, None, None)}


def test_a_long_attempt_has_longer_steps() -> None:
    hours = [
        block("g0", hour, dict.fromkeys(range(60), Cause.HEAT), busy=dict.fromkeys(range(60), hour))
        for hour in range(24)
    ]

    found = curves(hours, 24)

    assert (found.step, len(found.causes)) == (HOUR, 24)
    assert found.values["busy"] == tuple(range(24))


def test_nothing_measured_is_nothing_to_show() -> None:
    assert curves((), 10).causes == ()
