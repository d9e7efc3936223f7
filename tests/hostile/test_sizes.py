"""One request costs a bounded amount of memory, disk and attention, whatever it says."""

import tracemalloc
from collections.abc import Callable

import pytest

from hostile.people import OTHER, OWNER, ROOT, audit, spec, submitted, token
from hostile.test_private_queues import slurm
from muster.app.parts import Muster, clock
from muster.doors.slurm.answering import answered
from muster.doors.slurm.call import Call, Door
from muster.lifecycle.sizes import MOST_LABEL_VALUE, MOST_NAME
from muster.model.errors import RefusedError
from muster.model.job import Ask, Dependency, DependencyKind, JobSpec, TaskGroup, Where
from muster.model.launch import Launch
from muster.model.site import Role, Site, UserLimits
from muster.model.value import JobId, NodeId, UserName, replace

MIB = 1_024 * 1_024
LONG = "x" * MIB

TOO_LARGE = {
    "name": {"name": "n" * (MOST_NAME + 1)},
    "name in bytes": {"name": "é" * MOST_NAME},
    "label": {"labels": {"a": LONG}},
    "name of a label": {"labels": {LONG: "a"}},
    "labels": {"labels": {f"l{each}": "v" for each in range(1_001)}},
    "labels together": {"labels": {f"l{each}": "v" * 4_000 for each in range(50)}},
    "environment": {"launch": Launch(argv=("true",), env={"A": LONG, "B": LONG})},
    "command": {"launch": Launch(argv=("true", *([LONG] * 2)))},
    "script": {"launch": Launch(script="#!/bin/sh\n" + LONG * 5)},
    "workdir": {"launch": Launch(argv=("true",), workdir="/" + LONG)},
    "output": {"launch": Launch(argv=("true",), stdout="/" + LONG)},
    "groups": {
        "groups": tuple(
            TaskGroup(name=f"group-{each}-with-a-name", each=Ask(cpu_milli=1))
            for each in range(3_000)
        )
    },
    "nodes": {
        "groups": (
            TaskGroup(
                each=Ask(cpu_milli=1),
                where=Where(nodes=tuple(NodeId(f"node{each}") for each in range(20_000))),
            ),
        )
    },
    "conditions": {
        "after": tuple(
            Dependency(kind=DependencyKind.AFTER_ANY, job=JobId(1)) for _ in range(10_001)
        )
    },
}

CONTROL = ("\n", "\r", "\x1b[2J", "\x00", "\x07", "\x9b", "\u202e", "\u2028", "\x7f")

