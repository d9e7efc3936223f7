"""What the errors mean that NVIDIA's driver reports by number (Xids): a table, and what follows.

The advice is that of NVIDIA's Xid catalogue as of October 2025; the words are ours. The verdict
follows the advice, except where a row says why not. A number that is not here is taken for the
worst that a reset mends: a GPU that we trust wrongly costs more jobs than one that we set aside.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from muster.model.value import Value, replace


class Advice(StrEnum):
    """What NVIDIA says is to be done at once."""

    NOTHING = "nothing"
    RESTART_PROGRAM = "restart the program"
    READ_ADVICE = "read the driver's advice"
    RESET = "reset the GPU"
    RESTART_MACHINE = "restart the machine"
    WORKFLOW = "follow its own workflow"
    CHECK_MECHANICS = "check cables and seat"
    UPDATE = "update the driver"
    SUPPORT = "ask for support"


class Verdict(StrEnum):
    """What we make of it. Those from RESET on break the GPU."""

    APP = "app"
    """The program's own mistake: its job hears of it, and the GPU is well."""
    PASSING = "passing"
    """Worth a line in a log; the GPU goes on by itself."""
    RESET = "reset"
    REBOOT = "reboot"
    SERVICE = "service"

    @property
    def breaks(self) -> bool:
        """Does the GPU take no more work until somebody has seen to it?"""
        return self not in {Verdict.APP, Verdict.PASSING}


class Xid(Value, gc=False):
    """One kind of error. suspect: the GPU goes on, and is no longer as good as the others.

    of_engine: an engine for copies or video met it; if that happens often, the engine is at fault.
    """

    number: int
    text: str
    advice: Advice
    verdict: Verdict
    suspect: bool = False
    of_engine: bool = False


def _row(
    numbers: Iterable[int], text: str, advice: Advice, verdict: Verdict, *, suspect: bool = False
) -> tuple[Xid, ...]:
    return tuple(
        Xid(number=number, text=text, advice=advice, verdict=verdict, suspect=suspect)
        for number in numbers
    )


_COPY_ENGINES = (*range(39, 42), *range(70, 73), *range(75, 78), 85, *range(126, 136))
_VIDEO_ENGINES = (82, 83, 84, 86, 88, 89, *range(96, 106), 139)

