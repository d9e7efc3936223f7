"""When a GPU counts as broken: decided from what NVML says (pure).

A device that was found broken stays so until an administrator resumes it or Muster starts again and
finds nothing wrong: an error that happened once can happen again, and says nothing when it is over.
Heat and power limits make a GPU slow, not broken, and are not looked at here.
"""

from collections.abc import Mapping

from muster.model.value import Value
from muster.model.xid import xid_of, xid_text

# NVML's advice, by number; 0 is "nothing to do". Draining peers is for the others, not for this.
_ADVICE: Mapping[int, str] = {
    1: "the driver asks for a reset of the GPU",
    2: "the driver asks for a restart of the machine",
    4: "the driver asks to drain and reset the GPU",
    6: "the driver asks for a reset of the GPU's bus",
    7: "the driver asks for a restart of the machine",
}

# NVML's return codes that speak against the device; others (busy, timed out, not allowed) do not.
BROKEN_CODES: Mapping[int, str] = {
    6: "the GPU is gone",
    9: "the driver is not loaded",
    15: "the GPU is lost: fallen off the bus, or out of reach for another reason",
    16: "the GPU needs a reset",
    28: "the GPU is gone",
    999: "the driver cannot reach the GPU",
}


class Reading(Value, gc=False):
    """One look at a device. code: what NVML answered, 0 for an answer.

    uncorrected: memory errors that could not be corrected since the driver was loaded, None where
    the device does not count them.
    """

    code: int = 0
    uncorrected: int | None = None
    remap_pending: bool = False
    remap_failed: bool = False
    advice: int = 0


class Health(Value):
    """What we make of a device so far: well while there is no reason against it.

    known: findings that an administrator has seen and accepted.
    """

    reason: str = ""
    uncorrected: int | None = None
    known: frozenset[str] = frozenset()


def judged(before: Health, reading: Reading) -> Health:
    """The standing after one more look. The first look sets what counters grow from."""
    grown = _grown(before.uncorrected, reading.uncorrected)
    found = [why for why in _findings(reading, grown) if why not in before.known]
    return Health(
        reason=before.reason or (found[0] if found else ""),
        uncorrected=before.uncorrected if reading.uncorrected is None else reading.uncorrected,
        known=before.known,
    )


def struck(before: Health, xid: int) -> Health:
    """The standing after the driver reported this error."""
    if before.reason or not xid_of(xid).verdict.breaks:
        return before
    return Health(reason=xid_text(xid), uncorrected=before.uncorrected, known=before.known)


def resumed(before: Health, reading: Reading | None) -> Health:
    """The administrator wants it used: what the last look found is known from now on."""
    found = () if reading is None else tuple(_findings(reading, 0))
    return Health(uncorrected=before.uncorrected, known=frozenset(found))


def _grown(before: int | None, now: int | None) -> int:
    return 0 if before is None or now is None else max(0, now - before)


def _findings(reading: Reading, grown: int) -> list[str]:
    """Everything that speaks against the device, worst first."""
    wrong = [BROKEN_CODES[reading.code]] if reading.code in BROKEN_CODES else []
    if reading.remap_failed:
        wrong.append("a bad row of memory could not be replaced: replace the GPU")
    if grown:
        wrong.append(f"{grown} more memory errors that could not be corrected")
    if reading.advice in _ADVICE:
        wrong.append(_ADVICE[reading.advice])
    if reading.remap_pending:
        wrong.append("a bad row of memory is replaced at the next reset: reset the GPU")
    return wrong
