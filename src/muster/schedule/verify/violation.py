"""What is wrong with a plan."""

from muster.model.value import Value


class Violation(Value, gc=False):
    """A hard rule that a plan breaks: which one, for whom or where, and by how much."""

    rule: str
    subject: str
    text: str
