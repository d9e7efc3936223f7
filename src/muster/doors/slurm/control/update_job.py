"""What `scontrol update JobId=` changes: every documented key is honoured, warned of or refused."""

from collections.abc import Callable
from functools import partial
from math import ceil

from muster.controller.messages import JobView
from muster.doors.mail_words import mail_of
from muster.doors.slurm.call import Call, Door
from muster.doors.slurm.lists.filters import parts_of
from muster.doors.slurm.lists.listing import has_usual_limit
from muster.doors.slurm.submit import job_details
from muster.doors.slurm.submit.labels import LABEL
from muster.doors.slurm.submit.request import Request
from muster.doors.slurm.submit.shape import features_of
from muster.doors.slurm.words import sizes, times
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.gres import BadGresError, NoSuchTypeError, gres_wish
from muster.doors.slurm.words.hostlist import expanded
from muster.doors.slurm.words.options import Parsed
from muster.doors.slurm.words.pairs import Pair
from muster.model.job import Ask, JobSpec, TaskGroup, Where
from muster.model.mail import is_address
from muster.model.value import (
    MINUTE,
    ClassName,
    Duration,
    Instant,
    NodeId,
    PoolName,
    QueuePath,
    Value,
    replace,
)


class UpdateKey(Value):
    """One key with its value, and what it is read against."""

    pair: Pair
    view: JobView
    call: Call
    door: Door

    @property
    def value(self) -> str:
        return self.pair.value

    def wrong(self, why: str) -> SlurmError:
        """What Slurm's controller would say of this job."""
        return SlurmError(f"{why} for job {self.view.job.id}")

    def number(self) -> int:
        """A whole number, of which the least counts in `2-4`."""
        text = self.value.partition("-")[0]
        if not text.isdecimal():
            raise self.no_number()
        return int(text)

    def no_number(self) -> SlurmError:
        name = _SPELLED.get(self.pair.name, self.pair.text.partition("=")[0])
        return SlurmError(f"scontrol: error: Invalid {name} value: {self.value}")

    def instant(self) -> Instant:
        try:
            return times.instant(self.value, self.door.now, self.call.zone)
        except times.BadTimeError as bad:
            place = f"Invalid time specification (pos={bad.place}): {self.value}"
            raise SlurmError(place, "No changes specified") from bad


_SPELLED = {
    "cpuspertask": "CPUsPerTask",
    "minmemorycpu": "MinMemoryCPU",
    "minmemorynode": "MinMemoryNode",
}


Change = Callable[[JobSpec], JobSpec]


class JobChanges(Value):
    """What is changed, what is printed about it, and what to print if it cannot be.

    holds: whether the job is to be held, or released; None leaves it as it is.
    """

    made: Change
    warnings: str = ""
    problem: str = ""
    holds: bool | None = None


def changes_of(pairs: tuple[Pair, ...], view: JobView, call: Call, door: Door) -> JobChanges:
    """All keys together, in their order."""
    found: list[Change] = []
    warnings = ""
    for pair in pairs:
        name = pair.text.partition("=")[0].rstrip("+-")
        if pair.name in IGNORED:
            warnings += f"scontrol: warning: {name} is ignored by Muster\n"
            continue
        if pair.name in REFUSED:
            raise SlurmError(f"{REFUSED[pair.name]} for job {view.job.id}")
        make = KEYS.get(pair.name)
        if make is None:
            raise SlurmError(
                f"Update of this parameter is not supported: {pair.text}", "Request aborted"
            )
        found.append(make(UpdateKey(pair=pair, view=view, call=call, door=door)))
    if not found and not warnings:
        raise SlurmError("No changes specified")

    def made(spec: JobSpec) -> JobSpec:
        for each in found:
            spec = each(spec)
        return spec

    return JobChanges(made=made, warnings=warnings, holds=_holds(pairs))


def _holds(pairs: tuple[Pair, ...]) -> bool | None:
    """In Slurm, a job with a priority of 0 is one that is held."""
    values = [pair.value for pair in pairs if pair.name == "priority"]
    return None if not values else values[-1] == "0"


