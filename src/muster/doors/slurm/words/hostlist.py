"""Lists of nodes as Slurm reads them: `node[1-3,7],gpu[01-04]`. Pure.

Both ways are `model.hostlist`; what is no list is refused here in Slurm's words.
"""

from muster.doors.slurm.words.errors import SlurmError
from muster.model import hostlist
from muster.model.hostlist import compressed, ranges_text, runs_text

__all__ = ["BadHostlistError", "compressed", "expanded", "ranges_text", "runs_text"]


class BadHostlistError(SlurmError):
    """The text is no list of nodes."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Invalid hostlist: {text}")


def expanded(text: str) -> tuple[str, ...]:
    """Every name that the expression stands for, in its order."""
    try:
        return hostlist.expanded(text)
    except hostlist.NoHostlistError:
        raise BadHostlistError(text) from None
