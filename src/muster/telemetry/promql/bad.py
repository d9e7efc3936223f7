"""What is wrong with an expression or a template, and where."""

from muster.model.errors import MusterError

IN_PROMETHEUS = "Muster does not evaluate it; run this rule in a Prometheus"


class BadExpressionError(MusterError):
    """The user: change the expression. at: where in the text the word begins."""

    def __init__(self, why: str, *, word: str, at: int) -> None:
        super().__init__(f"{word!r}: {why}" if word else why)
        self.why = why
        self.word = word
        self.at = at


def unsupported(word: str, at: int, instead: str = "") -> BadExpressionError:
    """It may be right, and it is not in the part of the language that we evaluate."""
    why = f"{instead}, else {IN_PROMETHEUS[7:]}" if instead else IN_PROMETHEUS
    return BadExpressionError(why, word=word, at=at)


class BadEvaluationError(MusterError):
    """The user: the expression does not fit the series that there are."""