def _time_limit(field: UpdateKey) -> Change:
    sign, text = field.pair.sign, field.value
    if text[:1] in {"+", "-"}:
        sign, text = text[0], text[1:]
    try:
        limit = times.limit(text)
    except times.BadTimeError as bad:
        raise SlurmError("scontrol: error: Invalid TimeLimit value") from bad
    if limit is None and has_usual_limit(field.door):
        return lambda spec: replace(spec, time_limit=times.ENDLESS_LIMIT)
    if not sign or limit is None:
        return lambda spec: replace(spec, time_limit=limit)
    more = limit if sign == "+" else -limit
    return lambda spec: replace(
        spec, time_limit=spec.time_limit and Duration(max(MINUTE, spec.time_limit + more))
    )


def _end_time(field: UpdateKey) -> Change:
    begun = field.view.started_at
    if begun is None:
        raise field.wrong("Job is not running")
    limit = max(MINUTE, field.instant() - begun)
    return lambda spec: replace(spec, time_limit=Duration(limit))


def _label(name: str) -> Callable[[UpdateKey], Change]:
    def make(field: UpdateKey) -> Change:
        label = {LABEL + name: field.value}
        return lambda spec: replace(spec, labels={**spec.labels, **label})

    return make


def _mail_type(field: UpdateKey) -> Change:
    words = job_details.mail_words(field.value)
    if not words:
        raise SlurmError(f"Invalid MailType: {field.value}")
    return lambda spec: replace(spec, mail=mail_of(words, spec.mail.to))


def _mail_user(field: UpdateKey) -> Change:
    """An empty one is the job's own user."""
    to = field.value or None
    if to is not None and not is_address(to):
        raise field.wrong("Invalid mail user")
    return lambda spec: replace(spec, mail=replace(spec.mail, to=to))


def _begin(field: UpdateKey) -> Change:
    at = field.instant()
    return lambda spec: replace(spec, begin_at=at)


def _deadline(field: UpdateKey) -> Change:
    at = field.instant()
    return lambda spec: replace(spec, deadline=at)


def _throttle(field: UpdateKey) -> Change:
    most = field.number() or None

    def change(spec: JobSpec) -> JobSpec:
        part = spec.array
        return spec if part is None else replace(spec, array=replace(part, at_once=most))

    return change


def _priority(field: UpdateKey) -> Change:
    if not field.value.lstrip("-").isdecimal():
        raise SlurmError(f"scontrol: error: Invalid Priority value: {field.value}")
    if field.value == "0":
        return lambda spec: spec
    return lambda spec: replace(spec, priority=int(field.value))


def _nice(field: UpdateKey) -> Change:
    # What is no number counts as none, as in Slurm.
    nice = int(field.value) if field.value.lstrip("+-").isdecimal() else 0
    return lambda spec: replace(spec, priority=-nice)


def _requeue(field: UpdateKey) -> Change:
    if not field.value.isdecimal():
        raise SlurmError(f"scontrol: error: Invalid Requeue value: {field.value}")
    return lambda spec: replace(spec, retry=replace(spec.retry, requeue=int(field.value) > 0))


def _dependency(field: UpdateKey) -> Change:
    given = Parsed(given=(("dependency", field.value),))
    request = Request(command="scontrol", given=given, call=field.call, now=field.door.now)
    try:
        part = field.view.job.spec.array
        own = () if part is None else (part.index,)
        after = job_details.dependencies_of(request, partial(parts_of, field.door), own)
    except SlurmError as bad:
        raise field.wrong("Job dependency problem") from bad
    if any(each.job == field.view.job.id for each in after):
        raise field.wrong("Job dependency problem")
    return lambda spec: replace(spec, after=after)


