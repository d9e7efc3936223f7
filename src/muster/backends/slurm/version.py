"""Which Slurm a cluster is, and whether we know it. Pure."""

import re

OLDEST, NEWEST = (20, 11), (25, 11)
"""Releases whose commands print what we read. Every test on a real one is on 22.05."""
_RELEASE = re.compile(r"(\d+)\.(\d+)")


def version_in(text: str) -> str:
    """Of `scontrol show config`: what slurmctld says that it is."""
    for line in text.splitlines():
        name, _, said = line.partition("=")
        if name.strip() == "SLURM_VERSION":
            return said.strip()
    return ""


def caution(version: str) -> str:
    """What an administrator should know of this version; empty where there is nothing."""
    found = _RELEASE.match(version)
    if found is None:
        return f"it does not say which Slurm it is ({version or 'nothing'})"
    release = (int(found[1]), int(found[2]))
    if OLDEST <= release <= NEWEST:
        return ""
    side, edge = ("older", OLDEST) if release < OLDEST else ("newer", NEWEST)
    return (
        f"Slurm {version} is {side} than {_named(edge)}: what its commands print may be misread; "
        "try it with jobs that may be lost"
    )


def _named(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]:02d}"
