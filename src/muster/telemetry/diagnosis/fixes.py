"""What to change in a request, as exact flags of the door that the job came through (pure)."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from muster.model.efficiency import JobReport
from muster.model.finding import Cause, Finding
from muster.model.value import Duration, NodeId, Value
from muster.telemetry.diagnosis import flags
from muster.telemetry.diagnosis.ending import Ended, Ending
from muster.telemetry.diagnosis.enough import Asked, enough, gpu_part, peak_milli

MOST_FIXES = 3

_MOST_TIMES = 4
_MOST_BATCH = 16
_FULL_MILLI = 900
_ROOM_MILLI = 1_200


class Fix(Value):
    """One thing to change: why, and the flag that says it. flag: empty where code must change."""

    cause: Cause | None
    text: str
    flag: str = ""


class _Case(NamedTuple):
    """One finding, with all that a fix may depend on."""

    finding: Finding
    report: JobReport
    asked: Asked

    @property
    def language(self) -> flags.Language:
        return self.asked.language


def fixes_of(report: JobReport, asked: Asked, ended: Ended | None = None) -> tuple[Fix, ...]:
    """One to three: how it ended first, then what the dearest causes name, then what was too much.

    Nothing where nothing would help.
    """
    found = [*_of_ending(ended, asked)]
    for finding in report.findings:
        fix = _FIXES[finding.cause](_Case(finding, report, asked))
        if fix is not None:
            found.append(fix)
    known = {fix.flag for fix in found}
    found.extend(
        Fix(
            cause=None,
            text=f"it asked for {each.asked} of {each.what} and used {each.used}",
            flag=each.flag,
        )
        for each in enough(report, asked)
        if each.flag not in known
    )
    return tuple(found[:MOST_FIXES])


def _of_ending(ended: Ended | None, asked: Asked) -> Iterator[Fix]:
    if ended is None:
        return
    match ended.what:
        case Ending.HOST_MEMORY:
            mib = max((group.each.memory_mib for group in asked.spec.groups), default=0)
            if mib:
                yield Fix(
                    cause=None,
                    text="ask for half as much memory again, or load less at once",
                    flag=flags.memory(mib * 3 // 2, asked.language),
                )
        case Ending.GPU_MEMORY:
            yield Fix(
                cause=None,
                text="lower the batch by a fifth and look again, or ask for GPUs with more memory",
            )
        case Ending.TIME_LIMIT:
            limit = asked.spec.time_limit
            if limit is not None:
                yield Fix(
                    cause=None,
                    text="ask for half as much time again, or continue from a checkpoint",
                    flag=flags.time_limit(Duration(limit * 3 // 2), asked.language),
                )
        case Ending.NO_GPU:
            yield Fix(
                cause=None,
                text="ask for a GPU: this job has none",
                flag=flags.gpus(1, asked.language),
            )
        case Ending.HARDWARE | Ending.LOST_WORK | Ending.FAILED:
            if ended.advice:
                yield Fix(cause=None, text=ended.advice)


def _input_cpu(case: _Case) -> Fix:
    cpus = _enough_cpus(case)
    return Fix(
        cause=case.finding.cause,
        text=f"ask for {cpus} CPUs for each task, and have as many workers load input",
        flag=flags.cpus(cpus, case.language),
    )


def _enough_cpus(case: _Case) -> int:
    """As many as would have kept the GPU busy, if CPUs are all that it lacked."""
    asked = max(1, *(-(-group.each.cpu_milli // 1_000) for group in case.asked.spec.groups))
    seen = {each.signal: each.milli for each in case.finding.evidence}
    times = min(_MOST_TIMES * 1_000, 1_000_000 // max(1, seen.get("busy", 500)))
    return max(asked + 1, -(-asked * times // 1_000))


def _some_unused(case: _Case) -> Fix:
    held = len(case.report.devices)
    used = max(1, held - len(case.finding.devices))
    return Fix(
        cause=case.finding.cause,
        text=f"it uses {used} of {held} GPUs: ask for those it uses, or start one process for each",
        flag=_gpus(used, case),
    )


def _never_used(case: _Case) -> Fix:
    return Fix(
        cause=case.finding.cause,
        text="ask for no GPU, or find out why the program does not see it",
        flag=_gpus(0, case),
    )


def _gpus(count: int, case: _Case) -> str:
    """In a job of one task; how several tasks share what is left the user must say."""
    if sum(group.count for group in case.asked.spec.groups) > 1:
        return ""
    return flags.gpus(count, case.language)


def _idle(case: _Case) -> Fix:
    used = Duration(max(0, case.finding.since - case.report.since) * _ROOM_MILLI // 1_000)
    return Fix(
        cause=case.finding.cause,
        text="end the job when its work is done; the limit ends what nobody ends",
        flag=flags.time_limit(used, case.language) if used else "",
    )


def _straggler(case: _Case) -> Fix:
    """The one that computes most keeps the others waiting."""
    nodes = {each.node for each in case.report.devices}
    slow = max(case.report.devices, key=lambda each: each.means.get("sm", 0), default=None)
    if slow is None or len(nodes) == 1:
        return Fix(cause=case.finding.cause, text="give each rank the same amount of work")
    return Fix(
        cause=case.finding.cause,
        text=f"GPU {slow.device} of {slow.node} keeps the others waiting: leave that node out,"
        " or give each rank the same amount of work",
        flag=flags.without(slow.node, case.language),
    )


def _hot(case: _Case) -> Fix:
    return Fix(
        cause=case.finding.cause,
        text="nothing is wrong with the job: the machine's operator must see to its cooling or"
        " power; until then, stay away from it",
        flag=_without_its_node(case),
    )


def _without_its_node(case: _Case) -> str:
    nodes = {each.node for each in case.report.devices if each.device in case.finding.devices} or {
        NodeId("")
    }
    node = min(nodes)
    return flags.without(node, case.language) if len(nodes) == 1 and node else ""


def _communication(case: _Case) -> Fix:
    nodes = {each.node for each in case.report.devices}
    if len(nodes) > 1:
        return Fix(
            cause=case.finding.cause,
            text=f"it is spread over {len(nodes)} nodes: on one, NVLink carries what they send",
            flag=flags.one_node(case.language),
        )
    return Fix(cause=case.finding.cause, text="send less often, and compute while sending")


def _no_tensor(case: _Case) -> Fix:
    return Fix(
        cause=case.finding.cause,
        text="compute in bf16 or TF32, so that tensor cores are used: autocast in the program,"
        " or for all of it",
        flag=flags.variable("NVIDIA_TF32_OVERRIDE", "1", case.language),
    )


def _small_work(case: _Case) -> Fix:
    peak = peak_milli(case.report.devices)
    if peak is None or peak >= _FULL_MILLI:
        text = "fuse small kernels: compile, CUDA graphs"
        return Fix(cause=case.finding.cause, text=text)
    times = min(_MOST_BATCH, max(1, _FULL_MILLI * 10 // max(1, peak)) / 10)
    return Fix(
        cause=case.finding.cause,
        text=f"raise the batch: its memory has room for {times:g} times as much",
    )


def _part_of_a_gpu(case: _Case) -> Fix:
    part = gpu_part(case.report, case.asked.model)
    if part is None:
        text = "share a GPU, or give it back between requests"
        return Fix(cause=case.finding.cause, text=text)
    name = f"a MIG instance {part.profile}" if part.profile else f"{part.percent} % under MPS"
    return Fix(
        cause=case.finding.cause,
        text=f"ask for a part of a GPU: {name} is enough, for {part.milli / 10:.0f} % of the price",
        flag=part.flag(case.language),
    )


def _in_code(text: str) -> Callable[[_Case], Fix | None]:
    """What no flag can say."""
    return lambda case: Fix(cause=case.finding.cause, text=text)


def _unknown(case: _Case) -> Fix | None:
    missing = case.finding.missing
    if not missing:
        return None
    return Fix(
        cause=case.finding.cause,
        text=f"nobody measured {', '.join(missing)} here: `muster doctor` says what can",
    )


def _nothing(_case: _Case) -> None:
    return None


_FIXES: Mapping[Cause, Callable[[_Case], Fix | None]] = {
    Cause.BROKEN: _in_code("nothing is wrong with the job: it is started again elsewhere"),
    Cause.STARTING: _in_code("keep the image on the node, and stage data before the job"),
    Cause.NEVER_USED: _never_used,
    Cause.SOME_UNUSED: _some_unused,
    Cause.HANG: _in_code(
        "look at the last line that each rank wrote: one of them has left the others"
    ),
    Cause.IDLE: _idle,
    Cause.HEAT: _hot,
    Cause.POWER: _in_code("nothing is wrong with the job: its GPU has a low power limit"),
    Cause.BRAKE: _hot,
    Cause.CLOCKS: _in_code("nothing is wrong with the job: somebody set the GPU's clocks"),
    Cause.CHECKPOINT: _in_code("write checkpoints less often, or while the GPU goes on computing"),
    Cause.STRAGGLER: _straggler,
    Cause.INPUT_IO: _in_code(
        "copy the data to a local disk first, read fewer and larger files, read ahead"
    ),
    Cause.INPUT_CPU: _input_cpu,
    Cause.HOST: _in_code(
        "load input in workers, launch fewer and larger kernels: compile, CUDA graphs"
    ),
    Cause.WAITING: _part_of_a_gpu,
    Cause.COPYING: _in_code("keep what is computed on in the GPU's memory; use pinned memory"),
    Cause.COMMUNICATION: _communication,
    Cause.NO_TENSOR: _no_tensor,
    Cause.MEMORY_BOUND: _nothing,
    Cause.FINE: _nothing,
    Cause.SMALL_WORK: _small_work,
    Cause.OVERSIZED: _part_of_a_gpu,
    Cause.UNKNOWN: _unknown,
}
