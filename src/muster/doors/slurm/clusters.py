"""Clusters by name: to users of Slurm, Muster is one cluster, and it reaches no others."""

from collections.abc import Collection, Iterable

from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Parsed


def demand_here(command: str, names: Iterable[str], listing: Listing) -> None:
    """Refuse names of clusters that are not ours, in Slurm's words; `all` is ours as well."""
    ours = {listing.cluster, "all", *listing.clusters}
    for name in names:
        if name in ours:
            continue
        raise SlurmError(
            f"{command}: error: No cluster '{name}' known by database.",
            f"{command}: error: '{name}' can't be reached now, or it is an invalid entry for "
            "--cluster.  Use 'sacctmgr list clusters' to see available clusters.",
        )


OPTIONS = ("cluster", "clusters")


def named(command: str, line: Parsed, known: Collection[str]) -> str | None:
    """The clusters that are named, as text; None if none is. SlurmError for an unknown one."""
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
