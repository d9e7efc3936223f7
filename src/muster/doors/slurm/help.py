"""`--help` and `--usage`: what a command takes, from its table of options."""

from collections.abc import Sequence

from muster.doors.slurm.call import Reply
from muster.doors.slurm.words.options import Option, Takes


def help_reply(command: str, options: Sequence[Option], words: str = "[OPTIONS]") -> Reply:
    """Every option that the command knows; their meaning is Slurm's."""
    shown = "\n".join(map(_line, options))
    about = "See `man` of Slurm for their meaning; `docs/howto/slurm.md` says what differs here."
    return Reply(out=f"Usage: {command} {words}\n\n{shown}\n\n{about}\n")


def columns_of(names: Sequence[str]) -> str:
    """What --helpformat prints: four in a line."""
    cells = [f"{name:<19}" for name in names]
    rows = [" ".join(cells[at : at + 4]) for at in range(0, len(cells), 4)]
    return "".join(f"{row}\n" for row in rows)


def _line(option: Option) -> str:
    short = f"-{option.short}, " if option.short else "    "
    value = {Takes.NO: "", Takes.MUST: "=VALUE", Takes.MAY: "[=VALUE]"}[option.takes]
    return f"  {short}--{option.name}{value}"
