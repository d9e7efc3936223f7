"""`-M`: the clusters that a command is told to ask. There is one Muster, whatever they are."""

from collections.abc import Collection

from muster.doors.slurm.options import Parsed
from muster.doors.slurm.trouble import SlurmError

OPTIONS = ("cluster", "clusters")


def named(command: str, line: Parsed, known: Collection[str]) -> str | None:
    """The clusters that are named, as text; None if none is. SlurmError for one nobody knows."""
    words = line.words(*OPTIONS)
    for word in words:
        if word not in known and word != "all":
            raise SlurmError(
                f"{command}: error: No cluster '{word}' known by database.",
                f"{command}: error: '{word}' can't be reached now, or it is an invalid entry for "
                "--cluster.  Use 'sacctmgr list clusters' to see available clusters.",
            )
    return ",".join(sorted(known) if "all" in words else words) or None


def heading(clusters: str | None, *, header: bool) -> list[str]:
    """The line above a list that was asked for by cluster."""
    return [f"CLUSTER: {clusters}"] if clusters is not None and header else []