def _partition(field: UpdateKey) -> Change:
    pools = tuple(PoolName(each) for each in field.value.split(",") if each)
    if not pools or not set(pools) <= field.door.queries.nodes.pools().keys():
        raise field.wrong("Invalid partition name specified")
    held = field.view.allocation
    if held is not None and {placed.pool for placed in held.placements} == set(pools):
        return lambda spec: spec
    return lambda spec: replace(spec, pools=pools)


def _account(field: UpdateKey) -> Change:
    return lambda spec: replace(spec, queue=QueuePath(field.value))


def _qos(field: UpdateKey) -> Change:
    if field.value not in field.door.queries.site().classes:
        raise field.wrong("Invalid qos specification")
    return lambda spec: replace(spec, job_class=ClassName(field.value))


def _name(field: UpdateKey) -> Change:
    return lambda spec: replace(spec, name=field.value)


def _reservation(field: UpdateKey) -> Change:
    known = {each.name for each in field.door.queries.site().reservations}
    if field.value and field.value not in known:
        raise field.wrong("Requested reservation is invalid")
    return lambda spec: replace(spec, reservation=field.value or None)


def _nodes_named(field: UpdateKey, *, wanted: bool) -> Change:
    names = tuple(map(NodeId, expanded(field.value)))
    if not set(names) <= field.door.queries.nodes.all().keys():
        raise field.wrong("Invalid node name specified")

    def changed(where: Where) -> Where:
        return replace(where, nodes=names) if wanted else replace(where, not_nodes=names)

    return lambda spec: _with_where(spec, changed)


def _features(field: UpdateKey) -> Change:
    if field.view.allocation is not None:
        raise field.wrong("Job is no longer pending execution")
    given = Parsed(given=(("constraint", field.value),) if field.value else ())
    request = Request(command="scontrol", given=given, call=field.call, now=field.door.now)
    machines = field.door.cache.machines(field.door.queries.nodes.all())
    try:
        rules = features_of(request, machines)
    except SlurmError as bad:
        raise field.wrong("Invalid feature specification") from bad
    label = {LABEL + "features": field.value}
    return lambda spec: replace(
        _with_where(spec, lambda where: replace(where, require=rules)),
        labels={**spec.labels, **label},
    )


def _gres(field: UpdateKey) -> Change:
    machines = field.door.cache.machines(field.door.queries.nodes.all())
    text = field.value.removeprefix("gres:")
    try:
        wish = gres_wish(text, machines.models)
    except (BadGresError, NoSuchTypeError) as bad:
        raise field.wrong("Invalid generic resource (gres) specification") from bad
    gpus = None if wish is None else wish.ask()
    label = {LABEL + "tres-per-node": f"gres:{text}"}

    def change(spec: JobSpec) -> JobSpec:
        changed = _with_ask(spec, lambda group: replace(group.each, gpus=gpus), field)
        return replace(changed, labels={**spec.labels, **label})

    return change


def _memory(field: UpdateKey, *, per_cpu: bool) -> Change:
    mib = sizes.memory_mib(field.value)
    if mib is None:
        raise field.no_number()

    def ask(group: TaskGroup) -> Ask:
        cpus = ceil(group.each.cpu_milli / 1_000)
        return replace(group.each, memory_mib=mib * cpus if per_cpu else mib)

    def change(spec: JobSpec) -> JobSpec:
        labels = {name: text for name, text in spec.labels.items() if name not in _OTHER_MEMORY}
        own = {LABEL + "mem-per-cpu": str(mib)} if per_cpu else {}
        return replace(_with_ask(spec, ask, field), labels={**labels, **own})

    return change


_OTHER_MEMORY = frozenset({LABEL + "mem-per-cpu", LABEL + "mem-per-gpu"})


