"""What is told to somebody whose command cannot be carried out, in Slurm's own words."""

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
