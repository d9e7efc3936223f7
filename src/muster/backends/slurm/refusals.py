"""What Slurm's commands say when they fail: what passes, what may pass, and what is a no. Pure."""

from collections.abc import Iterable

from muster.backends.slurm.wire import SlurmDownError, SlurmNotYetError, SlurmRefusedError

_DOWN = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Timed out connecting",
    "Connection refused",
    "Connection reset by peer",
    "Zero Bytes were transmitted",
    "Communication connection failure",
    "Communication shutdown failure",
    "Message send failure",
    "Message receive failure",
    "Transport endpoint",
    "Slurm controller not responding",
    "in standby mode",
    "Primary not responding, backup not in control",
    "Unable to establish control machine address",
    "Unable to establish controller machine",
    "Could not establish a configuration source",
    "Invalid authentication credential",
    "Authentication credential invalid",
    "Protocol authentication error",
    "Failed to connect to authentication agent",
    "Munge",
    "Unable to connect to database",
    "Problem talking to database",
    "Slurm temporarily unable to accept job",
    "Slurm job queue full",
    "Unable to create job record, try again",
    "Requested nodes are busy",
    "Resource temporarily unavailable",
    "Cannot allocate memory",
)
"""Nobody answers, nobody can be trusted yet, or there is no room for one more job just now."""

_NOT_YET = ("Requested node configuration is not available", "Invalid node name specified")
"""Also the answer of a slurmctld that was just started, until its nodes have registered."""


def failure(said: str) -> SlurmDownError | SlurmNotYetError | SlurmRefusedError:
    """What it means that a command failed with these words."""
    if _has(said, _DOWN):
        return SlurmDownError(said)
    if _has(said, _NOT_YET):
        return SlurmNotYetError(said)
    return SlurmRefusedError(said)


def _has(said: str, words: Iterable[str]) -> bool:
    return any(each in said for each in words)
