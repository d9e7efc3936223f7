"""What is sent to a sink in one go (pure)."""

from muster.model.value import Value


class Post(Value, gc=False):
    """A request of HTTP. path: below the address of the sink. count: of lines, or of series."""

    path: str
    body: bytes
    count: int
