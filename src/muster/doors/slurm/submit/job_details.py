"""The other options of a job: arrays, dependencies, signals, names of files. Pure."""

import re
from collections.abc import Iterator

from muster.doors.mail_words import KNOWN, NONE
from muster.doors.mail_words import mail_of as mail_of_words
from muster.doors.request.dependencies import CORRESPONDING, Meant, corresponding
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.words.users import is_group, is_user, user_of
from muster.doors.units import BadTextError, signal_number
from muster.model.job import Dependency, DependencyKind
from muster.model.launch import Warn
from muster.model.mail import Mail, is_address
from muster.model.value import MINUTE, Duration, UserName, replace

MOST_PARTS = 100_000
MOST_INDEX = 100_000
USUAL_LEAD = Duration(60_000)
NO_VALUE = 0xFFFFFFFE
MOST_NICE = 2_147_483_645

_LEADING = re.compile(r"[+-]?[0-9]{1,18}")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_JOB = re.compile(r"([0-9]{1,18})(?:_([0-9]{1,9}|\*))?(?:\+([0-9]{1,9}))?(?:\([a-z]+\))?")


def indices_of(request: Request) -> tuple[tuple[int, ...], int | None]:
    """The indices of an array in rising order, and how many may run at once."""
    text = request.text("array")
    if not text:
        return (), None
    written, percent, most = text.strip("[] ").partition("%")
    found: set[int] = set()
    for each in written.split(","):
        match = _RANGE.fullmatch(each.strip())
        if match is None:
            raise _bad_array(request)
        first, last, step = match.groups()
        span = range(int(first), int(last or first) + 1, int(step or 1) or 1)
        if not span or step == "0" or span[-1] > MOST_INDEX or len(span) > MOST_PARTS:
            raise _bad_array(request)
        found |= set(span)
    if percent and not most.isdecimal():
        raise _bad_array(request)
    return tuple(sorted(found)), int(most) or None if percent else None


def dependencies_of(
    request: Request, meant: Meant, indices: tuple[int, ...] = ()
) -> tuple[Dependency, ...]:
    """`afterok:12:13,afterany:14`, or `afterok:12:13?afterany:14`, where each job is enough.

    One `?` makes every `,` another, as in Slurm. indices: of the array that is asked for.
    """
    text = request.text("dependency")
    if not text:
        return ()
    if "?" not in text:
        words = filter(None, text.split(","))
        found = [way for word in words for way in _ways(word, request, meant, indices)]
        return tuple(each for way in found for each in way)
    found = [way for word in re.split("[,?]", text) for way in _ways(word, request, meant, indices)]
    return tuple(replace(each, way=number) for number, way in enumerate(found) for each in way)


def warn_of(request: Request) -> Warn | None:
    """`[[R][B]:]signal[@seconds]`."""
    text = request.text("signal")
    if text is None:
        return None
    flags, colon, rest = text.rpartition(":")
    name, at, lead = rest.partition("@")
    if (colon and not set(flags) <= set("RB")) or (at and not lead.isdecimal()):
        raise request.bad("signal")
    try:
        number = signal_number(name)
    except BadTextError as bad:
        raise request.bad("signal") from bad
    span = Duration(int(lead) * 1_000) if at else USUAL_LEAD
    return Warn(signal=number, lead=span, shell_only="B" in flags)


def mail_of(request: Request) -> Mail:
    """When to write to whom. What several options ask for comes together, as in Slurm."""
    texts = [text or "" for name, text in request.given.given if name == "mail-type"]
    found = [mail_words(text) for text in texts]
    if not all(found):
        raise request.bad("mail-type")
    to = request.text("mail-user")
    if to and not is_address(to):
        raise request.bad("mail-user")
    return mail_of_words(
        (word for words in found if NONE not in words for word in words), to or None
    )


def mail_words(text: str) -> list[str]:
    """The words that Slurm knows; it passes over others beside them."""
    words = (word.strip().lower() for word in text.split(","))
    return [word for word in words if word in KNOWN]


def user(request: Request) -> UserName | None:
    """For whom, when root submits for another."""
    text = request.text("uid")
    if text is not None and not is_user(text):
        raise request.bad("uid")
    return None if text is None else UserName(user_of(text))


def demand_group(request: Request) -> None:
    """SlurmError for a group that this machine does not know."""
    text = request.text("gid")
    if text is not None and not text.isdecimal() and not is_group(text):
        raise request.bad("gid")


def priority_of(request: Request) -> int:
    """A nice value counts against the job, as in Slurm."""
    text = request.text("priority") or "0"
    wanted = 0 if text.upper() == "TOP" else leading_number(text)
    if not 0 <= wanted < NO_VALUE:
        raise request.bad("priority")
    if not request.has("nice"):
        return wanted
    nice = leading_number(request.text("nice") or "100")
    if abs(nice) > MOST_NICE:
        raise request.bad("nice")
    return wanted - nice


def is_held(request: Request) -> bool:
    """A priority of nothing holds a job, and so does one that is no number."""
    text = request.text("priority")
    is_nothing = text is not None and text.upper() != "TOP" and leading_number(text) == 0
    return request.has("hold") or is_nothing


def leading_number(text: str) -> int:
    """As strtoll reads it, which Slurm uses for these two: `12x` is 12, and `None` is 0."""
    found = _LEADING.match(text.strip())
    return int(found[0]) if found else 0


def appends(request: Request) -> bool:
    """Slurm's own default is to begin output files anew."""
    mode = request.text("open-mode")
    if mode is not None and (not mode or mode[0].lower() not in "at"):
        raise request.bad("open-mode")
    return mode is not None and mode[0].lower() == "a"


def _ways(
    word: str, request: Request, meant: Meant, indices: tuple[int, ...]
) -> Iterator[tuple[Dependency, ...]]:
    """One for each job that is written: a whole array is one, with a condition on each part."""
    # A job alone is how Slurm once wrote `afterany`.
    name, *others = ("afterany", word) if word[:1].isdecimal() else word.split(":")
    kind = _KINDS.get(name.strip().lower())
    if kind is DependencyKind.SINGLETON and not others:
        yield (Dependency(kind=kind),)
        return
    if kind is None or kind is DependencyKind.SINGLETON or not others:
        raise request.submission_failed("Job dependency problem")
    for other in others:
        match = _JOB.fullmatch(other)
        if match is None:
            raise request.submission_failed("Job dependency problem")
        index = int(match[2]) if match[2] and match[2] != "*" else None
        delay = Duration(int(match[3] or 0) * MINUTE)
        jobs = meant(int(match[1]), index)
        if indices and name.strip().lower() == CORRESPONDING:
            yield tuple(corresponding(jobs, indices))
        else:
            yield tuple(Dependency(kind=kind, job=job, delay=delay) for job in jobs)


def _bad_array(request: Request) -> Exception:
    return request.submission_failed("Invalid job array specification")


_KINDS = {kind.value: kind for kind in DependencyKind} | {CORRESPONDING: DependencyKind.AFTER_OK}
