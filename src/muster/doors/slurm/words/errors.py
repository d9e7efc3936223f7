"""What a command prints when it cannot do what it was asked, in Slurm's words and numbers."""

from muster.model.errors import MusterError


class SlurmError(MusterError):
    """The user: `lines` go to stderr as they are, and the command ends with `code`.

    on_stdout: Slurm gives some of them as answers.
    """

    def __init__(self, *lines: str, code: int = 1, on_stdout: bool = False) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.code = code
        self.on_stdout = on_stdout

    @property
    def text(self) -> str:
        """What is shown."""
        return "".join(f"{line}\n" for line in self.lines)


def failed(command: str, text: str, *, code: int = 1) -> SlurmError:
    """`sbatch: error: ...`, the way every command says it."""
    return SlurmError(f"{command}: error: {text}", code=code)


NUMBERS = {
    0: "No error",
    1000: "Unexpected message received",
    2000: "Invalid partition name specified",
    2002: "Access/permission denied",
    2010: "Invalid user id",
    2014: "Requested node configuration is not available",
    2016: "Requested nodes are busy",
    2017: "Invalid job id specified",
    2018: "Invalid node name specified",
    2024: "Job is pending execution",
    2029: "Invalid feature specification",
    2037: "Requested operation is presently disabled",
    2038: "Job dependency problem",
    2045: "Invalid account or account/partition combination specified",
    2048: "Invalid license specification",
    2050: ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"),
    2051: "Requested time limit is invalid (missing or exceeds some limit)",
    2052: "Access denied to requested reservation",
    2053: "Requested reservation is invalid",
    2055: "Requested reservation is in use",
    2058: "Requested reservation overlaps with another reservation",
    2066: "Invalid qos specification",
    2072: "Invalid generic resource (gres) specification",
    2073: "Job is no longer pending execution",
    2081: "Invalid job array specification",
    2082: "Duplicate reservation name",
    2084: "Job has already finished",
    2108: "Operation not permitted on individual component of heterogeneous job",
}
