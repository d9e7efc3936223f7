"""Clusters by name: this Muster is one cluster to Slurm's users, and others are not reached."""

from collections.abc import Iterable

from muster.doors.slurm.scene import Scene
from muster.doors.slurm.trouble import SlurmError


def demand_here(command: str, names: Iterable[str], scene: Scene) -> None:
    """Refuse names of clusters that are not ours, in Slurm's words; `all` is ours as well."""
    ours = {scene.cluster, "all", *scene.clusters}
    for name in names:
        if name in ours:
            continue
        raise SlurmError(
            f"{command}: error: No cluster '{name}' known by database.",
            f"{command}: error: '{name}' can't be reached now, or it is an invalid entry for "
            "--cluster.  Use 'sacctmgr list clusters' to see available clusters.",
        )
