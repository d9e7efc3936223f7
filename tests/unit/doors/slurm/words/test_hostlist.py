import pytest

from muster.doors.slurm.words.hostlist import BadHostlistError, compressed, expanded, runs_text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[1-3,7]", "node1 node2 node3 node7"),
        ("a[01-03]", "a01 a02 a03"),
        ("n[098-101]", "n098 n099 n100 n101"),
        ("a[1-2]b[1-2]", "a1b1 a1b2 a2b1 a2b2"),
        ("a[1-2]-b[3-4]", "a1-b3 a1-b4 a2-b3 a2-b4"),
        ("a[1,1]", "a1 a1"),
        (",a,,b", "a b"),
        ("a[9-010]", "a9 a10"),
    ],
)
def test_a_list_is_expanded_as_slurm_does(text: str, names: str) -> None:
    assert list(expanded(text)) == names.split()


@pytest.mark.parametrize(
    "text", ["a[1-3]b", "a[1-3", "a[3-1]", "a[1-x]", "a[]", "a]1[", "a[1-99999]"]
)
def test_what_slurm_cannot_read_we_cannot_either(text: str) -> None:
    with pytest.raises(BadHostlistError, match="Invalid hostlist"):
        expanded(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("a9 a10", "a[9-10]"),
        ("a09 a10", "a[09-10]"),
        ("a1 a01", "a[1,01]"),
        ("a1 b1 a2", "a1,b1,a2"),
        ("a1 a1", "a[1,1]"),
        ("a99 a100 a101", "a[99-101]"),
        ("a b c", "a,b,c"),
        ("a1b a2b", "a1b,a2b"),
        ("a3 a1 a2", "a[3,1-2]"),
        ("a099 a100", "a[099-100]"),
        ("a1 a2 a03 b", "a[1-2,03],b"),
        ("r1n1 r1n2 r2n1 r2n2", "r1n[1-2],r2n[1-2]"),
        ("1 2 3", "[1-3]"),
        ("a0 a00", "a[0,00]"),
        ("node4", "node4"),
        ("", ""),
    ],
)
def test_names_are_compressed_as_slurm_does(names: str, text: str) -> None:
    assert compressed(names.split()) == text


def test_equal_counts_are_written_once() -> None:
    assert runs_text([8, 8, 4]) == "8(x2),4"
