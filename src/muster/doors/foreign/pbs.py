"""`#PBS` lines of OpenPBS, PBS Pro and Torque scripts. Pure."""

import re
from collections.abc import Mapping

from muster.doors.foreign.meaning import (
    ForeignError,
    ForeignOption,
    Meaning,
    flags,
    memory_text,
    pieces,
    refused,
    valued,
    without_effect,
)

MARK = "#PBS"

_DATE = re.compile(r"(?:([0-9]{2})?([0-9]{2}))?([0-9]{2})?([0-9]{2})?([0-9]{2})([0-9]{2})")
_DEPENDENCIES = {
    "after": "after",
    "afterok": "afterok",
    "afternotok": "afternotok",
    "afterany": "afterany",
    "afterokarray": "afterok",
    "afternotokarray": "afternotok",
    "afteranyarray": "afterany",
}
_MAILS = {
    "a": ("fail",),
    "b": ("begin",),
    "e": ("end", "fail"),
    "f": ("fail",),
    "j": ("array_tasks",),
    "n": ("none",),
    "p": ("none",),
}
"""What `-m` says with each letter; an end is one however it came about."""
_CHUNK = frozenset({"ncpus", "ngpus", "mem", "mpiprocs", "ompthreads", "host", "gpu_model"})


def finish(meaning: Meaning, name: str, workdir: str) -> None:
    """What qsub does where nothing is said: names of files, and what the job learns."""
    options = meaning.options
    called = options.get("name") or name
    part = "%A.%a" if "array" in options else "%j"
    joined = options.pop("joined", "n")
    options.setdefault("stdout", f"{called}.o{part}")
    if joined == "n":
        options.setdefault("stderr", f"{called}.e{part}")
    elif joined == "eo":
        options["stdout"] = options.pop("stderr", f"{called}.e{part}")
    else:
        options.pop("stderr", None)
    options["every_task"] = False
    if "mail_to" in options:
        # A user who is named without an occasion hears of failures, as with qsub.
        options.setdefault("mail_on", ("fail",))
    meaning.env |= {"PBS_ENVIRONMENT": "PBS_BATCH", "PBS_O_WORKDIR": workdir}


def _name(meaning: Meaning, value: str) -> None:
    meaning.options["name"] = value


def _queue(meaning: Meaning, value: str) -> None:
    """`queue@server`: there is one server."""
    meaning.options["queue"] = value.partition("@")[0]


def _account(meaning: Meaning, value: str) -> None:
    meaning.set("labels", project=value)


def _output(meaning: Meaning, value: str) -> None:
    meaning.options["stdout"] = _file(value)


def _error(meaning: Meaning, value: str) -> None:
    meaning.options["stderr"] = _file(value)


def _mail_on(meaning: Meaning, value: str) -> None:
    if unknown := sorted(set(value) - _MAILS.keys()):
        raise ForeignError(f"-m {value}: {unknown[0]} must be one of {', '.join(_MAILS)}")
    for letter in value:
        meaning.add_mail(*_MAILS[letter])


def _mail_to(meaning: Meaning, value: str) -> None:
    meaning.options["mail_to"] = value


def _file(value: str) -> str:
    """`host:/path`, and `^array_index^` for the index."""
    path = value.rpartition(":")[2]
    return path.replace("^array_index^", "%a")


def _join(meaning: Meaning, value: str) -> None:
    if value not in {"oe", "eo", "n"}:
        raise ForeignError(f"-j {value}: oe, eo or n")
    meaning.options["joined"] = value


def _array(meaning: Meaning, value: str) -> None:
    meaning.options["array"] = value


def _hold(meaning: Meaning, _: str) -> None:
    meaning.options["held"] = True


def _rerun(meaning: Meaning, value: str) -> None:
    if value not in {"y", "n"}:
        raise ForeignError(f"-r {value}: y or n")
    meaning.options["requeue"] = value == "y"


def _priority(meaning: Meaning, value: str) -> None:
    if not re.fullmatch(r"[+-]?[0-9]{1,4}", value):
        raise ForeignError(f"-p {value} is no number from -1024 to 1023")
    meaning.options["priority"] = int(value)


