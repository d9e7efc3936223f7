import pytest

from muster.launch.patterns import Names, filled

ALONE = Names(job=42, job_name="fit", user="ann", node="n7", node_index=1, task=3)
OF_ARRAY = Names(job=44, job_name="fit", user="ann", node="n7", array=42, index=2)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("out", "out"),
        ("%j.out", "42.out"),
        ("%6j.out", "000042.out"),
        ("%99j", "0000000042"),
        ("%x-%u-%N-%n-%t", "fit-ann-n7-1-3"),
        ("%5x", "fit"),
        ("%A_%a", "42_4294967294"),
        ("%s", "batch"),
        ("100%%", "100%"),
        ("%y.%", "%y.%"),
        (r"\%j.out", "%j.out"),
    ],
)
def test_a_pattern_stands_for_what_slurm_says(text: str, name: str) -> None:
    assert filled(text, ALONE) == name


def test_an_array_has_a_number_of_its_own() -> None:
    assert filled("%A_%3a.%j", OF_ARRAY) == "42_002.44"
