import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.pattern import MOST_WORK, BadPatternError, Pattern, TooMuchTextError

NAMES = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
AMOUNTS = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


@pytest.mark.parametrize(
    ("text", "matched", "others"),
    [
        (NAMES, ["a", "a-b.c", "0"], ["", "-a", "a.", "A", "a..b"]),
        (AMOUNTS, ["1", "+1.5Gi", ".5", "1e-3", "100m"], ["", "x", "1Gii", "1e"]),
        (r"a{2,3}$", ["aa", "xaaaa"], ["a", "aab"]),
        (r"^a{2}$", ["aa"], ["a", "aaa"]),
        (r"^a{2,}$", ["aa", "aaaaa"], ["a"]),
        (r"^a{,2}$", ["a{,2}"], ["aa"]),
        (r"^(?:ab|c)+?$", ["ab", "cab"], ["", "a"]),
        (r"(?i)^hello$", ["hello", "HeLLo"], ["hell"]),
        (r"^(?i:a)b$", ["ab", "Ab"], ["aB"]),
        (r"^[^a-c]$", ["d", "\n"], ["a", ""]),
        (r"^[]a-]$", ["]", "a", "-"], ["b"]),
        (r"^[[:alpha:]_]+$", ["ab_"], ["a1"]),
        (r"^\w+\s\d\S\D$", ["ab 1xy"], ["ab11xy", "ab 1x1"]),
        (r"\bword\b", ["a word", "word."], ["words", "sword"]),
        (r"^.$", ["a", "ä"], ["\n", "ab"]),
        (r"(?s)^.$", ["\n"], [""]),
        (r"^\p{Lu}\pL*$", ["Äb"], ["äb", "1"]),
        (r"^\x41\x{42}\.$", ["AB."], ["ABx"]),
        (r"\Aa\z", ["a"], ["ba", "ab"]),
        (r"(?P<name>a)(?<other>b)", ["xab"], ["a"]),
        ("", ["", "a"], []),
        ("a||b", ["", "x"], []),
        ("(a*)*$", ["", "aaa"], []),
    ],
)
def test_an_expression_is_read_as_go_reads_it(
    text: str, matched: list[str], others: list[str]
) -> None:
    known = Pattern(text)

    assert [each for each in matched if not known.is_in(each)] == []
    assert [each for each in others if known.is_in(each)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("(", ")", "[", "[b-a]", "*", "a**", "\\", "\\1", "(?=a)", "(?<n", "a{1001}", "a{3,2}"),
        *("(" * 5_000, "((a{1000}){1000})", "\\x{fffffff}", "[[:nosuch:", "\\p{No-such}", "(?P<"),
    ],
    ids=lambda text: text[:20],
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(BadPatternError):
        Pattern(text)


@pytest.mark.parametrize("text", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^(([a-z])+.)+$"])
def test_no_expression_takes_longer_than_its_length(text: str) -> None:
    begins = time.process_time()

    Pattern(text).is_in("a" * 2_000 + "!")

    assert time.process_time() - begins < 5


def test_a_text_too_long_for_its_expression_is_refused() -> None:
    with pytest.raises(TooMuchTextError):
        Pattern("a").is_in("x" * MOST_WORK)


WORDS = st.text(alphabet="ab.", max_size=8)
PIECES = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\.", "^", "$"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@given(text=PIECES, word=WORDS)
def test_it_answers_as_python_does(text: str, word: str) -> None:
    assert Pattern(text).is_in(word) is (re.search(text.replace("$", r"\Z"), word) is not None)
    assert Pattern(text).is_whole(word) is (
        re.fullmatch(text.replace("$", r"\Z"), word) is not None
    )


@given(text=st.text(alphabet="ab()[]{}|*+?^$.\\,-1dwpLx:<>Pi", max_size=12), word=WORDS)
def test_whatever_is_written_is_read_or_refused(text: str, word: str) -> None:
    try:
        known = Pattern(text)
    except BadPatternError:
        return
    assert known.is_in(word) in {True, False}
