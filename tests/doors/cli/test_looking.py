import json
import os
import pty
from pathlib import Path

import pytest

from doors.cli.calling import Caller, muster_process
from doors.cli.canned import CannedServer, Raw, Refusal
from doors.cli.things import RUNNING, STATUS, line_of
from muster.api.diagnosis import FleetDocument
from muster.api.jobs import JobPage, LinePage
from muster.api.pages import NodePage
from muster.api.site import DatesHeldDocument, Problem
from muster.model.value import replace


def test_ps_asks_only_for_what_is_wanted(muster: Caller, server: CannedServer) -> None:
    muster("ps", "--mine", "--queue", "acme", "--state", "pending", "--name", "x", "--node", "n1")

    query = server.asked("GET", "/v1/jobs/lines")[0].query
    assert query == {
        "user": ["alice"],
        "queue": ["acme"],
        "state": ["pending"],
        "name": ["x"],
        "node": ["n1"],
        "limit": ["20000"],
    }


def test_a_long_list_is_read_page_after_page(muster: Caller, server: CannedServer) -> None:
    pages = {
        None: LinePage(lines=(line_of(RUNNING),), next="17"),
        "17": LinePage(lines=(line_of(replace(RUNNING, id=18)),)),
    }
    server.answer("GET", "/v1/jobs/lines", lambda asked: pages[asked.query.get("after", [None])[0]])

    assert [line.split()[0] for line in muster("ps", "--no-headers").out.splitlines()] == [
        "17",
        "18",
    ]


def test_ps_reads_every_page(muster: Caller, server: CannedServer) -> None:
    pages = {
        None: JobPage(jobs=(RUNNING,), next="17"),
        "17": JobPage(jobs=(replace(RUNNING, id=18),), next=None),
    }
    server.answer("GET", "/v1/jobs", lambda asked: pages[asked.query.get("after", [None])[0]])

    assert muster("ps", "-o", "name").out == "17\n18\n"


@pytest.mark.parametrize(
    ("argv", "whose"),
    [
        ((), ""),
        (("--user", "ada"), " of ada"),
        (("--queue", "acme"), " in acme"),
        (("--user", "ada\x1b[2J", "--queue", "acme"), " of ada\ufffd[2J in acme"),
    ],
)
def test_a_report_of_no_jobs_says_whose_there_are_none_of(
    muster: Caller, server: CannedServer, argv: tuple[str, ...], whose: str
) -> None:
    server.answer("GET", "/v1/report", lambda _: FleetDocument(rows=()))

    said = muster("report", *argv).out

    assert said == f"No job{whose} has held a GPU for a whole minute yet.\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("ps", "--user", "nobody"), "There are no such jobs.\n"),
        (("nodes",), "There are no nodes.\n"),
        (("nodes", "--devices"), "There are no GPUs.\n"),
        (("queues", "none"), "There are no such queues.\n"),
    ],
)
def test_an_empty_list_says_so_on_stderr(
    muster: Caller, server: CannedServer, argv: tuple[str, ...], message: str
) -> None:
    server.answer("GET", "/v1/nodes", NodePage(nodes=()))

    outcome = muster(*argv)

    assert (outcome.code, outcome.out, outcome.err) == (0, "", message)


def test_an_empty_list_as_json_is_an_empty_list(muster: Caller) -> None:
    outcome = muster("ps", "--user", "nobody", "-o", "json")

    assert (json.loads(outcome.out), outcome.err) == ([], "")


def test_a_hostile_name_cannot_steer_the_terminal(muster: Caller, server: CannedServer) -> None:
    hostile = replace(RUNNING, name="\x1b]0;owned\x07", labels={"a": "\x1b[2J"})
    server.answer("GET", "/v1/jobs/lines", LinePage(lines=(line_of(hostile),)))
    server.answer("GET", "/v1/jobs/17", hostile)

    shown = muster("ps").out + muster("show", "17").out + muster("why", "17").out

    assert "\x1b" not in shown


