from pathlib import Path

import pytest

from doors.rest.running import Daemon, shell, started, until
from muster import ApiError, Client
from muster.api.jobs import JobDocument, UpdateDocument
from muster.api.pages import JobFilter
from muster.api.requests import GroupDocument, SubmitDocument


def test_a_job_is_submitted_runs_and_its_end_is_reported(client: Client) -> None:
    made = client.submit_document(shell("exit 3", gpus=1, name="three"))

    over = client.wait(made.id)

    assert (over.state, over.exit_code, over.name, over.user) == ("failed", 3, "three", "root")
    assert over.reason is not None
    assert over.reason.text == "Ended by itself with exit code 3."
    assert over.pretend
    assert over.nodes
    assert over.gpu_seconds > 0


def test_an_array_is_many_jobs_under_one_name(client: Client) -> None:
    made = client.submit_document(shell("true", array="1-5:2%1"))

    ended = [client.wait(job) for job in made.ids]

    assert [job.array_index for job in ended] == [1, 3, 5]
    assert {job.array for job in ended} == {made.id}


def test_pages_of_the_list_follow_each_other_without_gap_or_repeat(client: Client) -> None:
    made = client.submit_document(shell("true", array="0-6", held=True))

    wanted = JobFilter(arrays=(made.id,), limit=3)
    first = client.jobs(wanted)
    every = list(client.all_jobs(wanted))

    assert len(first.jobs) == 3
    assert first.next is not None
    assert [job.id for job in every] == list(made.ids)
    client.cancel(made.ids)


def test_a_part_of_an_array_goes_by_the_same_name_wherever_it_is_told_of(client: Client) -> None:
    array = client.submit_document(shell("true", array="3-4", held=True))
    part = array.ids[1]
    name = f"{array.id}_4"
    after = client.submit_document(shell("true", after=(f"afterok:{name}",)))

    planned = until(
        lambda: client.job(after.id).reason,
        lambda why: why is not None and why.kind == "depends_on",
    )
    listed = client.jobs(JobFilter(ids=(after.id,))).jobs[0].reason

    texts = [planned, listed, client.explain(after.id)]
    assert [each.text for each in texts if each is not None] == [
        f"Waits until job {name} has completed."
    ] * 3
    refused = client.act("suspend", [part]).failed
    assert f"job {name} is held" in refused[str(part)]
    client.cancel(array.ids)
    events = until(
        lambda: client.job_events(part).events,
        lambda seen: any(each.kind == "cancel_asked" for each in seen),
    )
    assert {each.label for each in events} == {name}
    assert f"job {name}" in {each.subject for each in client.audit().entries}
    client.cancel([after.id])


def test_jobs_that_are_over_come_after_those_that_live(client: Client) -> None:
    over = client.submit_document(shell("true", name="mixed")).id
    client.wait(over)
    held = client.submit_document(shell("true", name="mixed", held=True)).id

    wanted = JobFilter(name="mixed", ended=True)
    whole = [job.id for job in client.all_jobs(wanted)]
    one_by_one = [job.id for job in client.all_jobs(JobFilter(name="mixed", ended=True, limit=1))]
    only_over = [job.id for job in client.all_jobs(JobFilter(name="mixed", states=("completed",)))]

    assert whole == one_by_one == [held, over]
    assert only_over == [over]
    client.cancel([held])


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (JobFilter(users=("root",)), True),
        (JobFilter(users=("somebody",)), False),
        (JobFilter(queues=("default",)), True),
        (JobFilter(queues=("elsewhere",)), False),
        (JobFilter(states=("held", "running")), True),
        (JobFilter(states=("running",)), False),
        (JobFilter(name="sought"), True),
        (JobFilter(name="other"), False),
        (JobFilter(nodes=("pretend1",)), False),
    ],
)
def test_a_list_has_what_its_filters_ask_for(
    client: Client, wanted: JobFilter, is_found: bool
) -> None:
    job = client.submit_document(shell("true", name="sought", held=True)).id

    found = [each.id for each in client.all_jobs(wanted)]

    assert (job in found) is is_found
    client.cancel([job])


def test_a_job_is_held_released_suspended_resumed_and_cancelled(client: Client) -> None:
    job = client.submit_document(shell("sleep 60", gpus=1)).id
    started(client, job)

    assert client.suspend([job]).done == (job,)
    until(lambda: client.job(job).state, lambda state: state == "suspended")
    assert client.resume([job]).done == (job,)
    started(client, job)
    assert client.cancel([job]).done == (job,)
    over = client.wait(job)

    assert over.state == "cancelled"
    assert over.reason is not None
    assert over.reason.text == "Was cancelled by root."