SHOWN: dict[str, Callable[[str], dict[str, object]]] = {
    "name": lambda text: {"name": f"a{text}b"},
    "label": lambda text: {"labels": {"slurm/comment": f"a{text}b"}},
    "name of a label": lambda text: {"labels": {f"a{text}b": "v"}},
    "group": lambda text: {"groups": (TaskGroup(name=f"a{text}b", each=Ask(cpu_milli=1)),)},
    "workdir": lambda text: {"launch": Launch(argv=("true",), workdir=f"/a{text}b")},
    "output": lambda text: {"launch": Launch(argv=("true",), stdout=f"/a{text}b")},
    "image": lambda text: {"launch": Launch(argv=("true",), image=f"a{text}b")},
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_what_is_too_large_is_refused_with_its_bound(muster: Muster, what: str) -> None:
    wish = spec("owner", **TOO_LARGE[what])

    with pytest.raises(RefusedError, match="it may have"):
        muster.service.submit(OWNER, wish, held=True).result()
    with pytest.raises(RefusedError, match="it may have"):
        muster.service.submit(ROOT, wish, indices=(1, 2, 3), held=True).result()


def changed(wish: JobSpec, **fields: object) -> JobSpec:
    return replace(wish, **fields)


@pytest.mark.parametrize("what", ["name", "label", "labels together", "groups"])
def test_a_change_is_bounded_as_a_submission_is(muster: Muster, what: str) -> None:
    job = submitted(muster)

    with pytest.raises(RefusedError, match="it may have"):
        muster.service.update(OWNER, job, lambda old: changed(old, **TOO_LARGE[what])).result()


@pytest.mark.parametrize("what", SHOWN)
@pytest.mark.parametrize("text", CONTROL, ids=ascii)
def test_control_characters_reach_nobody(muster: Muster, what: str, text: str) -> None:
    wish = spec("owner", **SHOWN[what](text))
    job = submitted(muster)

    with pytest.raises(RefusedError, match="control character"):
        muster.service.submit(OWNER, wish, held=True).result()
    with pytest.raises(RefusedError, match="control character"):
        muster.service.update(OWNER, job, lambda old: changed(old, **SHOWN[what](text))).result()


@pytest.mark.parametrize(
    "word", ["name=a\nJobState=RUNNING", "comment=a\x1b[2J", "admincomment=x\ny", "wckey=a\rb"]
)
def test_scontrol_update_takes_no_control_characters(muster: Muster, word: str) -> None:
    job = submitted(muster)
    door = Door(service=muster.service, caller=OWNER, now=clock())
    answered("scontrol", Call(form=1, argv=("update", f"jobid={job}", word)), door)

    shown = slurm(muster, ROOT, f"scontrol show job {job}").out
    assert shown.count("JobState=") == 1
    assert "\x1b" not in shown
    assert "\r" not in shown


# The widths of columns.

WIDE = "999999999"
FORMATS = (
    f"sacct -a -S now-1days --format=JobID%{WIDE}",
    f"sacct -a -S now-1days --format=JobID%-{WIDE}",
    f"sacct -a -S now-1days --format={','.join(['JobID%100000'] * 1_000)}",
    f"squeue -o %{WIDE}i",
    f"squeue -o %.{WIDE}i",
    f"squeue -O jobid:{WIDE}",
    f"squeue -o {'%1000i' * 1_000}",
    f"sinfo -o %{WIDE}N",
    f"sinfo -O nodelist:{WIDE}",
    f"sprio -o %{WIDE}i",
    f"sshare -a -o Account%{WIDE}",
    f"sacctmgr show qos format=Name%{WIDE}",
    f"sstat -a -j 1 --format=JobID%{WIDE}",
)


@pytest.mark.parametrize("line", FORMATS, ids=lambda line: line[:40])
def test_no_column_makes_an_answer_without_end(muster: Muster, line: str) -> None:
    submitted(muster)
    tracemalloc.start()
    try:
        told = slurm(muster, OTHER, line)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 64 * MIB
    assert len(told.out) < 16 * MIB


# What one user may have.


def limited(site: Site, limits: UserLimits) -> Site:
    return replace(site, per_user=limits)


def test_one_user_has_so_many_jobs_and_no_more(fresh: Muster) -> None:
    limits = UserLimits(max_jobs=3)
    fresh.service.apply(ROOT, lambda site: limited(site, limits)).result()
    for _ in range(2):
        fresh.service.submit(OWNER, spec(), held=True).result()

    with pytest.raises(RefusedError, match="one user may have 3"):
        fresh.service.submit(OWNER, spec(), indices=(1, 2), held=True).result()
    third = fresh.service.submit(OWNER, spec(), held=True).result().jobs
    with pytest.raises(RefusedError, match="Submit 0 or fewer"):
        fresh.service.submit(OWNER, spec(), held=True).result()
    assert fresh.service.submit(OTHER, spec("other"), held=True).result().jobs
    assert fresh.service.submit(ROOT, spec("owner"), held=True).result().jobs
    fresh.service.cancel(OWNER, third).result()
    fresh.service.cancel(ROOT, (JobId(third[0] + 2),)).result()

    assert fresh.service.submit(OWNER, spec(), held=True).result().jobs


def test_one_user_submits_so_many_bytes_a_day_and_no_more(fresh: Muster) -> None:
    limits = UserLimits(max_submit_mib=2)
    fresh.service.apply(ROOT, lambda site: limited(site, limits)).result()
    large = spec(launch=Launch(argv=("true",), env={"A": "x" * 700_000}))
    fresh.service.submit(OWNER, large, held=True).result()
    fresh.service.submit(OWNER, large, held=True).result()

    with pytest.raises(RefusedError, match="Submit again in"):
        fresh.service.submit(OWNER, large, held=True).result()
    assert fresh.service.submit(OTHER, replace(large, user=UserName("other")), held=True).result()


@pytest.mark.parametrize("way", ["hold", "signal", "update", "token"])
def test_small_changes_without_end_are_bounded_like_large_ones(fresh: Muster, way: str) -> None:
    """Each of them is written to the log and to the audit, whose disk is everybody's."""
    fresh.service.apply(ROOT, lambda site: limited(site, UserLimits(max_submit_mib=1))).result()
    service, job = fresh.service, fresh.service.submit(OWNER, spec(), held=True).result().jobs

    def change_without_end() -> None:
        for number in range(3_000):
            change(number)

    def change(number: int) -> None:
        match way:
            case "hold":
                service.release(OWNER, job).result()
                service.hold(OWNER, job).result()
            case "signal":
                service.signal(OWNER, job * 100, 10).result()
            case "update":
                service.update(OWNER, job[0], lambda old: replace(old, name=f"n{number}")).result()
            case _:
                made = token(fresh, OWNER, Role.VIEWER).token
                service.revoke(OWNER, made.id).result()

    with pytest.raises(RefusedError, match=r"again in|in a day"):
        change_without_end()
    assert service.cancel(OWNER, job).result().done == job


def test_what_changes_nothing_is_not_written_down(fresh: Muster) -> None:
    job = fresh.service.submit(OWNER, spec(), held=True).result().jobs
    for _ in range(5):
        fresh.service.hold(OWNER, job).result()

    assert [each for each in audit(fresh) if each.action == "hold"] == []


def test_each_part_of_an_array_counts(fresh: Muster) -> None:
    limits = UserLimits(max_submit_mib=4)
    fresh.service.apply(ROOT, lambda site: limited(site, limits)).result()
    labelled = spec(labels={"a": "v" * (MOST_LABEL_VALUE - 1)})

    with pytest.raises(RefusedError, match="submit fewer jobs at once"):
        fresh.service.submit(OWNER, labelled, indices=tuple(range(5_000)), held=True).result()


def test_what_the_parts_of_an_array_share_counts_once(fresh: Muster) -> None:
    limits = UserLimits(max_submit_mib=4)
    fresh.service.apply(ROOT, lambda site: limited(site, limits)).result()
    labels = {f"label-{each}": "v" * (MOST_LABEL_VALUE - 1) for each in range(15)}

    made = fresh.service.submit(
        OWNER, spec(labels=labels), indices=tuple(range(1_000)), held=True
    ).result()

    assert len(made.jobs) == 1_000
