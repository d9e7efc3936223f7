import os
import time
from collections.abc import Callable, Iterator

import pytest

from muster.doors.units import (
    LONGEST,
    BadTextError,
    amount,
    amount_text,
    duration,
    duration_text,
    instant,
    memory_mib,
    memory_text,
    micros,
    rfc3339,
    signal_number,
    slice_of,
    slice_text,
    whole,
)
from muster.model.gpu import Mig, MpsShare, Slice, TimeShare
from muster.model.queue import Amount, Meter, Percent
from muster.model.value import DAY, HOUR, MINUTE, SECOND, Duration, Instant

NOW = Instant(1_000_000)


@pytest.fixture
def two_hours_east() -> Iterator[None]:
    """The machine stands two hours east of Greenwich while the test runs."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "EAST-2"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("text", "span"),
    [
        (60, 60 * SECOND),
        ("90", 90 * SECOND),
        ("45s", 45 * SECOND),
        ("90m", 90 * MINUTE),
        ("90min", 90 * MINUTE),
        ("2h", 2 * HOUR),
        ("1h30m", 90 * MINUTE),
        ("1d 12h", 36 * HOUR),
        ("1.5h", 90 * MINUTE),
        ("2w", 14 * DAY),
        ("250ms", 250),
        ("2:30", 150 * SECOND),
        ("01:02:03", HOUR + 2 * MINUTE + 3 * SECOND),
        ("1-12:00:00", 36 * HOUR),
        ("1-12:30", 36 * HOUR + 30 * MINUTE),
        ("2-0", 2 * DAY),
        ("0", 0),
    ],
)
def test_a_time_is_read_as_people_and_slurm_write_it(text: str | int, span: int) -> None:
    assert duration(text) == span


@pytest.mark.parametrize("text", ["", "x", "-5", "5y", "1h-", "h", "1::2", "1-", -3, "9" * 19])
def test_what_is_no_time_is_refused(text: str | int) -> None:
    with pytest.raises(BadTextError, match="write a time such as"):
        duration(text)


def test_more_than_a_century_is_a_mistake() -> None:
    with pytest.raises(BadTextError, match="no more than 36500d"):
        duration("36501d")
    assert duration("36500d") == LONGEST


@pytest.mark.parametrize(
    ("span", "text"), [(0, "0s"), (90 * MINUTE, "1h30m"), (400 * DAY, "400d"), (1_500, "1s500ms")]
)
def test_a_time_is_written_in_parts(span: int, text: str) -> None:
    assert duration_text(Duration(span)) == text


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        (500, 500),
        ("512", 512),
        ("512M", 512),
        ("16G", 16_384),
        ("16GiB", 16_384),
        ("16gb", 16_384),
        ("1.5T", 1_572_864),
        ("4096K", 4),
        ("1K", 1),
        ("4097K", 5),
    ],
)
def test_memory_is_binary_and_rounds_up(text: str | int, mib: int) -> None:
    assert memory_mib(text) == mib


@pytest.mark.parametrize("text", ["", "G", "-1G", "5X", "512B", "1e3", "9999999P", -1])
def test_what_is_no_memory_is_refused(text: str | int) -> None:
    with pytest.raises(BadTextError, match="write memory such as"):
        memory_mib(text)


@pytest.mark.parametrize(
    ("mib", "text"), [(0, "0M"), (1_536, "1536M"), (16_384, "16G"), (1_048_576, "1T")]
)
def test_memory_is_written_in_the_largest_whole_unit(mib: int, text: str) -> None:
    assert memory_text(mib) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z"),
        ("2026-12-01t08:00z", "2026-12-01T08:00:00Z"),
        ("2026-12-01 08:00:00+02:00", "2026-12-01T06:00:00Z"),
        ("2026-12-01T08:00:00.25Z", "2026-12-01T08:00:00.250Z"),
        ("now", "1970-01-01T00:16:40Z"),
        ("now+2h", "1970-01-01T02:16:40Z"),
        ("NOW + 1-00:00:00", "1970-01-02T00:16:40Z"),
    ],
)
def test_an_instant_is_read_and_written(text: str, written: str) -> None:
    assert rfc3339(instant(text, NOW)) == written


@pytest.mark.usefixtures("two_hours_east")
def test_an_instant_without_a_zone_is_local() -> None:
    assert rfc3339(instant("2026-12-01T08:00", NOW)) == "2026-12-01T06:00:00Z"
    assert rfc3339(instant("2026-12-01", NOW)) == "2026-11-30T22:00:00Z"


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "08:00", "2026-13-01T08:00:00Z", "2026-12-01T25:00Z", "now-2h", "now+", "0"],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(BadTextError):
        instant(text, NOW)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mig:1g.5gb", Mig(profile="1g.5gb")),
        ("mig:1g.5gb+me", Mig(profile="1g.5gb+me")),
        ("mps:25%", MpsShare(milli=250)),
        ("mps:12.5%:8G", MpsShare(milli=125, memory_mib=8_192)),
        ("time:4", TimeShare(replicas=4)),
    ],
)
def test_a_slice_is_read_and_written(text: str, part: Slice) -> None:
    assert slice_of(text) == part
    assert slice_text(part) == text


@pytest.mark.parametrize(
    "text",
    "mig: mig:big mps:25 mps:0% mps:101% mps:1.25% mps:5%: mps:5%:0 "
    "time:1 time:0 time:1001 time:x half".split(),
)
def test_what_is_no_slice_is_refused(text: str) -> None:
    with pytest.raises(BadTextError, match="write a slice such as"):
        slice_of(text)


@pytest.mark.parametrize(
    ("text", "number"), [("USR1", 10), ("SIGUSR1", 10), ("sigterm", 15), ("10", 10), (" kill ", 9)]
)
def test_a_signal_has_a_name_or_a_number(text: str, number: int) -> None:
    assert signal_number(text) == number


@pytest.mark.parametrize("text", ["", "0", "99", "-9", "FOO", "SIG"])
def test_what_is_no_signal_is_refused(text: str) -> None:
    with pytest.raises(BadTextError, match="write a signal such as"):
        signal_number(text)


@pytest.mark.parametrize(
    ("text", "meter", "given"),
    [
        ("8", Meter.GPU, 8_000),
        (9, Meter.GPU, 9_000),
        ("0.5", Meter.GPU, 500),
        ("50%", Meter.GPU, Percent(percent=50)),
        ("64", Meter.CPU, 64_000),
        ("512G", Meter.MEMORY, 524_288),
        (512, Meter.MEMORY, 512),
        ("100 %", Meter.MEMORY, Percent(percent=100)),
        ("7", Meter.MIG, 7),
    ],
)
def test_an_amount_is_in_the_unit_of_its_meter(
    text: str | int, meter: Meter, given: Amount
) -> None:
    assert amount(text, meter) == given
    assert amount(amount_text(given, meter), meter) == given


@pytest.mark.parametrize(
    ("text", "meter"),
    [
        ("-1", Meter.GPU),
        ("eight", Meter.GPU),
        ("0.0005", Meter.GPU),
        ("101%", Meter.GPU),
        ("12.5%", Meter.GPU),
        ("-5%", Meter.CPU),
        ("1.5", Meter.MIG),
        ("8X", Meter.MEMORY),
        ("99999999999", Meter.GPU),
    ],
)
def test_what_is_no_amount_is_refused(text: str, meter: Meter) -> None:
    with pytest.raises(BadTextError, match="write "):
        amount(text, meter)


def test_money_has_six_digits_after_the_point() -> None:
    assert micros("2.50") == 2_500_000

    with pytest.raises(BadTextError, match="at most 6 digits"):
        micros("0.0000001")


@pytest.mark.parametrize(
    "read",
    [duration, memory_mib, micros, whole, slice_of, signal_number],
)
def test_digits_of_other_scripts_are_no_digits(read: Callable[[str], object]) -> None:
    with pytest.raises(BadTextError):
        read("٤")


def test_the_error_says_what_was_written_and_what_is_accepted() -> None:
    with pytest.raises(BadTextError) as caught:
        duration("soon")

    assert str(caught.value) == (
        "`soon` cannot be read here; write a time such as `90s`, `45m`, `1h30m`, `7d` or "
        "`1-12:00:00`; digits alone are seconds"
    )
    assert caught.value.text == "soon"
