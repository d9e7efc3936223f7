"""`#BSUB` lines of LSF scripts. Pure.

A job of n slots is one process here that may use n CPUs on one node, or one for each node where the
script says how many slots a node has: LSF too starts the script once, beside the first slot.
"""

import re

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

MARK = "#BSUB"

_ARRAY = re.compile(r"(.*?)\[([0-9,:-]+)\](?:%([0-9]+))?")
_WAITS = re.compile(r"(done|ended|exit|started|post_done)\(\s*([0-9]+)\s*\)|([0-9]+)")
_KINDS = {
    "done": "afterok",
    "post_done": "afterok",
    "ended": "afterany",
    "exit": "afternotok",
    "started": "after",
}
_SPAN = re.compile(r"span\[\s*(ptile|hosts)\s*=\s*([0-9]+)\s*\]")
_RUSAGE = re.compile(r"rusage\[([^\]]*)\]")
_KNOWN_PARTS = re.compile(r"(?:(?:span|rusage|select|order|affinity|same|cu)\[[^\]]*\]|\s)*")


def finish(meaning: Meaning, name: str, workdir: str) -> None:
    """What slots and hosts come to together, and what the job learns."""
    del name
    options = meaning.options
    slots = options.pop("slots", 1)
    per_host = min(slots, options.pop("ptile", slots))
    if slots % per_host:
        raise ForeignError(f"-n {slots} does not go into hosts of {per_host} slots")
    options["tasks"] = slots // per_host
    if options["tasks"] > 1:
        options["max_per_node"] = 1
    options["cpus"] = per_host
    options["every_task"] = False
    if "mail_to" in options and "mail_on" not in options:
        meaning.cautions.append(
            "-u has no effect without -B or -N: what a job writes is not mailed"
        )
    meaning.env |= {"LS_SUBCWD": workdir}


def _name(meaning: Meaning, value: str) -> None:
    found = _ARRAY.fullmatch(value)
    if found is None:
        meaning.options["name"] = value
        return
    meaning.options["name"] = found[1]
    meaning.options["array"] = found[2] + (f"%{found[3]}" if found[3] else "")


def _slots(meaning: Meaning, value: str) -> None:
    """`min,max`: the least is taken."""
    least = value.partition(",")[0]
    if not least.isdecimal() or not int(least):
        raise ForeignError(f"-n {value} is no number of slots")
    meaning.options["slots"] = int(least)


def _queue(meaning: Meaning, value: str) -> None:
    meaning.options["queue"] = value.split(maxsplit=1)[0]


def _project(meaning: Meaning, value: str) -> None:
    meaning.set("labels", project=value)


def _group(meaning: Meaning, value: str) -> None:
    meaning.set("labels", group=value)


def _output(meaning: Meaning, value: str) -> None:
    meaning.options["stdout"] = _file(value, meaning)
    meaning.options["append"] = True


def _output_anew(meaning: Meaning, value: str) -> None:
    meaning.options["stdout"] = _file(value, meaning)


def _error(meaning: Meaning, value: str) -> None:
    meaning.options["stderr"] = _file(value, meaning)


def _input(meaning: Meaning, value: str) -> None:
    meaning.options["stdin"] = _file(value, meaning)


def _file(value: str, meaning: Meaning) -> str:
    """`%J` and `%I`; in an array, `%J` is that of the whole."""
    del meaning
    with_index = "%I" in value
    return value.replace("%J", "%A" if with_index else "%j").replace("%I", "%a")


def _limit(meaning: Meaning, value: str) -> None:
    """`[hour:]minute[/host]`."""
    text = value.partition("/")[0]
    found = re.fullmatch(r"(?:([0-9]+):)?([0-9]+)", text)
    if found is None:
        raise ForeignError(f"-W {value} is no [hours:]minutes")
    meaning.options["time"] = f"{int(found[1] or 0) * 60 + int(found[2])}m"


