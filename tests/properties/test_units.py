import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.doors.units import (
    LONGEST,
    MOST_MIB,
    BadTextError,
    amount,
    amount_text,
    duration,
    duration_text,
    instant,
    memory_mib,
    memory_text,
    micros,
    micros_text,
    rfc3339,
    signal_number,
    slice_of,
    slice_text,
)
from muster.model.gpu import Mig, MpsShare, Slice, TimeShare
from muster.model.mig import GEOMETRIES
from muster.model.queue import Amount, Meter, Percent
from muster.model.value import DAY, Duration, Instant

PROFILES = sorted({each.name for cut in GEOMETRIES.values() for each in cut.profiles})
SLICES = st.one_of(
    st.builds(Mig, profile=st.sampled_from(PROFILES)),
    st.builds(MpsShare, milli=st.integers(1, 1_000), memory_mib=st.integers(0, MOST_MIB)),
    st.builds(TimeShare, replicas=st.integers(2, 1_000)),
)
AMOUNTS = st.one_of(st.integers(0, 1_000_000_000), st.builds(Percent, percent=st.integers(0, 100)))
# Pieces of what people write, so that nonsense comes near to sense.
PIECES = "0 1 9 99999 . - : + % h m ms T G i B K Z now mig mps time 1g.5gb SIG USR1 \n e".split(" ")
TEXTS = st.text() | st.lists(st.sampled_from(PIECES)).map("".join)


@given(st.integers(0, LONGEST).map(Duration))
def test_a_time_comes_back(span: Duration) -> None:
    assert duration(duration_text(span)) == span


@given(st.integers(0, MOST_MIB))
def test_memory_comes_back(mib: int) -> None:
    assert memory_mib(memory_text(mib)) == mib


@given(st.integers(-1_000 * 365 * DAY, 5_000 * 365 * DAY).map(Instant))
def test_an_instant_comes_back(at: Instant) -> None:
    assert instant(rfc3339(at), Instant(0)) == at


@given(SLICES)
def test_a_slice_comes_back(part: Slice) -> None:
    assert slice_of(slice_text(part)) == part


@given(AMOUNTS, st.sampled_from(Meter))
def test_an_amount_comes_back(given_amount: Amount, meter: Meter) -> None:
    assert amount(amount_text(given_amount, meter), meter) == given_amount


@given(st.integers(0, 10**12))
def test_money_comes_back(money: int) -> None:
    assert micros(micros_text(money)) == money


READERS: dict[str, Callable[[str], object]] = {
    "duration": duration,
    "memory": memory_mib,
    "slice": slice_of,
    "signal": signal_number,
    "money": micros,
    "instant": lambda text: instant(text, Instant(0)),
    "gpus": lambda text: amount(text, Meter.GPU),
    "memory amount": lambda text: amount(text, Meter.MEMORY),
    "instances": lambda text: amount(text, Meter.MIG),
}


@pytest.mark.parametrize("reader", READERS)
@given(text=TEXTS)
def test_whatever_is_written_is_read_or_refused(reader: str, text: str) -> None:
    with contextlib.suppress(BadTextError):
        READERS[reader](text)