def test_colours_can_be_asked_for_and_refused(muster: Caller) -> None:
    assert "\x1b[32mrunning" in muster("ps", "--color", "always").out
    assert "\x1b[32mrunning" in muster("--color", "always", "ps").out
    assert "\x1b" not in muster("ps", "--color", "never").out


def test_show_prints_the_script_alone(muster: Caller) -> None:
    assert muster("show", "--script", "17").out.startswith("#!/bin/sh\n#MUSTER --gpus 2\n")


def test_show_as_json_is_one_document_or_a_list(muster: Caller) -> None:
    one = json.loads(muster("show", "17", "-o", "json").out)
    two = json.loads(muster("show", "17", "18", "-o", "json").out)

    assert one["id"] == 17
    assert [job["id"] for job in two] == [17, 18]


def test_history_asks_for_jobs_that_are_over_in_a_time(
    muster: Caller, server: CannedServer
) -> None:
    muster("history", "--since", "7d", "--until", "2026-11-15", "--user", "alice")

    query = server.asked("GET", "/v1/jobs")[0].query
    assert query["ended"] == ["true"]
    assert query["ended_from"] == ["2026-11-08T11:00:00Z"]
    assert query["ended_to"] == ["2026-11-14T23:00:00Z"]
    assert query["state"] == ["cancelled", "completed", "failed"]


def test_history_says_when_there_is_more(muster: Caller, server: CannedServer) -> None:
    over = tuple(
        replace(RUNNING, id=each, state="completed", ended_at="2026-11-15T10:59:30Z")
        for each in (3, 2, 1)
    )
    server.answer("GET", "/v1/jobs", JobPage(jobs=over))

    outcome = muster("history", "--limit", "2", "-o", "name")

    assert outcome.out == "3\n2\n"
    assert "--limit 20" in outcome.err


def test_logs_are_printed_byte_for_byte(server: CannedServer, tmp_path: Path) -> None:
    server.answer("GET", "/v1/jobs/17/log", Raw(content=b"\xff\x00hello\r\n"))
    argv = ("logs", "17", "--task", "3", "--stderr", "--tail", "100")

    with (tmp_path / "out").open("w+b") as out:
        run = muster_process(*argv, server=server, stdout=out)
        run.communicate(timeout=20)
        out.seek(0)
        written = out.read()

    assert written == b"\xff\x00hello\r\n"
    query = server.asked("GET", "/v1/jobs/17/log")[0].query
    assert query == {"stream": ["stderr"], "task": ["3"], "tail": ["100"]}


@pytest.mark.parametrize(
    ("job", "options", "shown"),
    [
        (18, (), b"100%\xef\xbf\xbd[2J\xef\xbf\xbd]0;x\xef\xbf\xbd na\xc3\xafve"),
        (18, ("--raw",), b"100%\x1b[2J\x1b]0;x\x07 na\xc3\xafve"),
        (17, (), b"100%\x1b[2J\x1b]0;x\x07 na\xc3\xafve"),
    ],
)
def test_what_others_wrote_does_not_steer_a_terminal(
    server: CannedServer, job: int, options: tuple[str, ...], shown: bytes
) -> None:
    """Job 17 is the reader's own, 18 is not."""
    written = b"100%\x1b[2J\x1b]0;x\x07 na\xc3\xafve\n"
    server.answer("GET", f"/v1/jobs/{job}/log", Raw(content=written))
    mine, theirs = pty.openpty()

    run = muster_process("logs", str(job), *options, server=server, stdout=theirs)
    run.communicate(timeout=20)
    os.close(theirs)
    seen = os.read(mine, 4_096)
    os.close(mine)

    assert seen.strip() == shown


def test_events_may_be_followed_as_lines_of_json(muster: Caller, server: CannedServer) -> None:
    event = b'{"number":7,"kind":"job_ended","at":"2026-11-15T10:58:00Z",'
    data = b"data: " + event + b'"job":17,"text":"It ended.","fact":{}}\n\n'
    # The second time there is no more, so that the test ends.
    gone = Refusal(status=404, problem=Problem(kind="gone", text="No more."))
    streams = iter([Raw(content=data, media="text/event-stream"), gone])
    server.answer("GET", "/v1/events/stream", lambda _: next(streams))

    outcome = muster("events", "-f", "-o", "json", "--job", "17")

    assert json.loads(outcome.out)["number"] == 7
    assert outcome.code == 4