def _memory(meaning: Meaning, value: str) -> None:
    if value.isdecimal():
        meaning.cautions.append(f"-M {value}: taken as KiB; write the unit, such as 16GB")
    meaning.options["memory"] = memory_text(value, bare="k")


def _gpu(meaning: Meaning, value: str) -> None:
    """`num=2:mode=exclusive_process:mps=yes:gmodel=A100:gmem=20G`."""
    for word in value.strip("\"' -").split(":"):
        name, _, text = word.partition("=")
        match name:
            case "":
                meaning.options.setdefault("gpus", 1)
            case "num":
                meaning.options["gpus"] = _number(text.partition("/")[0], "-gpu num")
            case "gmodel":
                meaning.add("gpu_models", text.partition("-")[0] if text.endswith("-") else text)
            case "gmem":
                meaning.options["gpu_memory"] = memory_text(text, bare="m")
            case "mig":
                meaning.options["slice"] = f"mig:{text}"
            case "mode" | "j_exclusive" | "mps" | "aff" | "nvlink" | "gtile" | "block" | "glink":
                meaning.cautions.append(f"-gpu {word} has no effect: the job has its GPUs alone")
            case _:
                raise ForeignError(f"-gpu {word} is not supported")
    meaning.options.setdefault("gpus", 1)


def _needs(meaning: Meaning, value: str) -> None:
    """`span[ptile=4] rusage[mem=16GB,ngpus_physical=2]`."""
    if _KNOWN_PARTS.fullmatch(value) is None:
        raise ForeignError(f"-R {value!r} is not supported; span[...] and rusage[...] are")
    for kind, number in _SPAN.findall(value):
        if kind == "ptile":
            meaning.options["ptile"] = _number(number, "ptile")
        elif number != "1":
            raise ForeignError(f"-R span[hosts={number}]: only one host, or ptile")
    for each in ",".join(_RUSAGE.findall(value)).split(","):
        _usage(meaning, each.strip())
    idle = [part for part in ("select", "order", "affinity", "same", "cu") if f"{part}[" in value]
    meaning.cautions += [f"-R {part}[...] has no effect: see --require" for part in idle]


def _usage(meaning: Meaning, text: str) -> None:
    name, _, value = text.partition("=")
    amount = value.partition(":")[0]
    match name:
        case "mem":
            meaning.options["memory"] = memory_text(amount, bare="m")
        case "ngpus_physical" | "ngpus" | "ngpus_excl_p" | "ngpus_shared":
            meaning.options["gpus"] = _number(amount, name)
        case "":
            pass
        case _:
            meaning.cautions.append(f"-R rusage[{name}] has no effect: it is not counted here")


def _depends(meaning: Meaning, value: str) -> None:
    if ("||" in value and "&&" in value) or "!" in value:
        raise ForeignError(f"-w {value!r}: write && between all, or || between all, and no !")
    text = value.strip("\"'")
    if "||" in text:
        meaning.add("after", "?".join(_waits(part.strip()) for part in text.split("||")))
        return
    meaning.add("after", *(_waits(part.strip()) for part in text.split("&&")))


def _waits(part: str) -> str:
    found = _WAITS.fullmatch(part.strip("()") if part.startswith("(") else part)
    if found is None:
        raise ForeignError(f"-w {part}: write done(12), ended(12), exit(12), started(12)")
    return f"{_KINDS[found[1] or 'done']}:{found[2] or found[3]}"


def _mail_at_begin(meaning: Meaning, _: str) -> None:
    meaning.add_mail("begin")


def _mail_at_end(meaning: Meaning, _: str) -> None:
    meaning.add_mail("end", "fail")


def _mail_at_failure(meaning: Meaning, _: str) -> None:
    meaning.add_mail("fail")


def _mail_to(meaning: Meaning, value: str) -> None:
    meaning.options["mail_to"] = ",".join(value.strip("\"'").split())


def _begin(meaning: Meaning, value: str) -> None:
    meaning.options["begin"] = _instant(value)


