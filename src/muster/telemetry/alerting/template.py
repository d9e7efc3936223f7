"""Texts of alerts: `GPU {{ $labels.gpu }} has {{ $value | humanize }}°C`.

The part of Go's templates that alerts are written with. Anything else is refused when it is read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muster.model.value import Value
from muster.telemetry.alerting.numbers import HUMANIZERS, formatted, plain
from muster.telemetry.promql.bad import BadExpressionError, unsupported

MOST_CHARACTERS = 10_000


class Label(Value, gc=False):
    """`$labels.gpu`; empty where the alert has no such label."""

    name: str


class TheValue(Value, gc=False):
    """`$value`."""


class Said(Value, gc=False):
    """A text in quotes."""

    text: str


class Humanized(Value):
    """A number in the words of people."""

    how: str
    of: "Term"


class Printed(Value):
    """`printf`: a format and what is put into it."""

    pieces: tuple[str, ...]
    verbs: tuple[str, ...]
    of: tuple["Term", ...]


Term = Label | TheValue | Said | Humanized | Printed


class Template(Value):
    """Texts and terms, in turn. source: as it was written."""

    parts: tuple[str | Term, ...]
    source: str

    def expanded(self, labels: Mapping[str, str], value: float) -> str:
        return "".join(
            part if isinstance(part, str) else _text(part, labels, value) for part in self.parts
        )


def template(text: str) -> Template:
    """BadExpressionError: something in it is not among what alerts are written with."""
    if len(text) > MOST_CHARACTERS:
        why = f"a text of an alert has at most {MOST_CHARACTERS} characters"
        raise BadExpressionError(why, word="", at=0)
    return Template(parts=tuple(_parts(text)), source=text)


def labels_named(written: Template) -> frozenset[str]:
    """The labels that it shows."""
    terms = [part for part in written.parts if not isinstance(part, str)]
    found: set[str] = set()
    while terms:
        term = terms.pop()
        match term:
            case Label(name=name):
                found.add(name)
            case Humanized(of=of):
                terms.append(of)
            case Printed(of=of):
                terms.extend(of)
            case TheValue() | Said():
                pass
    return frozenset(found)


def _parts(text: str) -> Iterator[str | Term]:
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = text.find("}}", start)
        if end < 0:
            raise BadExpressionError("`{{` without `}}`", word=text[start : start + 12], at=start)
        inside = text[start + 2 : end]
        before = text[at:start]
        yield before.rstrip() if inside.startswith("- ") else before
        yield _Reader(_words(inside, start + 2)).whole()
        at = end + 2
        if inside.endswith(" -"):
            at += len(text[at:]) - len(text[at:].lstrip())
    yield text[at:]


class _Word(NamedTuple):
    text: str
    at: int


_WORD = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|\$?[\w.]+|[|()]|(?:(?<=^)-(?=\s))|(?:(?<=\s)-$)|\S'
)


def _words(inside: str, offset: int) -> list[_Word]:
    trimmed = re.sub(r"^-(?=\s)|(?<=\s)-$", " ", inside)
    return [_Word(found.group(), offset + found.start()) for found in _WORD.finditer(trimmed)]


_LABEL = re.compile(r"(?:\$labels|\.Labels)\.([a-zA-Z_]\w*)")
_VALUE = frozenset({"$value", ".Value"})
_VERB = re.compile(r"%(?:%|[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z])")
_NUMBER_VERBS = "fFeEgGv"
_TEXT_VERBS = "sv"


class _Reader:
    """One `{{ }}`: terms, each of which may be passed on by `|`."""

    def __init__(self, words: list[_Word]) -> None:
        self._words = words
        self._at = 0

    def whole(self) -> Term:
        if not self._words:
            raise BadExpressionError("nothing stands between `{{` and `}}`", word="", at=0)
        found = self._pipeline()
        if self._at < len(self._words):
            word = self._words[self._at]
            raise BadExpressionError("not expected here", word=word.text, at=word.at)
        return found

    def _pipeline(self) -> Term:
        found = self._command(None)
        while self._peek() == "|":
            self._at += 1
            found = self._command(found)
        return found

    def _peek(self) -> str:
        return self._words[self._at].text if self._at < len(self._words) else ""

    def _next(self) -> _Word:
        if self._at >= len(self._words):
            last = self._words[-1]
            raise BadExpressionError("something is missing after it", word=last.text, at=last.at)
        self._at += 1
        return self._words[self._at - 1]

    def _command(self, given: Term | None) -> Term:
        word = self._next()
        if word.text in HUMANIZERS:
            of = self._operand(self._next()) if given is None else given
            if not isinstance(of, TheValue):
                raise BadExpressionError("takes $value", word=word.text, at=word.at)
            return Humanized(how=word.text, of=of)
        if word.text == "printf":
            return self._printed(given)
        if given is not None:
            raise unsupported(word.text, word.at)
        return self._operand(word)

    def _operand(self, word: _Word) -> Term:
        if word.text == "(":
            inside = self._pipeline()
            closing = self._next()
            if closing.text != ")":
                raise BadExpressionError("expected `)`", word=closing.text, at=closing.at)
            return inside
        if word.text in _VALUE:
            return TheValue()
        if word.text[0] in '"`' and len(word.text) > 1:
            return Said(text=_unquoted(word))
        label = _LABEL.fullmatch(word.text)
        if label is None:
            raise unsupported(word.text, word.at)
        return Label(name=label.group(1))

    def _printed(self, given: Term | None) -> Term:
        word = self._next()
        if word.text[0] not in '"`' or len(word.text) < 2:
            raise BadExpressionError(
                "printf begins with a quoted format", word=word.text, at=word.at
            )
        of: list[Term] = []
        while self._peek() not in {"", "|", ")"}:
            of.append(self._operand(self._next()))
        of += [] if given is None else [given]
        pieces, verbs = _format(_unquoted(word), word)
        if len(verbs) != len(of):
            why = f"{len(verbs)} verbs, and {len(of)} things to print"
            raise BadExpressionError(why, word=word.text, at=word.at)
        for verb, term in zip(verbs, of, strict=True):
            _demand_fit(verb, term, word)
        return Printed(pieces=pieces, verbs=verbs, of=tuple(of))


def _format(text: str, word: _Word) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts around the verbs, one more than there are verbs; and the verbs."""
    pieces, verbs, at = [""], list[str](), 0
    for found in _VERB.finditer(text):
        pieces[-1] += text[at : found.start()]
        at = found.end()
        if found.group() == "%%":
            pieces[-1] += "%"
            continue
        verbs.append(found.group())
        pieces.append("")
    pieces[-1] += text[at:]
    if "%" in _VERB.sub("", text):
        raise BadExpressionError("a verb that is not known", word=word.text, at=word.at)
    return tuple(pieces), tuple(verbs)