def test_status_with_a_problem_exits_with_one(muster: Caller, server: CannedServer) -> None:
    server.answer("GET", "/v1/status", replace(STATUS, problems=("the disk is nearly full",)))

    outcome = muster("status")

    assert outcome.code == 1
    assert outcome.err == "caution: the disk is nearly full\n"


def test_status_says_how_many_dates_held_in_each_queue_and_class(
    muster: Caller, server: CannedServer
) -> None:
    groups = tuple(
        DatesHeldDocument(queue=f"acme/{number}", job_class="normal", told=20 - number, held=9)
        for number in range(10)
    )
    server.answer("GET", "/v1/status", replace(STATUS, dates_told=155, dates_held=90, dates=groups))

    lines = muster("status").out.splitlines()

    assert any(
        line.split(":", 1)[1].strip() == "90 of 155 held in the last week"
        for line in lines
        if line.startswith("Dates:")
    )
    assert lines[-9:] == [
        *(f"  acme/{number}, normal: 9 of {20 - number}" for number in range(8)),
        "  2 more: muster status -o json",
    ]


def test_the_site_is_printed_as_it_is(muster: Caller, server: CannedServer) -> None:
    server.answer("GET", "/v1/site", Raw(content=b"queues:\n  acme: {}\n", media="text/yaml"))

    assert muster("site").out == "queues:\n  acme: {}\n"


def test_apply_sends_the_file_and_shows_what_changed(
    muster: Caller, server: CannedServer, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("queues:\n  acme: {}\n", encoding="utf-8")
    server.answer("GET", "/v1/site", Raw(content=b"queues:\n  old: {}\n", media="text/yaml"))

    outcome = muster("apply", "-f", str(path), "--diff", "--dry-run")

    assert "-  old: {}\n+  acme: {}\n" in outcome.out
    assert "~ queue acme/nlp limit 8 -> 16\n" in outcome.out
    assert server.asked("PUT", "/v1/site")[0].body == {
        "text": "queues:\n  acme: {}\n",
        "dry_run": True,
    }


def test_a_quota_is_rehearsed_as_it_would_be_set(muster: Caller, server: CannedServer) -> None:
    muster("whatif", "quota", "acme/nlp", "--limit", "16", "--model", "A100-40GB")
    muster("quota", "set", "acme/nlp", "--limit", "16", "--model", "A100-40GB")

    rehearsed = server.asked("POST", "/v1/rehearsals")[0].body["quota"]
    assert rehearsed == server.asked("POST", "/v1/quotas")[0].body
    assert rehearsed["limit"] == "16"


def test_a_configuration_is_rehearsed(muster: Caller, server: CannedServer, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("queues: {}\n", encoding="utf-8")

    muster("whatif", "apply", "-f", str(path))

    assert server.asked("POST", "/v1/rehearsals")[0].body["site"] == "queues: {}\n"


def test_a_submission_is_rehearsed_with_the_options_of_submit(
    muster: Caller, server: CannedServer
) -> None:
    told = muster("whatif", "submit", "--gpus", "8", "--queue", "acme/nlp")

    assert "What would help:\n  With 4 GPUs instead of 8 it would start now" in told.out
    submitted = server.asked("POST", "/v1/rehearsals")[0].body["submit"]
    assert submitted["gpus"] == 8
    assert submitted["queue"] == "acme/nlp"


def test_a_member_of_an_array_is_found_even_when_it_is_over(
    muster: Caller, server: CannedServer
) -> None:
    over = replace(RUNNING, id=12, state="completed", array=10, array_index=2)
    server.answer(
        "GET",
        "/v1/jobs",
        lambda asked: JobPage(jobs=(over,) if "ended" in asked.query else ()),
    )

    assert muster("show", "10_2", "-o", "name").out == "12\n"