def _deadline(meaning: Meaning, value: str) -> None:
    meaning.options["deadline"] = _instant(value)


def _instant(value: str) -> str:
    """`[[year:]month:day:]hour:minute`; a day alone is not taken."""
    parts = value.split(":")
    if not all(part.isdecimal() for part in parts) or len(parts) not in {2, 5}:
        raise ForeignError(f"{value} is no hour:minute and no year:month:day:hour:minute")
    clock = f"{int(parts[-2]):02}:{int(parts[-1]):02}"
    if len(parts) == 2:
        return clock
    return f"{int(parts[0]):04}-{int(parts[1]):02}-{int(parts[2]):02}T{clock}:00"


def _hosts(meaning: Meaning, value: str) -> None:
    meaning.add("nodes", *(host.partition("+")[0] for host in value.strip("\"'").split()))


def _variables(meaning: Meaning, value: str) -> None:
    """`all,A=1`, `none`, or names."""
    words = [word.strip() for word in pieces(value.strip("\"'"), ",") if word.strip()]
    if words and words[0].lower() == "none":
        meaning.options["env_only"] = ()
        words = words[1:]
    meaning.set_env(word for word in words if word.lower() != "all")


def _priority(meaning: Meaning, value: str) -> None:
    meaning.options["priority"] = _number(value, "-sp")


def _number(text: str, name: str) -> int:
    if not text.isdecimal():
        raise ForeignError(f"{name}: {text!r} is no number")
    return int(text)


def _hold(meaning: Meaning, _: str) -> None:
    meaning.options["held"] = True


def _exclusive(meaning: Meaning, _: str) -> None:
    meaning.options["exclusive"] = True


def _rerun(meaning: Meaning, _: str) -> None:
    meaning.options["requeue"] = True


def _no_rerun(meaning: Meaning, _: str) -> None:
    meaning.options["requeue"] = False


def _folder(meaning: Meaning, value: str) -> None:
    meaning.options["workdir"] = value.strip("\"'")


def _shell(meaning: Meaning, value: str) -> None:
    meaning.shell = value


OPTIONS: dict[str, ForeignOption] = {
    **valued("-J", does=_name),
    **valued("-n", does=_slots),
    **valued("-q", does=_queue),
    **valued("-P", does=_project),
    **valued("-g", "-G", does=_group),
    **valued("-o", does=_output),
    **valued("-oo", does=_output_anew),
    **valued("-e", "-eo", does=_error),
    **valued("-i", "-is", does=_input),
    **valued("-W", does=_limit),
    **valued("-M", does=_memory),
    **valued("-gpu", does=_gpu),
    **valued("-R", does=_needs),
    **valued("-w", does=_depends),
    **valued("-b", does=_begin),
    **valued("-t", does=_deadline),
    **valued("-m", does=_hosts),
    **valued("-env", does=_variables),
    **valued("-sp", does=_priority),
    **valued("-cwd", does=_folder),
    **valued("-L", does=_shell),
    **valued("-u", does=_mail_to),
    **flags("-H", does=_hold),
    **flags("-x", does=_exclusive),
    **flags("-r", does=_rerun),
    **flags("-rn", does=_no_rerun),
    **flags("-B", does=_mail_at_begin),
    **flags("-N", does=_mail_at_end),
    **flags("-Ne", does=_mail_at_failure),
    **without_effect("-K", why="use muster submit --wait", takes=False),
    **without_effect(
        "-app", "-Jd", "-We", "-E", "-Ep", "-sla", "-Lp", why="unknown here", takes=True
    ),
    **without_effect("-c", "-C", "-D", "-F", "-S", "-T", "-p", "-v", why="see --time", takes=True),
    **refused("-I", "-Ip", "-Is", "-IS", why="to sit at a job use muster run", takes=False),
    **refused("-U", why="a queue has what is reserved for it", takes=True),
    **refused("-k", why="see --checkpoint", takes=True),
    **refused("-f", why="jobs here see the files of this machine", takes=True),
}
