"""How far a GPU is trusted: decided from what NVML and its driver say (pure).

A device that was found broken takes no work. When an administrator resumes it, or Muster starts
again, it is on probation: a test decides whether it is well again, because an error that happened
once can happen again. One that breaks too often, or that cannot be mended, is retired.
Heat and power limits make a GPU slow, not broken, and are not looked at here.
"""

from collections.abc import Mapping

from muster.model.gpu import DeviceState
from muster.model.value import DAY, HOUR, Duration, Instant, Value, replace
from muster.model.xid import Verdict, xid_of, xid_text

RETIRES_AFTER = 3
REMEMBERED = Duration(30 * DAY)
"""So many breaks in this time, and a device is retired."""

SUSPECT_AFTER = 3
_ENGINE_ERRORS_FOR = HOUR
"""So many errors of copy or video engines in this time, and the device may be at fault."""

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

_REMAP_FAILED = "a bad row of memory could not be replaced: replace the GPU"
_REMAP_PENDING = "a bad row of memory is replaced at the next reset: reset the GPU"


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
    """What we make of a device so far.

    known: findings that an administrator has seen and accepted. broke_at: when it broke, lately.
    erred_at: when its engines met work that they could not do, lately.
    """

    state: DeviceState = DeviceState.WELL
    reason: str = ""
    uncorrected: int | None = None
    known: frozenset[str] = frozenset()
    broke_at: tuple[Instant, ...] = ()
    erred_at: tuple[Instant, ...] = ()

    @property
    def is_out(self) -> bool:
        return self.state in {DeviceState.BROKEN, DeviceState.RETIRED}


def judged(before: Health, reading: Reading, now: Instant) -> Health:
    """The standing after one more look. The first look sets what counters grow from."""
    grown = _grown(before.uncorrected, reading.uncorrected)
    found = [why for why in _findings(reading, grown) if why not in before.known]
    counted = before.uncorrected if reading.uncorrected is None else reading.uncorrected
    after = replace(before, uncorrected=counted)
    if found:
        return broken(after, found[0], now)
    if reading.remap_pending and _REMAP_PENDING not in before.known:
        return _suspected(after, _REMAP_PENDING)
    return after


def struck(before: Health, xid: int, now: Instant) -> Health:
    """The standing after the driver reported this error."""
    meaning = xid_of(xid)
    if meaning.verdict.breaks:
        return broken(before, xid_text(xid), now)
    if meaning.suspect:
        return _suspected(before, xid_text(xid))
    if not (meaning.verdict is Verdict.APP and meaning.of_engine):
        return before
    erred = (*(at for at in before.erred_at if now - at < _ENGINE_ERRORS_FOR), now)
    after = replace(before, erred_at=erred)
    if len(erred) < SUSPECT_AFTER:
        return after
    return _suspected(after, f"{xid_text(xid)}, {len(erred)} times in an hour")


def broken(before: Health, why: str, now: Instant) -> Health:
    """It takes no work from now on; the first reason stands."""
    if before.is_out:
        return before
    broke_at = (*(at for at in before.broke_at if now - at < REMEMBERED), now)
    state, reason = DeviceState.BROKEN, why
    if why == _REMAP_FAILED:
        state = DeviceState.RETIRED
    elif len(broke_at) >= RETIRES_AFTER:
        days = REMEMBERED // DAY
        state, reason = DeviceState.RETIRED, f"{why}; broke {len(broke_at)} times in {days} days"
    return replace(before, state=state, reason=reason, broke_at=broke_at)


def resumed(before: Health, reading: Reading | None) -> Health:
    """The administrator wants it used: what the last look found is known from now on.

    What was broken is tested first. Whoever brings back a retired device starts afresh with it.
    """
    found = () if reading is None else (*_findings(reading, 0), *_suspicions(reading))
    state = DeviceState.PROBATION if before.is_out else DeviceState.WELL
    return replace(
        before,
        state=state,
        reason=ON_PROBATION if before.is_out else "",
        known=frozenset(found),
        broke_at=() if before.state is DeviceState.RETIRED else before.broke_at,
        erred_at=(),
    )


ON_PROBATION = "on probation: it takes work again when the smoke test has passed"


def remembered(before: Health) -> Health:
    """What is still so after a restart: what was broken is tested, and what is retired stays so."""
    if before.state in {DeviceState.BROKEN, DeviceState.PROBATION}:
        return Health(state=DeviceState.PROBATION, reason=ON_PROBATION, broke_at=before.broke_at)
    if before.state is DeviceState.RETIRED:
        return Health(
            state=before.state, reason=before.reason, broke_at=before.broke_at, known=before.known
        )
    return Health(broke_at=before.broke_at)


def after_test(before: Health, wrong: str | None, now: Instant) -> Health:
    """The standing after a smoke test; wrong: what it found, None if it passed."""
    if before.state is not DeviceState.PROBATION:
        return before
    if wrong is None:
        return replace(before, state=DeviceState.WELL, reason="")
    return broken(before, f"the smoke test failed: {wrong}", now)


def _suspected(before: Health, why: str) -> Health:
    if before.state is not DeviceState.WELL:
        return before
    return replace(before, state=DeviceState.SUSPECT, reason=why)


def _grown(before: int | None, now: int | None) -> int:
    return 0 if before is None or now is None else max(0, now - before)


def _findings(reading: Reading, grown: int) -> list[str]:
    """Everything that breaks the device, worst first."""
    wrong = [BROKEN_CODES[reading.code]] if reading.code in BROKEN_CODES else []
    if reading.remap_failed:
        wrong.append(_REMAP_FAILED)
    if grown:
        wrong.append(f"{grown} more memory errors that could not be corrected")
    if reading.advice in _ADVICE:
        wrong.append(_ADVICE[reading.advice])
    return wrong


def _suspicions(reading: Reading) -> tuple[str, ...]:
    return (_REMAP_PENDING,) if reading.remap_pending else ()
