"""What a command makes of the rules, and what it tells about it."""

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from muster.controller.messages import JobQuery
from muster.doors.config.checks import mistakes
from muster.doors.config.kinds import NAME, USER, ValueType
from muster.doors.slurm.managing.words import MINUS, PLUS, Assignment
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.units import BadTextError
from muster.model.cluster import Node
from muster.model.job import Job
from muster.model.site import Site
from muster.model.value import GpuModel, NodeId, Value

NOTHING_NEW = " Nothing new added."
NOTHING_MODIFIED = " Nothing modified"
NOTHING_DELETED = " Nothing deleted"
NO_CONDITIONS = " No conditions given to remove, not executing."


class EditFacts(Value):
    """What a change of the rules has to know beside them. jobs: finds live jobs."""

    cluster: str
    nodes: dict[NodeId, Node]
    models: tuple[GpuModel, ...]
    jobs: Callable[[JobQuery], tuple[Job, ...]]


class Edit(Value):
    """The rules afterwards, the lines that say what is different, and what was not kept.

    code: what the command ends with; above zero there is nothing to do.
    """

    site: Site
    printed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    code: int = 0


Editing = Callable[[Site], Edit]
"""Made from the words of a command; the rules may be others by the time it is carried out."""


def name_of(text: str, kind: ValueType = NAME) -> str:
    """A name that a configuration file could have."""
    try:
        return kind.read(text)
    except BadTextError as bad:
        raise SlurmError(f" '{text}' cannot be a name: {bad}") from bad


def user_named(text: str) -> str:
    return name_of(text, USER)


def demand_sound(site: Site) -> None:
    """Refuse rules that no configuration file may hold."""
    wrong = next(mistakes(site), None)
    if wrong is not None:
        place = ".".join(map(str, wrong.keys))
        raise SlurmError(f"sacctmgr: error: {place}: {wrong.text}")


def demand_idle(jobs: Sequence[Job], around: EditFacts) -> None:
    """Refuse while jobs are live that would belong nowhere."""
    if not jobs:
        return
    lines = [
        f"  JobID = {job.id:<10} C = {around.cluster:<10} A = {job.spec.queue:<10} "
        f"U = {job.spec.user:<9}"
        for job in jobs[:20]
    ]
    raise SlurmError(" Error with request: Job(s) active, cancel job(s) before remove", *lines)


def demand_every_qos(site: Site, word: Assignment | None) -> None:
    """Every user has every QOS: there is none to give, and none can be taken away."""
    if word is None or word.sign == PLUS:
        return
    if word.sign == MINUS or not set(word.values) >= set(site.classes):
        refuse("accounts and users", f"QOS{word.sign}{word.value}", "every user has every QOS")


def warned(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"sacctmgr: warning: {name} is not kept by Muster" for name in names)


def refuse(whose: str, option: str, hint: str = "") -> NoReturn:
    """Of something that Slurm has and we have not, and that must not be passed over."""
    text = f"sacctmgr: error: {option} of {whose} is not supported by Muster"
    raise SlurmError(f"{text}; {hint}" if hint else text)
