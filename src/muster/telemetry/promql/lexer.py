"""An expression as its words."""

import re
from enum import StrEnum
from typing import NamedTuple

from muster.telemetry.promql.bad import BadExpressionError, unsupported


class TokenKind(StrEnum):
    """What a word is."""

    NUMBER = "number"
    DURATION = "duration"
    STRING = "string"
    NAME = "name"
    SIGN = "sign"
    END = "end"


class Token(NamedTuple):
    """One word, as it was written, and where."""

    kind: TokenKind
    text: str
    at: int


MOST_CHARACTERS = 20_000

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_WORDS: tuple[tuple[TokenKind, re.Pattern[str]], ...] = (
    (TokenKind.DURATION, re.compile(r"(?:\d+(?:ms|[smhdwy]))+(?![\w.])")),
    (
        TokenKind.NUMBER,
        re.compile(r"(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"),
    ),
    (TokenKind.NAME, re.compile(r"(?:[a-zA-Z_]|:[a-zA-Z_:])[a-zA-Z0-9_:]*")),
    (
        TokenKind.STRING,
        re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`'),
    ),
    (TokenKind.SIGN, re.compile(r"==|!=|=~|!~|<=|>=|[-+*/%^<>=(){}\[\],:@]")),
)


def tokens(text: str) -> list[Token]:
    """All words and an END. BadExpressionError: a character that no word begins with."""
    if len(text) > MOST_CHARACTERS:
        why = f"an expression has at most {MOST_CHARACTERS} characters, and this has {len(text)}"
        raise BadExpressionError(why, word="", at=0)
    found: list[Token] = []
    at = _skipped(text, 0)
    while at < len(text):
        token = _token(text, at)
        found.append(token)
        at = _skipped(text, at + len(token.text))
    return [*found, Token(TokenKind.END, "", len(text))]


def _skipped(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _token(text: str, at: int) -> Token:
    for kind, pattern in _WORDS:
        found = pattern.match(text, at)
        if found is not None:
            return Token(kind, found.group(), at)
    rest = text[at : at + 12].split("\n", 1)[0]
    if text[at] in "\"'`":
        raise BadExpressionError("a string that does not end", word=rest, at=at)
    if text[at].isdigit() or text[at] == ".":
        rest = re.split(r"[^\w.]", rest, maxsplit=1)[0]
        raise BadExpressionError("neither a number nor a duration", word=rest, at=at)
    if text[at] == "$":
        raise unsupported(rest, at, "write the value itself")
    raise BadExpressionError("a character that no word begins with", word=text[at], at=at)


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))")
_ONE_LETTER = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def unquoted(token: Token) -> str:
    """What a string says: escapes as in Go, none between backticks."""
    inside = token.text[1:-1]
    if token.text[0] == "`":
        return inside

    def said(found: re.Match[str]) -> str:
        hexadecimal = found.group(1) or found.group(2) or found.group(3)
        number = int(hexadecimal, 16) if hexadecimal else int(found.group(4) or "0", 8)
        letter = found.group(5)
        if letter is None and number <= 0x10FFFF:
            return chr(number)
        if letter in _ONE_LETTER:
            return _ONE_LETTER[letter]
        if letter is not None and letter in "\\" + token.text[0]:
            return letter
        raise BadExpressionError("not an escape", word=found.group(), at=token.at)

    return _ESCAPE.sub(said, inside)