def test_a_held_job_says_who_holds_it(client: Client) -> None:
    job = client.submit_document(shell("true", held=True)).id

    held = client.job(job)
    released = client.release([job])
    over = client.wait(job)

    assert held.state == "held"
    assert held.reason is not None
    assert held.reason.text == "Held by root until it is released."
    assert released.done == (job,)
    assert over.state == "completed"


def test_what_cannot_be_done_to_one_of_many_is_reported_beside_what_was(client: Client) -> None:
    job = client.submit_document(shell("true", held=True)).id

    outcome = client.cancel([job, 999_999])

    assert outcome.done == (job,)
    assert list(outcome.failed) == ["999999"]


def test_a_signal_reaches_the_job(client: Client, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"trap 'exit 7' USR1; touch {ready}; while :; do sleep 0.05; done"
    job = client.submit_document(shell(text)).id
    until(ready.exists, bool)

    client.signal([job], "USR1")
    over = client.wait(job)

    assert over.exit_code == 7


def test_an_update_changes_what_is_named_and_nothing_else(client: Client) -> None:
    job = client.submit_document(shell("true", held=True, name="before", time="1h")).id

    updated = client.update(job, UpdateDocument(priority=5, labels={"team": "nlp"}))

    assert (updated.priority, updated.labels) == (5, {"team": "nlp"})
    assert (updated.name, updated.time_limit) == ("before", 3_600)
    client.cancel([job])


def test_a_job_says_when_mail_is_sent_about_it_and_to_whom(client: Client) -> None:
    on = ("end", "FAIL", "array_tasks")
    job = client.submit_document(shell("true", held=True, mail_on=on, mail_to="ann@example.org")).id

    shown = client.job(job)
    moved = client.update(job, UpdateDocument(mail_to="bob"))
    fewer = client.update(job, UpdateDocument(mail_on=("begin",)))
    none = client.update(job, UpdateDocument(mail_on=("none",), mail_to=""))

    assert (shown.mail_on, shown.mail_to) == (("array_tasks", "end", "fail"), "ann@example.org")
    assert (moved.mail_on, moved.mail_to) == (("array_tasks", "end", "fail"), "bob")
    assert (fewer.mail_on, fewer.mail_to) == (("begin",), "bob")
    assert (none.mail_on, none.mail_to) == ((), None)
    client.cancel([job])


@pytest.mark.parametrize(
    ("on", "to", "kind", "text"),
    [
        ("sometimes", None, "bad_request", "`sometimes` must be one of `none`, `all`"),
        ("end", "|reboot", "bad_address", "is no mail address. Write ann@example.org"),
    ],
)
def test_mail_that_could_not_be_sent_is_refused(
    client: Client, on: str, to: str | None, kind: str, text: str
) -> None:
    with pytest.raises(ApiError) as refused:
        client.submit_document(shell("true", mail_on=(on,), mail_to=to))

    assert refused.value.problem.kind == kind
    assert text in refused.value.problem.text


def test_a_job_that_waits_is_explained(client: Client) -> None:
    first = client.submit_document(shell("sleep 60", gpus=4)).id
    second = client.submit_document(shell("sleep 60", gpus=4)).id
    started(client, first)
    started(client, second)
    third = client.submit_document(shell("true", gpus=1, time="10m")).id

    explained = client.explain(third)
    shown = until(lambda: client.job(third), is_planned)

    assert explained.state == "pending"
    assert explained.kind == "no_room"
    assert set(explained.blockers) <= {first, second}
    assert shown.reason is not None
    assert shown.reason.text == explained.text
    turn = explained.turn
    assert turn is not None
    assert 0 < turn.fair_share < 4_000_000
    assert turn.points == turn.job_class + turn.fair_share + turn.age + turn.queue + turn.short
    running = client.explain(first)
    assert (running.state, running.turn) == ("running", None)
    client.cancel([first, second, third])
    client.wait(third)


def test_what_asks_for_the_impossible_is_refused_with_advice(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.submit_document(SubmitDocument(command=("true",), groups=(GroupDocument(gpus=64),)))

    assert refused.value.status == 422
    assert refused.value.problem.kind == "never_fits"
    assert "4 GPUs" in refused.value.problem.text


def test_a_job_that_never_was_is_unknown(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.job(987_654)

    assert (refused.value.status, refused.value.problem.kind) == (404, "unknown")


def test_only_the_last_word_of_a_restarted_server_is_lost(daemon: Daemon, client: Client) -> None:
    job = client.submit_document(shell("sleep 60")).id
    started(client, job)

    daemon.stop()
    daemon.start()

    # The same client: it notices that its connection is gone, and connects again.
    assert client.job(job).state == "running"
    client.cancel([job])


def is_planned(job: JobDocument) -> bool:
    return job.reason is not None and job.reason.kind != "new"
