from decimal import Decimal

import pytest

from muster.doors.kubernetes.pods import quantities
from muster.doors.kubernetes.pods.quantities import BadQuantityError


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (1, "1"),
        (0.5, "500m"),
        ("1.0", "1"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1k", "1k"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("100Ki", "100Ki"),
        ("0", "0"),
        ("0Mi", "0"),
        ("-1", "-1"),
        ("1e3", "1e3"),
        ("2E", "2E"),
        ("1n", "1n"),
    ],
)
def test_an_amount_is_kept_as_kubernetes_writes_it(written: str | float, kept: str) -> None:
    assert quantities.canonical(written) == kept


@pytest.mark.parametrize("text", ["9" * 400, "1" + "0" * 300 + "e18", "9" * 400 + "Ei", 10**200])
def test_what_is_very_large_is_the_most_that_there_is(text: object) -> None:
    assert quantities.amount(text) == 2**63 - 1
    assert quantities.amount(f"-{text}") == -(2**63 - 1)


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "1gi", "1.2.3", "Mi", "1ee3", None, True, []])
def test_other_texts_are_no_amounts(text: object) -> None:
    with pytest.raises(BadQuantityError):
        quantities.amount(text)


def test_amounts_become_whole_numbers_of_our_units() -> None:
    assert quantities.milli("0.1") == 100
    assert quantities.milli("1u") == 1
    assert quantities.mib("1Gi") == 1_024
    assert quantities.mib("1") == 1
    assert quantities.cpu(1_500) == "1500m"
    assert quantities.memory(2_048) == "2Gi"


def test_amounts_of_several_lists_add_up() -> None:
    assert quantities.totals({"cpu": "500m"}, {"cpu": "1", "memory": "1Ki"}) == {
        "cpu": Decimal("1.5"),
        "memory": Decimal(1_024),
    }