def _cpus(field: UpdateKey, *, of: str) -> Change:
    """NumCPUs: of the whole job. NumTasks, CPUsPerTask: by the other. MinCPUsNode: at least."""
    number = max(1, field.number())

    def cpus(spec: JobSpec, count: int) -> int:
        tasks = ceil(int(spec.labels.get(LABEL + "ntasks", "1")) / count)
        each = int(spec.labels.get(LABEL + "cpus-per-task", "1"))
        of_node = {"job": number / count, "ntasks": ceil(number / count) * each}
        return ceil(of_node.get(of, number if of == "node" else tasks * number))

    def change(spec: JobSpec) -> JobSpec:
        def ask(group: TaskGroup) -> Ask:
            return replace(group.each, cpu_milli=1_000 * cpus(spec, group.count))

        changed = _with_ask(spec, ask, field)
        if of in {"job", "node"}:
            return changed
        return replace(changed, labels={**spec.labels, LABEL + of: str(number)})

    return change


def _node_count(field: UpdateKey) -> Change:
    if field.view.allocation is not None:
        raise field.wrong("Requested operation not supported on this system")
    count = max(1, field.number())

    def change(spec: JobSpec) -> JobSpec:
        group = _only(spec, field)
        where = replace(group.where, max_per_node=1 if count > 1 else None)
        groups = (replace(group, count=count, where=where),)
        labels = {LABEL + "nodes": str(count), LABEL + "max-nodes": str(count)}
        return replace(spec, groups=groups, labels={**spec.labels, **labels})

    return change


def _with_where(spec: JobSpec, changed: Callable[[Where], Where]) -> JobSpec:
    groups = tuple(replace(group, where=changed(group.where)) for group in spec.groups)
    return replace(spec, groups=groups)


def _with_ask(spec: JobSpec, ask: Callable[[TaskGroup], Ask], field: UpdateKey) -> JobSpec:
    group = _only(spec, field)
    return replace(spec, groups=(replace(group, each=ask(group)),))


def _only(spec: JobSpec, field: UpdateKey) -> TaskGroup:
    """Of several groups it is not clear which is meant."""
    group, *others = spec.groups
    if others:
        raise field.wrong("Requested operation not supported on this system")
    return group


KEYS: dict[str, Callable[[UpdateKey], Change]] = {
    "account": _account,
    "admincomment": _label("admin-comment"),
    "arraytaskthrottle": _throttle,
    "comment": _label("comment"),
    "cpuspertask": partial(_cpus, of="cpus-per-task"),
    "deadline": _deadline,
    "dependency": _dependency,
    "eligibletime": _begin,
    "endtime": _end_time,
    "excnodelist": partial(_nodes_named, wanted=False),
    "features": _features,
    "gres": _gres,
    "jobname": _name,
    "mailtype": _mail_type,
    "mailuser": _mail_user,
    "mincpusnode": partial(_cpus, of="node"),
    "minmemorycpu": partial(_memory, per_cpu=True),
    "minmemorynode": partial(_memory, per_cpu=False),
    "name": _name,
    "nice": _nice,
    "nodelist": partial(_nodes_named, wanted=True),
    "numcpus": partial(_cpus, of="job"),
    "numnodes": _node_count,
    "numtasks": partial(_cpus, of="ntasks"),
    "partition": _partition,
    "priority": _priority,
    "qos": _qos,
    "reqnodelist": partial(_nodes_named, wanted=True),
    "reqnodes": _node_count,
    "reqprocs": partial(_cpus, of="job"),
    "requeue": _requeue,
    "reservationname": _reservation,
    "starttime": _begin,
    "timelimit": _time_limit,
    "wckey": _label("wckey"),
}
"""Honoured."""

IGNORED = frozenset(
    """
    contiguous delayboot mintmpdisknode oversubscribe prefer reboot reqcores reqsockets
    reqthreads shared sitefactor stdout switches timemin userid workdir
    """.split()
)
"""Slurm accepts them; here they change nothing, which is said."""

REFUSED = {
    "burstbuffer": "Requested operation not supported on this system",
    "clusterfeatures": "Unspecified error",
    "clusters": "Unspecified error",
    "corespec": "Access/permission denied",
    "licenses": "Invalid license specification",
    "threadspec": "Access/permission denied",
}
"""They would change what the job is, and we cannot; in the words that Slurm has for it."""