def _begin(meaning: Meaning, value: str) -> None:
    """`[[CC]YY]MMDD]hhmm[.SS]`, of which we take whole dates and times of day."""
    digits, _, seconds = value.partition(".")
    clock = f"{digits[-4:-2]}:{digits[-2:]}:{seconds or '00'}"
    if not digits.isdecimal() or len(digits) not in {4, 8, 10, 12}:
        raise ForeignError(f"-a {value} is no [[CC]YY]MMDDhhmm[.SS]")
    date = digits[:-4]
    if len(date) in {6, 8}:
        year = date[:-4] if len(date) == 8 else f"20{date[:-4]}"
        meaning.options["begin"] = f"{year}-{date[-4:-2]}-{date[-2:]}T{clock}"
    elif date:
        raise ForeignError(f"-a {value}: write the year as well")
    else:
        meaning.options["begin"] = clock


def _variables(meaning: Meaning, value: str) -> None:
    meaning.set_env(each for each in pieces(value, ",") if each)


def _shell(meaning: Meaning, value: str) -> None:
    meaning.shell = value.partition("@")[0]


def _folder(meaning: Meaning, value: str) -> None:
    meaning.options["workdir"] = value


def _more(meaning: Meaning, value: str) -> None:
    """`-W depend=afterok:1:2,umask=022`."""
    for each in _attributes(value):
        name, _, text = each.partition("=")
        match name:
            case "depend":
                _depends(meaning, text)
            case "umask" | "group_list" | "stagein" | "stageout" | "sandbox" | "run_count":
                meaning.cautions.append(f"-W {name} has no effect")
            case "block":
                meaning.cautions.append("-W block has no effect: use muster submit --wait")
            case _:
                raise ForeignError(f"-W {name} is not supported")


def _attributes(value: str) -> list[str]:
    """At commas before a name with `=`; those inside of a value stay."""
    return [each for each in re.split(r",(?=[a-z_]+=)", value) if each]


def _depends(meaning: Meaning, text: str) -> None:
    for each in text.split(","):
        kind, *jobs = each.split(":")
        if kind not in _DEPENDENCIES or not jobs:
            raise ForeignError(f"-W depend={each} is not supported")
        numbers = [job.partition(".")[0].rstrip("[]") for job in jobs]
        if not all(number.isdecimal() for number in numbers):
            raise ForeignError(f"-W depend={each}: jobs are numbers here")
        meaning.add("after", *(f"{_DEPENDENCIES[kind]}:{number}" for number in numbers))


def _resources(meaning: Meaning, value: str) -> None:
    """`-l select=2:ncpus=4:ngpus=1,walltime=1:00:00`."""
    for each in value.split(","):
        name, _, text = each.partition("=")
        reads = _RESOURCES.get(name)
        if reads is None:
            raise ForeignError(f"-l {name} is not a resource that is given out here")
        reads(meaning, text)


def _select(meaning: Meaning, text: str) -> None:
    if "+" in text:
        raise ForeignError(
            "-l select with several kinds of chunks: submit them as jobs of their own"
        )
    count, *parts = text.split(":")
    if not count.isdecimal():
        count, parts = "1", [count, *parts]
    chunk = _pairs(parts)
    if unknown := sorted(chunk.keys() - _CHUNK):
        raise ForeignError(f"-l select: {unknown[0]} is not a resource that is given out here")
    meaning.options["tasks"] = int(count)
    if "mem" in chunk:
        meaning.options["memory"] = memory_text(chunk["mem"], bare="k")
    if "host" in chunk:
        meaning.add("nodes", chunk["host"])
    if "gpu_model" in chunk:
        meaning.add("gpu_models", chunk["gpu_model"])
    _numbers(meaning, {"cpus": chunk.get("ncpus"), "gpus": chunk.get("ngpus")})


