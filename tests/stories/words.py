"""What a story says, in few words, turned into the model's values."""

from typing import TypedDict, Unpack

from muster.model.cluster import Taint
from muster.model.gpu import GpuAsk, Mig, MigInstance, MpsShare, Slice, TimeShare
from muster.model.job import (
    NODE_LEVEL,
    Ask,
    JobRule,
    LabelRule,
    Operator,
    TaskGroup,
    Together,
    Toleration,
    Where,
)
from muster.model.queue import Amount, Meter, Percent, Quota, Scope
from muster.model.value import MINUTE, Duration, GpuModel, NodeId, PoolName

GIB = 1_024

MEMORY_MIB = {
    "A30-24GB": 24_576,
    "A100-40GB": 40_960,
    "A100-80GB": 81_920,
    "H100-80GB": 81_920,
    "H200-141GB": 143_771,
    "T4-16GB": 16_384,
}


class GroupAsked(TypedDict, total=False):
    """What the tasks of one group want; whatever is not said is ordinary."""

    tasks: int
    at_least: int
    gpus: int
    mig: str
    mps: int
    mps_memory_gib: int
    time_share: int
    models: tuple[str, ...]
    gpu_memory_gib: int
    cpu: int
    memory_gib: int
    together: str
    rather_together: str
    needs: tuple[str, ...]
    prefers: tuple[str, ...]
    tolerates: tuple[str, ...]
    only_on: tuple[str, ...]
    not_on: tuple[str, ...]
    near: tuple[str, ...]
    apart: tuple[str, ...]
    exclusive: bool
    per_node: int


class QuotaSaid(TypedDict, total=False):
    """One line of quota: GPUs, cores, GiB or MIG instances, or a percentage as "40%"."""

    of: str
    guaranteed: int | str
    limit: int | str
    lend: int | str
    borrow: int | str
    model: str
    pool: str
    profile: str


def group(name: str, **asked: Unpack[GroupAsked]) -> TaskGroup:
    """A group of tasks: `group("worker", tasks=4, gpus=2)`."""
    return group_of(asked, name=name)


def group_of(asked: GroupAsked, *, name: str = "main") -> TaskGroup:
    """The group that was asked for."""
    return TaskGroup(
        name=name,
        count=asked.get("tasks", 1),
        min_count=asked.get("at_least"),
        each=_ask(asked),
        together=_together(asked),
        where=_where(asked),
    )


def quota(**said: Unpack[QuotaSaid]) -> Quota:
    """A line of quota: `quota(limit=4, model="H100-80GB")`, `quota(of="cpu", limit=16)`."""
    return quota_of(said)


def quota_of(said: QuotaSaid) -> Quota:
    """The line of quota that was said."""
    meter = Meter.MIG if "profile" in said else Meter(said.get("of", "gpu"))
    model, pool = said.get("model"), said.get("pool")
    return Quota(
        scope=Scope(
            meter=meter,
            profile=said.get("profile"),
            pool=None if pool is None else PoolName(pool),
            model=None if model is None else GpuModel(model),
        ),
        guaranteed=_amount(said.get("guaranteed", 0), meter) or 0,
        limit=_amount(said.get("limit"), meter),
        lend_limit=_amount(said.get("lend"), meter),
        borrow_limit=_amount(said.get("borrow"), meter),
    )


def minutes(said: int | None) -> Duration | None:
    """So many minutes, if anything was said."""
    return None if said is None else Duration(said * MINUTE)


def taint(text: str) -> Taint:
    """`"key"` or `"key=value"`."""
    key, _, value = text.partition("=")
    return Taint(key=key, value=value)


def instance(text: str) -> MigInstance:
    """`"2g.10gb@4"`: the profile, and the memory slice it begins at."""
    profile, _, start = text.partition("@")
    return MigInstance(profile=profile, start=int(start))


def _amount(said: int | str | None, meter: Meter) -> Amount | None:
    match said:
        case None:
            return None
        case str():
            return Percent(percent=int(said.removesuffix("%")))
        case int():
            return said * UNITS[meter]


UNITS = {Meter.GPU: 1_000, Meter.CPU: 1_000, Meter.MEMORY: GIB, Meter.MIG: 1}


def _ask(asked: GroupAsked) -> Ask:
    count = asked.get("gpus", 1)
    gpus = GpuAsk(
        count=count,
        slice=_slice(asked),
        models=tuple(GpuModel(model) for model in asked.get("models", ())),
        min_memory_mib=asked.get("gpu_memory_gib", 0) * GIB,
    )
    return Ask(
        cpu_milli=asked.get("cpu", 0) * 1_000,
        memory_mib=asked.get("memory_gib", 0) * GIB,
        gpus=gpus if count else None,
    )


def _slice(asked: GroupAsked) -> Slice | None:
    if "mig" in asked:
        return Mig(profile=asked["mig"])
    if "mps" in asked:
        return MpsShare(milli=asked["mps"], memory_mib=asked.get("mps_memory_gib", 0) * GIB)
    if "time_share" in asked:
        return TimeShare(replicas=asked["time_share"])
    return None


def _together(asked: GroupAsked) -> Together | None:
    if "together" in asked:
        return Together(level=asked["together"])
    if "rather_together" in asked:
        return Together(level=asked["rather_together"], required=False)
    return None


def _where(asked: GroupAsked) -> Where:
    return Where(
        require=tuple(label_rule(text) for text in asked.get("needs", ())),
        prefer=tuple(label_rule(text) for text in asked.get("prefers", ())),
        tolerate=tuple(_toleration(text) for text in asked.get("tolerates", ())),
        nodes=tuple(NodeId(node) for node in asked.get("only_on", ())),
        not_nodes=tuple(NodeId(node) for node in asked.get("not_on", ())),
        near=tuple(_job_rule(text) for text in asked.get("near", ())),
        apart=tuple(_job_rule(text) for text in asked.get("apart", ())),
        exclusive=asked.get("exclusive", False),
        max_per_node=asked.get("per_node"),
    )


def label_rule(text: str) -> LabelRule:
    """`"disk=ssd|nvme"`, `"disk!=hdd"`, `"disk"` or `"!disk"`, as in a Kubernetes selector."""
    if "!=" in text:
        key, _, values = text.partition("!=")
        return LabelRule(key=key, operator=Operator.NOT_IN, values=tuple(values.split("|")))
    if "=" in text:
        key, _, values = text.partition("=")
        return LabelRule(key=key, operator=Operator.IN, values=tuple(values.split("|")))
    if text.startswith("!"):
        return LabelRule(key=text.removeprefix("!"), operator=Operator.ABSENT)
    return LabelRule(key=text, operator=Operator.EXISTS)


def _toleration(text: str) -> Toleration:
    """`"*"` tolerates everything, `"key"` any value of that key, `"key=value"` just that."""
    if text == "*":
        return Toleration()
    key, equals, value = text.partition("=")
    return Toleration(key=key, value=value if equals else None)


def _job_rule(text: str) -> JobRule:
    """`"app=web"` on the same node, `"app=web@rack"` in the same rack."""
    label, _, level = text.partition("@")
    key, _, value = label.partition("=")
    return JobRule(key=key, value=value, level=level or NODE_LEVEL)