_ROWS: tuple[tuple[Xid, ...], ...] = (
    # The program's own mistakes.
    _row([8], "a kernel ran for too long", Advice.RESTART_PROGRAM, Verdict.APP),
    _row([11], "a program's commands came damaged", Advice.RESTART_PROGRAM, Verdict.APP),
    _row(
        [13],
        "a kernel did something that the GPU does not allow",
        Advice.RESTART_PROGRAM,
        Verdict.APP,
    ),
    _row(
        [25],
        "a program sent commands that the GPU does not allow",
        Advice.RESTART_PROGRAM,
        Verdict.APP,
    ),
    _row([31], "a kernel used memory that is not its own", Advice.RESTART_PROGRAM, Verdict.APP),
    _row(
        [32],
        "a program sent commands that the GPU cannot read",
        Advice.RESTART_PROGRAM,
        Verdict.APP,
    ),
    _row(
        [60, 68],
        "the video engine met a stream that it cannot read",
        Advice.RESTART_PROGRAM,
        Verdict.APP,
    ),
    _row(
        [69],
        "a program asked an engine for what it does not do",
        Advice.RESTART_PROGRAM,
        Verdict.APP,
    ),
    _row([80], "a program's data came damaged to the GPU", Advice.RESTART_PROGRAM, Verdict.APP),
    _row(
        _COPY_ENGINES,
        "a copy engine met work that it cannot do",
        Advice.RESTART_PROGRAM,
        Verdict.APP,
    ),
    _row(
        _VIDEO_ENGINES,
        "a video engine met work that it cannot do",
        Advice.RESTART_PROGRAM,
        Verdict.APP,
    ),
    # After-effects of the above, and notes.
    _row([37, 38], "the driver's firmware complained", Advice.NOTHING, Verdict.PASSING),
    _row(
        [43],
        "a program's work was stopped because of its own fault",
        Advice.NOTHING,
        Verdict.PASSING,
    ),
    _row([44], "a program's work failed while it was switched", Advice.NOTHING, Verdict.PASSING),
    # The catalogue's advice is about the fabric manager; the GPU itself has nothing.
    _row(
        [45],
        "a program was ended, and its work with it",
        Advice.RESTART_PROGRAM,
        Verdict.PASSING,
    ),
    _row([66, 67], "a program used the driver wrongly", Advice.NOTHING, Verdict.PASSING),
    _row([121], "an error on the link to the CPU was corrected", Advice.NOTHING, Verdict.PASSING),
    _row(
        [137],
        "a program used memory of another GPU that it may not use",
        Advice.NOTHING,
        Verdict.PASSING,
    ),
    _row([141, 152, 153], "the driver took note of something", Advice.NOTHING, Verdict.PASSING),
    # Recorded or corrected.
    _row(
        [63],
        "a bad row of memory was taken note of, to be replaced at the next reset",
        Advice.NOTHING,
        Verdict.PASSING,
        suspect=True,
    ),
    _row([92], "many memory errors were corrected", Advice.NOTHING, Verdict.PASSING, suspect=True),
    _row([93], "a record on the board is written often", Advice.NOTHING, Verdict.PASSING),
    _row(
        [94],
        "a memory error was contained to the program that met it",
        Advice.RESTART_PROGRAM,
        Verdict.PASSING,
    ),
    _row([106, 107], "a test message", Advice.NOTHING, Verdict.PASSING),
    _row(
        [154],
        "the driver's advice on how to recover changed",
        Advice.READ_ADVICE,
        Verdict.PASSING,
    ),
    _row([157, 160, 161], "the driver took note of something", Advice.NOTHING, Verdict.PASSING),
    # The catalogue names no action for these. 171 and 172 come with a 48, which decides.
    _row(range(162, 166), "a note on power smoothing", Advice.NOTHING, Verdict.PASSING),
    _row([171, 172], "details of a memory error", Advice.NOTHING, Verdict.PASSING),
    # The GPU is of no use until it is reset.
    _row([46], "the GPU stopped working", Advice.RESET, Verdict.RESET),
    # It has a workflow of its own, which ends in a reset for all but contained errors: 94.
    _row([48], "memory error that could not be corrected", Advice.WORKFLOW, Verdict.RESET),
    _row([61], "internal microcontroller stopped", Advice.SUPPORT, Verdict.RESET),
    _row([62], "internal microcontroller halted", Advice.RESET, Verdict.RESET),
    _row([64], "a bad row of memory could not be taken note of", Advice.RESET, Verdict.RESET),
    # Whether a link error is fatal is in a sub-code that NVML does not tell.
    _row([74, *range(144, 151)], "NVLink error", Advice.WORKFLOW, Verdict.RESET),
    _row([95], "memory error that could not be contained", Advice.RESET, Verdict.RESET),
    _row([109], "work could not be switched in time", Advice.RESET, Verdict.RESET),
    _row([110], "security fault", Advice.RESET, Verdict.RESET),
    _row([119], "the GPU's system processor does not answer", Advice.RESET, Verdict.RESET),
    _row([120], "the GPU's system processor failed", Advice.RESET, Verdict.RESET),
    _row([136], "the GPU's links could not be set up", Advice.RESET, Verdict.RESET),
    _row([140], "memory error that was not recovered", Advice.RESET, Verdict.RESET),
    _row([143], "the GPU could not be set up", Advice.RESET, Verdict.RESET),
    _row([155], "the NVLink software gave up", Advice.RESET, Verdict.RESET),
    _row([156], "a part of the GPU was taken out of use", Advice.RESET, Verdict.RESET),
    _row([158], "the GPU lost its timing", Advice.RESET, Verdict.RESET),
    # A reset does not reach it.
    _row([79], "fallen off the bus", Advice.RESTART_MACHINE, Verdict.REBOOT),
    _row([54], "the power cable is not connected", Advice.CHECK_MECHANICS, Verdict.SERVICE),
    _row([78], "the virtual GPU could not start", Advice.UPDATE, Verdict.SERVICE),
)

XIDS: Mapping[int, Xid] = {
    each.number: replace(each, of_engine=each.number in {*_COPY_ENGINES, *_VIDEO_ENGINES})
    for row in _ROWS
    for each in row
}


def xid_of(number: int) -> Xid:
    """The row of this number; one of its own for a number that we have no words for."""
    return XIDS.get(number) or Xid(
        number=number,
        text="an error that we have no words for",
        advice=Advice.SUPPORT,
        verdict=Verdict.RESET,
    )


def xid_text(number: int) -> str:
    """`Xid 79: fallen off the bus`."""
    return f"Xid {number}: {xid_of(number).text}"
