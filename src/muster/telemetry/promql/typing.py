"""Does each part of an expression get what it can work with?"""

from muster.telemetry.promql.bad import BadExpressionError
from muster.telemetry.promql.lexer import Token
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
    Matching,
    Negated,
    Number,
    Selector,
    Text,
)


def kind_of(expression: Expression) -> Kind:
    """What it gives."""
    match expression:
        case Number():
            return Kind.SCALAR
        case Text():
            return Kind.TEXT
        case Selector(range_ms=range_ms):
            return Kind.VECTOR if range_ms is None else Kind.RANGE
        case Call(function=function):
            return FUNCTIONS[function].gives
        case Aggregate():
            return Kind.VECTOR
        case Binary(left=left, right=right):
            both = {kind_of(left), kind_of(right)}
            return Kind.SCALAR if both == {Kind.SCALAR} else Kind.VECTOR
        case Negated(of=of):
            return kind_of(of)


def check_binary(found: Binary, operator: Token) -> None:
    """BadExpressionError: these two sides do not go with this operator."""
    left, right = kind_of(found.left), kind_of(found.right)
    wrong = next((each for each in (left, right) if each in {Kind.RANGE, Kind.TEXT}), None)
    if wrong is not None:
        raise _bad(f"not with {wrong}", operator)
    are_scalars = left is Kind.SCALAR and right is Kind.SCALAR
    if are_scalars and found.operator in COMPARISONS and not found.is_bool:
        raise _bad("two numbers are compared with `bool`", operator)
    if found.operator in SETS and Kind.SCALAR in {left, right}:
        raise _bad("takes a vector on both sides, and one is a number", operator)
    if found.matching != Matching() and Kind.SCALAR in {left, right}:
        raise _bad("labels are matched between two vectors only", operator)


def check_aggregate(found: Aggregate, name: Token) -> None:
    """BadExpressionError: it takes something else."""
    if AGGREGATES[found.operator] and found.parameter is None:
        raise _bad("takes a number, then a vector", name)
    if not AGGREGATES[found.operator] and found.parameter is not None:
        raise _bad("takes one vector", name)
    if kind_of(found.of) is not Kind.VECTOR:
        raise _bad(f"takes a vector, and is given {kind_of(found.of)}", name)
    if found.parameter is not None and kind_of(found.parameter) is not Kind.SCALAR:
        raise _bad(f"takes a number first, and is given {kind_of(found.parameter)}", name)


def check_call(found: Call, name: Token) -> None:
    """BadExpressionError: it takes something else."""
    takes = FUNCTIONS[found.function].takes
    if len(found.arguments) != len(takes):
        raise _bad(f"takes {len(takes)} arguments, and is given {len(found.arguments)}", name)
    for argument, kind in zip(found.arguments, takes, strict=True):
        if kind_of(argument) is not kind:
            raise _bad(f"takes {kind} here, and is given {kind_of(argument)}", name)
    if found.function == "label_replace":
        _check_replacement(found, name)


def _check_replacement(found: Call, name: Token) -> None:
    texts = [each.value for each in found.arguments if isinstance(each, Text)]
    target, pattern = texts[0], texts[3]
    if not target.isidentifier() or not target.isascii():
        raise _bad(f"{target!r} is not the name of a label", name)
    if why := pattern_fault(pattern):
        raise _bad(why, name)


def _bad(why: str, token: Token) -> BadExpressionError:
    return BadExpressionError(why, word=token.text, at=token.at)
