"""Which series a selector means."""

import re
from collections.abc import Callable, Mapping

from muster.telemetry.promql.bad import IN_PROMETHEUS
from muster.telemetry.promql.syntax import Matcher, MatchOperator

Fits = Callable[[Mapping[str, str]], bool]

MOST_PATTERN = 1_000

# Prometheus' engine has none of these, or means something else by them.
_NOT_IN_RE2 = re.compile(r"\(\?(?:[=!#>(]|<[=!]|P=|P>)|\\[1-9ZGKkRX]|[*+?}]\+|\\[hHNpPC]")
# Python warns of these inside brackets, because they may come to mean something.
_FUTURE_SETS = ("[", "--", "&&", "||", "~~")


def pattern_fault(text: str) -> str:
    """What speaks against this regular expression; empty for nothing.

    Ours is another engine than Prometheus': it knows more, and may take for ever where a repeated
    group repeats something itself.
    """
    if len(text) > MOST_PATTERN:
        return f"a regular expression has at most {MOST_PATTERN} characters"
    foreign = _NOT_IN_RE2.search(text)
    if foreign is not None:
        return f"Prometheus has no {foreign.group()!r} in regular expressions"
    pieces = [found.group() for found in _PIECE.finditer(text)]
    if any(sign in each[1:] for each in pieces if each[0] == "[" for sign in _FUTURE_SETS):
        return f"a set of characters that engines read differently: {IN_PROMETHEUS}"
    if _repeats_a_repetition(pieces):
        return f"a group that repeats something is repeated: {IN_PROMETHEUS}"
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    return ""


def anchored(text: str) -> re.Pattern[str]:
    """As Prometheus means it: the whole value, whose newlines a dot matches."""
    return re.compile(f"(?s:{text})")


def fits(matchers: tuple[Matcher, ...]) -> Fits:
    """Does a series with these labels fulfil all of them? A label that is not there is empty."""
    tests = tuple(_test(each) for each in matchers)
    return lambda labels: all(test(labels) for test in tests)


def _test(matcher: Matcher) -> Fits:
    name, value = matcher.name, matcher.value
    match matcher.operator:
        case MatchOperator.EQUAL:
            return lambda labels: labels.get(name, "") == value
        case MatchOperator.UNEQUAL:
            return lambda labels: labels.get(name, "") != value
        case MatchOperator.LIKE:
            whole = anchored(value).fullmatch
            return lambda labels: whole(labels.get(name, "")) is not None
        case MatchOperator.UNLIKE:
            whole = anchored(value).fullmatch
            return lambda labels: whole(labels.get(name, "")) is None


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|.", re.DOTALL)


def _repeats_a_repetition(pieces: list[str]) -> bool:
    """Is there something like `(a+)*` or `(a|ab)*`?"""
    open_groups: list[bool] = []
    for at, piece in enumerate(pieces):
        follows = pieces[at + 1] if at + 1 < len(pieces) else ""
        if piece == "(":
            open_groups.append(False)
        elif piece == ")" and open_groups:
            is_risky = open_groups.pop()
            if is_risky and follows in {"*", "+", "{"}:
                return True
            if open_groups:
                open_groups[-1] = open_groups[-1] or is_risky
        elif piece in {"*", "+", "?", "{", "|"} and open_groups:
            # What stands right behind the parenthesis only says what kind of group it is.
            open_groups[-1] = open_groups[-1] or piece != "?" or pieces[at - 1] != "("
    return False
