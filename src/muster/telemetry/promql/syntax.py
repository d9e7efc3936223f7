"""An expression that was read and may be evaluated."""

from enum import StrEnum

from muster.model.value import Value


class Kind(StrEnum):
    """What an expression gives."""

    SCALAR = "a number"
    VECTOR = "a vector"
    RANGE = "a range"
    TEXT = "a string"


class Number(Value, gc=False):
    """A number as it stands."""

    value: float


class Text(Value, gc=False):
    """A string as it stands."""

    value: str


class MatchOperator(StrEnum):
    """How a label's value is compared."""

    EQUAL = "="
    UNEQUAL = "!="
    LIKE = "=~"
    UNLIKE = "!~"


class Matcher(Value, gc=False):
    """One condition on one label."""

    name: str
    operator: MatchOperator
    value: str


class Selector(Value):
    """Series by their name and labels: at an instant, or over the time before it."""

    name: str
    matchers: tuple[Matcher, ...] = ()
    range_ms: int | None = None
    offset_ms: int = 0


class Call(Value):
    """A function and what it is given."""

    function: str
    arguments: tuple["Expression", ...] = ()


class Aggregate(Value):
    """Many series made one for each group. excludes: by all labels but these."""

    operator: str
    of: "Expression"
    parameter: "Expression | None" = None
    labels: tuple[str, ...] = ()
    excludes: bool = False


class Many(StrEnum):
    """Which side of an operator may have many series for one of the other."""

    LEFT = "group_left"
    RIGHT = "group_right"


class Matching(Value):
    """Which series of two sides belong together. on: by these labels; else by all others."""

    labels: tuple[str, ...] = ()
    on: bool = False
    many: Many | None = None
    include: tuple[str, ...] = ()


class Binary(Value):
    """Two sides and what is done with them. is_bool: a comparison says 0 or 1."""

    operator: str
    left: "Expression"
    right: "Expression"
    matching: Matching = Matching()
    is_bool: bool = False


class Negated(Value):
    """A minus before an expression."""

    of: "Expression"


Expression = Number | Text | Selector | Call | Aggregate | Binary | Negated

ARITHMETIC = frozenset("+ - * / % ^".split())
COMPARISONS = frozenset("== != < > <= >=".split())
SETS = frozenset("and or unless".split())


def parts(expression: Expression) -> tuple[Expression, ...]:
    """What an expression is made of, one level down."""
    match expression:
        case Number() | Text() | Selector():
            return ()
        case Call():
            return expression.arguments
        case Aggregate(of=of, parameter=parameter):
            return (of,) if parameter is None else (parameter, of)
        case Binary(left=left, right=right):
            return (left, right)
        case Negated(of=of):
            return (of,)


def selectors(expression: Expression) -> tuple[Selector, ...]:
    """Every series that is asked for."""
    if isinstance(expression, Selector):
        return (expression,)
    return tuple(each for part in parts(expression) for each in selectors(part))
