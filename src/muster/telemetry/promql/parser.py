"""Reads an expression, or says which word of it cannot be evaluated.

The precedence is Prometheus': `^`, then `* / %`, `+ -`, comparisons, `and unless`, `or`.
"""

from collections.abc import Mapping

from muster.telemetry.promql.bad import BadExpressionError, unsupported
from muster.telemetry.promql.durations import milliseconds
from muster.telemetry.promql.lexer import Token, TokenKind, tokens, unquoted
from muster.telemetry.promql.matching import pattern_fault
from muster.telemetry.promql.signatures import AGGREGATES, FUNCTIONS
from muster.telemetry.promql.syntax import (
    COMPARISONS,
    SETS,
    Aggregate,
    Binary,
    Call,
    Expression,
    Kind,
    Many,
    Matcher,
    Matching,
    MatchOperator,
    Negated,
    Number,
    Selector,
    Text,
)
from muster.telemetry.promql.typing import check_aggregate, check_binary, check_call, kind_of

DEEPEST = 60
"""Levels of parentheses; more would be an attack on our stack."""

_LEVELS: Mapping[str, int] = {
    "or": 1,
    "and": 2,
    "unless": 2,
    **dict.fromkeys(COMPARISONS, 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
    "^": 6,
}
_UNARY = 5
_UNSUPPORTED_WORDS = frozenset("atan2 start end smoothed anchored group stddev stdvar".split()) | {
    *("bottomk count_values quantile limitk limit_ratio fill fill_left fill_right".split())
}
_KEYWORDS = frozenset("by without on ignoring group_left group_right bool offset".split())


def parsed(text: str) -> Expression:
    """The expression; BadExpressionError with the first word that is wrong."""
    parser = _Parser(tokens(text))
    found = parser.expression(0)
    parser.expect_end()
    if kind_of(found) is Kind.RANGE:
        raise BadExpressionError("a range alone is no answer: give it to a function", word="", at=0)
    if kind_of(found) is Kind.TEXT:
        raise BadExpressionError("a string alone is no answer", word="", at=0)
    return found


class _Parser:
    """Reads from left to right and never goes back."""

    def __init__(self, words: list[Token]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    def expression(self, level: int) -> Expression:
        """Everything that binds tighter than this level."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadExpressionError("nested too deeply", word=self._now.text, at=self._now.at)
        left = self._unary()
        while (binds := _LEVELS.get(self._now.text.lower(), 0)) > level:
            operator = self._next()
            # A power of a power is read from the right, everything else from the left.
            inner = binds - 1 if operator.text == "^" else binds
            left = self._binary(operator, left, inner)
        self._depth -= 1
        return left

    def expect_end(self) -> None:
        if self._now.kind is not TokenKind.END:
            if self._now.text == "@":
                raise unsupported("@", self._now.at, "use `offset`")
            if self._now.text.lower() in _UNSUPPORTED_WORDS:
                raise unsupported(self._now.text, self._now.at)
            raise BadExpressionError("not expected here", word=self._now.text, at=self._now.at)

    @property
    def _now(self) -> Token:
        return self._words[self._at]

    def _next(self) -> Token:
        token = self._now
        if token.kind is not TokenKind.END:
            self._at += 1
        return token

    def _is(self, text: str) -> bool:
        return self._now.text.lower() == text and self._now.kind is not TokenKind.STRING

    def _take(self, text: str) -> bool:
        found = self._is(text)
        self._at += found
        return found

    def _expect(self, text: str) -> Token:
        if not self._is(text):
            found = self._now.text or "the end"
            raise BadExpressionError(f"expected {text!r} here", word=found, at=self._now.at)
        return self._next()

    def _unary(self) -> Expression:
        token = self._now
        if self._take("+"):
            return self._signed(token)
        if self._take("-"):
            of = self._signed(token)
            return Number(value=-of.value) if isinstance(of, Number) else Negated(of=of)
        return self._with_time(self._atom())

    def _signed(self, sign: Token) -> Expression:
        of = self.expression(_UNARY)
        if kind_of(of) not in {Kind.SCALAR, Kind.VECTOR}:
            raise BadExpressionError(f"not before {kind_of(of)}", word=sign.text, at=sign.at)
        return of

    def _binary(self, operator: Token, left: Expression, level: int) -> Expression:
        is_bool = self._is("bool")
        if is_bool and operator.text not in COMPARISONS:
            raise BadExpressionError("only with a comparison", word="bool", at=self._now.at)
        self._at += is_bool
        matching = self._matching(operator)
        if self._now.text.lower() in {"fill", "fill_left", "fill_right"}:
            raise unsupported(self._now.text, self._now.at)
        found = Binary(
            operator=operator.text.lower(),
            left=left,
            right=self.expression(level),
            matching=matching,
            is_bool=is_bool,
        )
        check_binary(found, operator)
        return found

    def _matching(self, operator: Token) -> Matching:
        if not (self._is("on") or self._is("ignoring")):
            return Matching()
        on = self._next().text.lower() == "on"
        labels = self._labels()
        if not (self._is("group_left") or self._is("group_right")):
            return Matching(labels=labels, on=on)
        word = self._next()
        if operator.text.lower() in SETS:
            raise BadExpressionError(
                f"not with {operator.text!r}, which takes many on both sides",
                word=word.text,
                at=word.at,
            )
        include = self._labels() if self._is("(") else ()
        both = set(labels) & set(include)
        if on and both:
            why = f"label {min(both)!r} must not be in `on` and here"
            raise BadExpressionError(why, word=word.text, at=word.at)
        return Matching(labels=labels, on=on, many=Many(word.text.lower()), include=include)

    def _labels(self) -> tuple[str, ...]:
        self._expect("(")
        found: list[str] = []
        while not self._is(")"):
            found.append(self._label())
            if not self._take(","):
                break
        self._expect(")")
        return tuple(found)

    def _label(self) -> str:
        token = self._next()
        if token.kind is TokenKind.STRING:
            raise unsupported(token.text, token.at, "write the label without quotes")
        # A word such as `1m` is a duration elsewhere; names never begin with a digit.
        if token.kind is not TokenKind.NAME or ":" in token.text:
            raise BadExpressionError("not the name of a label", word=token.text, at=token.at)
        return token.text

    def _atom(self) -> Expression:
        token = self._next()
        match token.kind:
            case TokenKind.NUMBER:
                return Number(value=_number(token))
            case TokenKind.DURATION:
                return Number(value=self._span_ms(token) / 1000)
            case TokenKind.STRING:
                return Text(value=unquoted(token))
            case TokenKind.NAME:
                return self._named(token)
            case TokenKind.SIGN if token.text == "(":
                inside = self.expression(0)
                self._expect(")")
                return inside
            case TokenKind.SIGN if token.text == "{":
                self._at -= 1
                return self._selector("", token)
            case _:
                found = token.text or "the end"
                raise BadExpressionError("expected a value here", word=found, at=token.at)

    def _named(self, token: Token) -> Expression:
        word = token.text.lower()
        if word in AGGREGATES and (self._is("(") or self._is("by") or self._is("without")):
            return self._aggregate(token)
        if self._is("("):
            return self._call(token)
        if word in {"inf", "nan"}:
            return Number(value=float(word))
        if word in _UNSUPPORTED_WORDS and (self._is("by") or self._is("without")):
            raise unsupported(token.text, token.at)
        if word in _KEYWORDS or word in SETS or word == "atan2":
            raise BadExpressionError("expected a value here", word=token.text, at=token.at)
        return self._selector(token.text, token)

    def _aggregate(self, token: Token) -> Expression:
        grouping = self._grouping()
        self._expect("(")
        first = self.expression(0)
        parameter = None
        if self._take(","):
            parameter, first = first, self.expression(0)
        self._take(",")
        self._expect(")")
        excludes, labels = grouping or self._grouping() or (False, ())
        found = Aggregate(
            operator=token.text.lower(),
            of=first,
            parameter=parameter,
            labels=labels,
            excludes=excludes,
        )
        check_aggregate(found, token)
        return found

    def _grouping(self) -> tuple[bool, tuple[str, ...]] | None:
        if not (self._is("by") or self._is("without")):
            return None
        excludes = self._next().text.lower() == "without"
        return excludes, self._labels()

    def _call(self, token: Token) -> Expression:
        if token.text not in FUNCTIONS:
            raise unsupported(token.text, token.at)
        self._expect("(")
        arguments: list[Expression] = []
        while not self._is(")"):
            arguments.append(self.expression(0))
            if not self._take(","):
                break
        self._expect(")")
        found = Call(function=token.text, arguments=tuple(arguments))
        check_call(found, token)
        return found

    def _selector(self, name: str, token: Token) -> Selector:
        matchers = self._matchers() if self._is("{") else ()
        names = [each for each in matchers if each.name == "__name__"]
        if name and names:
            raise BadExpressionError("the name is given twice", word=name, at=token.at)
        if names and (len(names) > 1 or names[0].operator is not MatchOperator.EQUAL):
            raise unsupported("__name__", token.at, "name one metric")
        name = name or (names[0].value if names else "")
        if not name:
            raise unsupported("{", token.at, "name the metric before the labels")
        others = tuple(each for each in matchers if each.name != "__name__")
        return Selector(name=name, matchers=others)

    def _matchers(self) -> tuple[Matcher, ...]:
        self._expect("{")
        found: list[Matcher] = []
        while not self._is("}"):
            found.append(self._matcher())
            if not self._take(","):
                break
        self._expect("}")
        return tuple(found)

    def _matcher(self) -> Matcher:
        name, sign, value = self._label(), self._next(), self._next()
        try:
            operator = MatchOperator(sign.text)
        except ValueError:
            why = "expected one of = != =~ !~"
            raise BadExpressionError(why, word=sign.text, at=sign.at) from None
        if value.kind is not TokenKind.STRING:
            raise BadExpressionError("expected a quoted value", word=value.text, at=value.at)
        text = unquoted(value)
        if operator in {MatchOperator.LIKE, MatchOperator.UNLIKE} and (why := pattern_fault(text)):
            raise BadExpressionError(why, word=value.text, at=value.at)
        return Matcher(name=name, operator=operator, value=text)

    def _with_time(self, found: Expression) -> Expression:
        """What follows a selector: its range and its offset."""
        while self._is("[") or self._is("offset") or self._is("@"):
            token = self._next()
            if token.text == "@":
                raise unsupported("@", token.at, "use `offset`")
            if not isinstance(found, Selector):
                raise unsupported(token.text, token.at, "only a metric has a range or an offset")
            found = self._ranged(found, token) if token.text == "[" else self._moved(found, token)
        return found

    def _ranged(self, found: Selector, token: Token) -> Selector:
        if found.range_ms is not None or found.offset_ms:
            why = "the range stands behind the metric, before any offset"
            raise BadExpressionError(why, word="[", at=token.at)
        span = self._next()
        range_ms = self._span_ms(span)
        if self._is(":"):
            raise unsupported(":", self._now.at, "record the inner expression with a rule")
        self._expect("]")
        if range_ms <= 0:
            raise BadExpressionError("a range is longer than 0", word=span.text, at=span.at)
        return Selector(name=found.name, matchers=found.matchers, range_ms=range_ms)

    def _moved(self, found: Selector, token: Token) -> Selector:
        if found.offset_ms:
            raise BadExpressionError("an offset was given already", word="offset", at=token.at)
        is_negative = self._take("-")
        offset_ms = self._span_ms(self._next())
        return Selector(
            name=found.name,
            matchers=found.matchers,
            range_ms=found.range_ms,
            offset_ms=-offset_ms if is_negative else offset_ms,
        )

    def _span_ms(self, token: Token) -> int:
        """A duration, or a number of seconds."""
        if token.kind is TokenKind.DURATION and (found := milliseconds(token.text)) is not None:
            return found
        if token.kind is TokenKind.NUMBER and abs(_number(token)) < 1e10:
            return round(_number(token) * 1000)
        raise BadExpressionError("expected a duration, such as 5m", word=token.text, at=token.at)


def _number(token: Token) -> float:
    if token.text[:2].lower() == "0x":
        return float(int(token.text, 16))
    return float(token.text)