def _demand_fit(verb: str, term: Term, word: _Word) -> None:
    is_number = isinstance(term, TheValue)
    fits = _NUMBER_VERBS if is_number else _TEXT_VERBS
    if verb[-1] in fits and len(verb) < 10:
        return
    hint = "write %.0f for a whole number" if is_number else "write %s for a text"
    raise BadExpressionError(f"{verb} does not print this: {hint}", word=word.text, at=word.at)


def _unquoted(word: _Word) -> str:
    inside = word.text[1:-1]
    if word.text[0] == "`":
        return inside
    plain_escapes = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
    for found in re.finditer(r"\\.", inside):
        if found.group() not in plain_escapes:
            raise BadExpressionError("not an escape", word=found.group(), at=word.at)
    return re.sub(r"\\.", lambda found: plain_escapes[found.group()], inside)


def _text(term: Term, labels: Mapping[str, str], value: float) -> str:
    match term:
        case Label(name=name):
            return labels.get(name, "")
        case TheValue():
            return plain(value)
        case Said(text=text):
            return text
        case Humanized(how=how):
            return HUMANIZERS[how](value)
        case Printed(pieces=pieces, verbs=verbs, of=of):
            said = pieces[0]
            for verb, each, after in zip(verbs, of, pieces[1:], strict=True):
                said += _verb_text(verb, each, labels, value) + after
            return said


def _verb_text(verb: str, term: Term, labels: Mapping[str, str], value: float) -> str:
    if isinstance(term, TheValue):
        return formatted(verb, value)
    return (verb[:-1] + "s") % _text(term, labels, value)
