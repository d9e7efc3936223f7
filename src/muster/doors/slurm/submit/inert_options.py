"""Options that have no effect here, and yet must be written as Slurm wants them. Pure."""

import re
from collections.abc import Callable, Mapping

from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.words import sizes, times
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.model.gpu_bind import FORM

NUMBERS = (
    "core-spec",
    "cores-per-socket",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-socket",
    "sockets-per-node",
    "thread-spec",
    "threads-per-core",
)
HINTS = frozenset("compute_bound memory_bound multithread nomultithread help none".split())
LIMITS = frozenset(
    "ALL NONE AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK".split(),
)
FREQUENCIES = re.compile(
    r"(?:(?:memory=)?(?:low|medium|high|highm1|\d+)|verbose)"
    r"(?:,(?:memory=)?(?:low|medium|high|\d+)|,verbose)*"
)
DISTRIBUTIONS = re.compile(
    r"(?:\*|block|cyclic|arbitrary|plane(?:=\d+)?)"
    r"(?::(?:\*|block|cyclic|fcyclic)){0,2}(?:,(?:pack|nopack))?",
    re.IGNORECASE,
)
FREQ_WORDS = re.compile(r"(?:(?:task|energy|network|filesystem)=\d+|\d+)(?:,\w+=\d+)*")
MEM_BINDS = re.compile(
    r"(?:(?:quiet|q|verbose|v|sort|nosort|prefer|p|none|no|rank|local|map_mem:.+|mask_mem:.+),?)+"
)
PROFILES = frozenset("all none energy task filesystem lustre network".split())
GRES_FLAGS = frozenset("disable-binding enforce-binding one-task-per-sharing".split())


def demand_sane(request: Request) -> None:
    """SlurmError for the first of them that cannot be read."""
    for name in NUMBERS:
        request.number(name)
    for name, is_sane in _WORDS.items():
        text = request.text(name)
        if text is not None and not is_sane(text):
            raise request.bad(name)
    for name, check in _PARTICULAR.items():
        text = request.text(name)
        if text is not None:
            check(request, text)


def _is_limit(text: str) -> bool:
    try:
        times.limit(text)
    except times.BadTimeError:
        return False
    return True


def _is_size(text: str) -> bool:
    return sizes.memory_mib(text) is not None


_WORDS: Mapping[str, Callable[[str], bool]] = {
    "time-min": _is_limit,
    "delay-boot": _is_limit,
    "distribution": lambda text: DISTRIBUTIONS.fullmatch(text) is not None,
    "gres-flags": lambda text: set(text.lower().split(",")) <= GRES_FLAGS,
    "kill-on-invalid-dep": lambda text: text.lower() in {"yes", "no"},
    "tmp": _is_size,
    "wait-all-nodes": lambda text: text in {"0", "1"},
    "get-user-env": lambda text: re.fullmatch(r"\d*[SLsl]?", text) is not None,
    "no-kill": lambda text: text.lower() in {"", "set", "off"},
}


def _hint(request: Request, text: str) -> None:
    if text not in HINTS:
        raise failed(request.command, f'unrecognized --hint argument "{text}", see --hint=help')


def _profile(request: Request, text: str) -> None:
    if not set(text.lower().split(",")) <= PROFILES:
        raise failed(request.command, f"invalid --profile={text} option", code=255)


def _frequency(request: Request, text: str) -> None:
    if not FREQ_WORDS.fullmatch(text.lower()):
        raise failed(request.command, f"Invalid --acctg-freq specification: {text}", code=255)


def _mem_bind(request: Request, text: str) -> None:
    if not MEM_BINDS.fullmatch(text.lower()):
        raise failed(request.command, f'unrecognized --mem-bind argument "{text}"', code=255)


def _gpu_bind(request: Request, text: str) -> None:
    if not FORM.fullmatch(text.lower()):
        raise failed(request.command, f"Invalid --gpu-bind argument: gpu:{text}", code=255)


def _gpu_freq(request: Request, text: str) -> None:
    if not FREQUENCIES.fullmatch(text.lower()):
        raise failed(request.command, f"Invalid --gpu-freq argument: gpu:{text}", code=255)


def _switches(request: Request, text: str) -> None:
    if not text.partition("@")[0].isdecimal():
        raise failed(request.command, f'Invalid numeric value "{text}" for --switches.')


def _propagate(request: Request, text: str) -> None:
    for word in text.split(","):
        if word and word.upper().removeprefix("RLIMIT_") not in LIMITS:
            raise SlurmError(
                f"{request.command}: error: Bad rlimit name: {word}",
                f"{request.command}: error: --propagate={text} is not valid.",
            )


def _licenses(request: Request, text: str) -> None:
    """There are none here, so that nobody can have one."""
    if text:
        raise request.submission_failed("Invalid license specification")


_PARTICULAR: Mapping[str, Callable[[Request, str], None]] = {
    "hint": _hint,
    "profile": _profile,
    "acctg-freq": _frequency,
    "mem-bind": _mem_bind,
    "gpu-bind": _gpu_bind,
    "gpu-freq": _gpu_freq,
    "switches": _switches,
    "propagate": _propagate,
    "licenses": _licenses,
}