def _nodes(meaning: Meaning, text: str) -> None:
    """Torque: `nodes=2:ppn=4:gpus=1`, whole nodes or names of them."""
    count, *parts = text.split(":")
    options = meaning.options
    if count.isdecimal():
        options["tasks"] = int(count)
    else:
        meaning.add("nodes", *count.split("+"))
        options["tasks"] = len(count.split("+"))
    options["max_per_node"] = 1
    chunk = _pairs(parts)
    if unknown := sorted(chunk.keys() - {"ppn", "gpus"}):
        raise ForeignError(f"-l nodes: {unknown[0]} is not a resource that is given out here")
    _numbers(meaning, {"cpus": chunk.get("ppn"), "gpus": chunk.get("gpus")})


def _pairs(parts: list[str]) -> dict[str, str]:
    """`ncpus=4`, and `gpus` alone for one."""
    found = (part.partition("=") for part in parts)
    return {name: value if equals else "1" for name, equals, value in found}


def _place(meaning: Meaning, text: str) -> None:
    for word in text.split(":"):
        match word:
            case "scatter" | "vscatter":
                meaning.options["max_per_node"] = 1
            case "pack":
                meaning.options["together"] = "node"
            case "excl" | "exclhost":
                meaning.options["exclusive"] = True
            case "free" | "shared":
                pass
            case _:
                raise ForeignError(f"-l place={word} is not supported")


def _walltime(meaning: Meaning, text: str) -> None:
    meaning.options["time"] = f"{text}s" if text.isdecimal() else _clock(text)


def _clock(text: str) -> str:
    """`90:00` is minutes and seconds, as with us."""
    if not re.fullmatch(r"[0-9]+(:[0-9]{1,2}){1,2}", text):
        raise ForeignError(f"-l walltime={text} is no time")
    return text


def _memory(meaning: Meaning, text: str) -> None:
    meaning.options["memory"] = memory_text(text, bare="k")


def _cpus(meaning: Meaning, text: str) -> None:
    _numbers(meaning, {"cpus": text})


def _gpus(meaning: Meaning, text: str) -> None:
    _numbers(meaning, {"gpus": text})


def _numbers(meaning: Meaning, given: Mapping[str, str | None]) -> None:
    for name, text in given.items():
        if text is None:
            continue
        if not text.isdecimal():
            raise ForeignError(f"{text} is no number of {name}")
        meaning.options[name] = int(text)


def _cautioned(meaning: Meaning, text: str) -> None:
    meaning.cautions.append(f"a limit of {text} on CPU time or a process has no effect")


_RESOURCES = {
    "select": _select,
    "nodes": _nodes,
    "place": _place,
    "walltime": _walltime,
    "mem": _memory,
    "pmem": _memory,
    "ncpus": _cpus,
    "ppn": _cpus,
    "ngpus": _gpus,
    "gpus": _gpus,
    "cput": _cautioned,
    "pcput": _cautioned,
    "vmem": _cautioned,
    "pvmem": _cautioned,
    "software": _cautioned,
    "nice": _cautioned,
}


def _nothing(_: Meaning, __: str) -> None:
    """What happens here anyway."""


OPTIONS: dict[str, ForeignOption] = {
    **valued("-N", does=_name),
    **valued("-q", does=_queue),
    **valued("-A", "-P", does=_account),
    **valued("-o", does=_output),
    **valued("-e", does=_error),
    **valued("-j", does=_join),
    **valued("-J", "-t", does=_array),
    **valued("-l", does=_resources),
    **valued("-W", does=_more),
    **valued("-a", does=_begin),
    **valued("-v", does=_variables),
    **valued("-r", does=_rerun),
    **valued("-p", does=_priority),
    **valued("-S", does=_shell),
    **valued("-d", "-w", does=_folder),
    **flags("-h", does=_hold),
    **flags("-V", does=_nothing),
    **valued("-m", does=_mail_on),
    **valued("-M", does=_mail_to),
    **without_effect("-k", "-R", why="files are written where they belong at once", takes=True),
    **without_effect("-z", why="the id is printed; use --quiet for the id alone", takes=False),
    **without_effect("-c", why="see --checkpoint", takes=True),
    **refused("-I", "-X", why="to sit at a job use muster run", takes=False),
    **refused("-C", why="lines begin with #PBS here", takes=True),
    **refused("-u", why="a job is its submitter's", takes=True),
    **refused("-f", why="a script is sent, not a program", takes=False),
}
