import pytest

from muster.doors.kubernetes.objects.quantity import amount, canonical


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("1k", "1k"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("1.5Gi", "1536Mi"),
        ("100Ki", "100Ki"),
        ("1e3", "1e3"),
        ("12E", "12E"),
        ("0", "0"),
        ("-1", "-1"),
        (2, "2"),
        (0.1, "100m"),
        ("0.0000000001", "1n"),
    ],
)
def test_an_amount_is_written_one_way(given: str | float, written: str) -> None:
    assert canonical(given) == written
    assert canonical(written) == written


@pytest.mark.parametrize("given", ["", "x", "1 Gi", "1Zi", "--1", "1.2.3"])
def test_what_is_no_amount_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        amount(given)
