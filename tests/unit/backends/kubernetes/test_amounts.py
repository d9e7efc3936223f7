from decimal import Decimal

import pytest

from muster.backends.fleet import Taken
from muster.backends.kubernetes.amounts import counted, largest, plain, quantity, taken_of
from muster.model.resources import Resources


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500m", "0.5"), ("2", "2"), ("1Ki", "1024"), ("1e3", "1000"), ("1k", "1000"), ("x", "0")],
)
def test_a_quantity_is_read_as_kubernetes_means_it(text: str, amount: str) -> None:
    assert quantity(text) == Decimal(amount)


def test_what_somebody_holds_is_rounded_up() -> None:
    held = taken_of({"cpu": "1500u", "memory": "1", "nvidia.com/gpu": "2"})

    assert held.amount == Resources(cpu_milli=2, memory_mib=1, gpu_milli=2_000)


def test_mig_instances_are_counted_by_profile() -> None:
    held = taken_of({"nvidia.com/mig-1g.10gb": "3"})

    assert held.mig == {"1g.10gb": 3}


def test_the_largest_is_so_in_everything() -> None:
    one = Taken(amount=Resources(cpu_milli=5, memory_mib=1), mig={"1g.10gb": 1})
    other = Taken(amount=Resources(cpu_milli=1, memory_mib=7), mig={"3g.40gb": 2})

    assert largest(one, other) == Taken(
        amount=Resources(cpu_milli=5, memory_mib=7), mig={"1g.10gb": 1, "3g.40gb": 2}
    )


@pytest.mark.parametrize("text", ["1e999999999", "9" * 400, "9e18Ei", "1e400E", "-1e99999", "NaN"])
def test_absurd_amounts_are_bounded_and_quick(text: str) -> None:
    assert abs(quantity(text)) <= 2**62
    assert 0 <= counted(text) <= 1_024
    assert taken_of({"cpu": text, "memory": text, "nvidia.com/gpu": text}).amount is not None


def test_what_a_cluster_says_is_one_short_line_that_no_terminal_obeys() -> None:
    said = plain("\x1b[2J\x1b]0;owned\x07 failed\n\n\x00 because\u202e " + "x" * 100_000)

    assert said.isprintable()
    assert said.startswith("[2J ]0;owned failed because")
    assert len(said) == 300
