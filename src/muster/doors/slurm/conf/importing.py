"""Slurm's files together, as one site and its nodes. Pure."""

from collections.abc import Mapping

from muster.doors.slurm.conf.found import Files, Imported, Note, Notes
from muster.doors.slurm.conf.policy_of import policy_of, seconds
from muster.doors.slurm.conf.pools_of import (
    Guests,
    Sorted,
    class_from,
    default_mode,
    default_of,
    partitions_of,
    pool_from,
    sorted_out,
    tiers_preempt,
)
from muster.doors.slurm.conf.queues_of import NORMAL, Accounts, accounts_of, class_of
from muster.doors.slurm.conf.racks_of import GpuTypes, machines_of, places_of, racks_of
from muster.model.queue import JobClass, PreemptMode, Queue
from muster.model.site import Site
from muster.model.value import ClassName, QueuePath, UserName, replace

USUAL_GRACE_S = 30
DEFAULT = QueuePath("default")
OF_NODES = frozenset({"nodename", "partitionname", "downnodes", "nodeset", "frontendname"})


def imported(files: Files) -> Imported:
    """Everything that could be taken over, and notes on the rest."""
    written: list[Note] = []

    def notes(about: str, text: str) -> None:
        note = Note(about=about, text=text)
        if note not in written:
            written.append(note)

    options = _options(files)
    machines = machines_of(files.conf)
    sorted_partitions = sorted_out(partitions_of(files.conf, tuple(machines)), notes)
    accounts = accounts_of(files.accounts, notes)
    classes = _classes(files, options, accounts, sorted_partitions, notes)
    places = places_of(files.topology, notes)
    guests = Guests(queues=accounts.by_account, classes=frozenset(classes))
    queues = accounts.queues or {DEFAULT: Queue(path=DEFAULT)}
    pools = (pool_from(each, guests, places.levels, notes) for each in sorted_partitions.own)
    site = Site(
        queues=queues,
        classes=classes,
        pools={pool.name: pool for pool in pools},
        users=accounts.users,
        default_pool=default_of(sorted_partitions.own),
        default_queue=DEFAULT if DEFAULT in queues else min(queues),
        policy=policy_of(options, _spelled(files), notes),
    )
    hardware = GpuTypes(files.models, files.gres, notes)
    racks = tuple(racks_of(machines, sorted_partitions.pool_of, hardware, places))
    return Imported(site=site, racks=racks, notes=tuple(written))


def _options(files: Files) -> dict[str, str]:
    """Settings of the whole cluster: lines that are about no node and no partition."""
    found: dict[str, str] = {}
    for line in files.conf:
        if line.first not in OF_NODES:
            found |= line.fields
    return found


def _spelled(files: Files) -> dict[str, str]:
    return {name.lower(): name for line in files.conf for name, _ in line.pairs}


def _classes(
    files: Files,
    options: Mapping[str, str],
    accounts: Accounts,
    partitions: Sorted,
    notes: Notes,
) -> dict[ClassName, JobClass]:
    mode = default_mode(options)
    usual = JobClass(
        name=NORMAL,
        preempt_mode=mode or PreemptMode.REQUEUE,
        grace=seconds(options, "killwait", USUAL_GRACE_S),
    )
    found = [class_of(row, usual, notes) for row in files.classes]
    known = {each.name for each in found}
    for name in sorted(accounts.classes | {str(NORMAL)}):
        if name not in known:
            found.append(replace(usual, name=ClassName(name)))
            if name != NORMAL:
                notes(
                    f"QOS {name}", "its priority is unknown: add `sacctmgr -P show qos` to a file"
                )
    by_tier = [class_from(each, usual, notes) for each in partitions.over]
    if options.get("preempttype", "").lower().endswith("partition_prio"):
        by_tier = list(tiers_preempt(by_tier))
    found += [each for each in by_tier if each.name not in known]
    classes = {each.name: each for each in found}
    for each in classes.values():
        if not each.lets_use(UserName(""), QueuePath(""), classes[NORMAL]):
            notes(
                f"QOS {each.name}",
                "takes more than its share, so that only a queue_admin may use it: "
                "write may_use, with names or [everyone]",
            )
    return {name: _with_known(each, classes, notes) for name, each in classes.items()}


def _with_known(each: JobClass, classes: Mapping[ClassName, JobClass], notes: Notes) -> JobClass:
    """Without victims that do not exist."""
    gone = [name for name in each.preempts if name not in classes]
    for name in gone:
        notes(f"QOS {each.name}", f"preempts {name}, which is nowhere described")
    kept = tuple(name for name in each.preempts if name in classes)
    return replace(each, preempts=kept) if gone else each
