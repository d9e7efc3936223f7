"""Command lines of srun and salloc for several components: what is asked of which. Pure."""

from collections.abc import Sequence

from muster.doors.slurm.call import Call
from muster.doors.slurm.steps.step_options import Options
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.options import Parsed, parsed
from muster.model.value import Value, replace

COLON = ":"
MOST = 128
"""No job of Slurm has more components."""

GROUP = ("het-group", "pack-group")
DUPLICATE = "srun: fatal: Duplicate het groups in single srun not supported"
NOTHING_THERE = "No directives to start application on any available hetjob components"


class Share(Value):
    """What is asked of one component, by its number in the job."""

    number: int
    line: Parsed


def lines_of(call: Call, options: Options) -> tuple[Parsed, ...]:
    """The command line, cut at lone colons; salloc's command is its own, with all its words."""
    found = [parsed(options.all, call.argv, options.manner)]
    while COLON in (found[-1].rest if options.manner.command == "srun" else found[-1].rest[:1]):
        last = found.pop()
        at = last.rest.index(COLON)
        found.append(replace(last, rest=last.rest[:at]))
        found.append(parsed(options.all, last.rest[at + 1 :], options.manner))
    # Who names no command means that of the last.
    return tuple(replace(line, rest=line.rest or found[-1].rest) for line in found)


def shares_of(lines: Sequence[Parsed], size: int | None) -> tuple[Share, ...]:
    """Which component each line is for, in their order; None: there is no job yet."""
    numbers = [_numbers(line, place) for place, line in enumerate(lines)]
    if size is None or (size == 1 and sum(map(len, numbers)) > 1):
        # Parts of a step in a job of one component go beside each other.
        every = [line for line, own in zip(lines, numbers, strict=True) for _ in own]
        return tuple(Share(number=place, line=line) for place, line in enumerate(every))
    found = [
        Share(number=number, line=line)
        for line, own in zip(lines, numbers, strict=True)
        for number in own
    ]
    _demand_possible(found, size)
    return tuple(sorted(found, key=lambda share: share.number))


def _numbers(line: Parsed, place: int) -> list[int]:
    text = line.value(*GROUP)
    if text is None:
        return [place]
    found: list[int] = []
    for span in text.strip("[]").split(","):
        low, dash, high = span.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise SlurmError(
                f"srun: error: _parse_single_range: Invalid range: `{span}'",
                f"srun: error: Invalid --het-group value: {text}",
            )
        found += range(int(low), min(int(high if dash else low), int(low) + MOST) + 1)
    return found


def _demand_possible(shares: Sequence[Share], size: int) -> None:
    highest = max(share.number for share in shares)
    if highest >= size and not any(share.line.has(name) for share in shares for name in GROUP):
        about = f"value of {highest}, but the job allocation has maximum value of {size - 1}"
        raise failed("srun", f"Attempt to run a job step with het group {about}")
    if highest >= size:
        problem = (
            f"Requested het-group offset exceeds highest hetjob index ({highest} > {size - 1})"
        )
        raise failed("srun", problem)
    if size == 1 and any(share.line.has(name) for share in shares for name in GROUP):
        raise failed("srun", NOTHING_THERE)
    if len({share.number for share in shares}) < len(shares):
        raise SlurmError(DUPLICATE)
