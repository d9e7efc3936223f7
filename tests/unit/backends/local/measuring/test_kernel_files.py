import pytest

from muster.backends.local.measuring.kernel_files import (
    busy_ticks,
    keyed,
    memory_bytes,
    network_bytes,
    number,
    pressure,
    state_and_ticks,
    transferred,
    waited_milli,
)
from muster.model.samples import Pressure


def test_lines_of_a_word_and_a_number_are_read_and_others_left_out() -> None:
    assert keyed("usage_usec 12\nread_bytes: 7\nsome avg10=1\n\n") == {
        "usage_usec": 12,
        "read_bytes": 7,
    }


@pytest.mark.parametrize(("text", "value"), [("12\n", 12), ("max\n", None), ("", None)])
def test_no_limit_is_no_number(text: str, value: int | None) -> None:
    assert number(text) == value


def test_pressure_is_how_much_of_ten_seconds_somebody_waited() -> None:
    text = "some avg10=12.34 avg60=0.00 avg300=0.00 total=1\nfull avg10=99.00 total=1\n"

    assert waited_milli(text) == 123
    assert pressure({"io": text}) == Pressure(io_milli=123)


def test_bytes_of_all_disks_are_summed() -> None:
    assert transferred("8:0 rbytes=1 wbytes=2 rios=9\n8:16 rbytes=10 wbytes=20\n") == (11, 22)
    assert transferred("") is None


def test_a_process_may_be_called_anything() -> None:
    stat = "17 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 300 45 0 0"

    assert state_and_ticks(stat) == ("S", 345)
    assert state_and_ticks("") is None


def test_cpus_that_wait_for_a_disk_are_not_busy() -> None:
    assert busy_ticks("cpu 1 2 4 1000 1000 8 16 32 0 0\ncpu0 1\n") == 63
    assert busy_ticks("") is None


def test_memory_is_in_bytes() -> None:
    assert memory_bytes("MemTotal:  2 kB\nHugePages_Total: 3\n") == {"MemTotal": 2_048}


def test_what_a_machine_says_to_itself_is_no_traffic() -> None:
    head = "Inter-| Receive\n face |bytes packets\n"
    rows = "    lo: 5 0 0 0 0 0 0 0 5 0\n  eth0: 7 0 0 0 0 0 0 0 9 0\n  eth1: 1 0 0 0 0 0 0 0 2 0\n"

    assert network_bytes(head + rows) == (8, 11)
    assert network_bytes(head) is None
