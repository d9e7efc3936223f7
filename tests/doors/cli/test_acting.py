import pytest

from doors.cli.calling import Caller
from doors.cli.canned import CannedServer
from doors.cli.things import RUNNING
from muster.api.jobs import ManyDocument

ACTIONS = "/v1/jobs/actions"


@pytest.mark.parametrize(
    ("command", "done"),
    [
        ("cancel", "cancelled"),
        ("hold", "held"),
        ("release", "released"),
        ("suspend", "suspended"),
        ("resume", "resumed"),
        ("requeue", "requeued"),
    ],
)
def test_one_job_is_acted_upon(
    muster: Caller, server: CannedServer, command: str, done: str
) -> None:
    server.answer("POST", ACTIONS, ManyDocument(done=(17,)))

    outcome = muster(command, "17")

    assert (outcome.code, outcome.out) == (0, f"job 17 {done}\n")
    assert server.asked("POST", ACTIONS)[0].body == {
        "action": command,
        "ids": [17],
        "signal": None,
    }


def test_ranges_and_arrays_stand_for_many_jobs_and_each_is_named_once(
    muster: Caller, server: CannedServer
) -> None:
    server.answer("POST", ACTIONS, ManyDocument(done=(17, 18, 19, 21)))

    outcome = muster("cancel", "17-19", "18", "20_*")

    assert outcome.out == "4 jobs cancelled: 17, 18, 19, 20_3\n"
    assert server.asked("POST", ACTIONS)[0].body["ids"] == [17, 18, 19, 21]


def test_filters_choose_jobs(muster: Caller, server: CannedServer) -> None:
    server.answer("POST", ACTIONS, ManyDocument(done=(18,)))

    muster("cancel", "--user", "bob", "--state", "pending")

    assert server.asked("GET", "/v1/jobs")[0].query["user"] == ["bob"]
    assert server.asked("POST", ACTIONS)[0].body["ids"] == [18]


def test_filters_that_choose_nothing_change_nothing(muster: Caller, server: CannedServer) -> None:
    outcome = muster("cancel", "--user", "nobody")

    assert (outcome.code, outcome.err) == (0, "There are no such jobs.\n")
    assert server.asked("POST", ACTIONS) == []


def test_what_could_not_be_done_is_reported_and_exits_with_one(
    muster: Caller, server: CannedServer
) -> None:
    failed = {"18": "it is over", "19": "job 19 is not yours"}
    server.answer("POST", ACTIONS, ManyDocument(done=(17,), failed=failed))

    outcome = muster("cancel", "17", "18", "19")

    assert (outcome.code, outcome.out) == (1, "job 17 cancelled\n")
    assert outcome.err == "muster: job 18: it is over\nmuster: job 19 is not yours\n"


def test_cancel_may_send_a_signal_instead(muster: Caller, server: CannedServer) -> None:
    server.answer("POST", ACTIONS, ManyDocument(done=(17,)))

    outcome = muster("cancel", "--signal", "USR1", "17")

    assert outcome.out == "job 17 signalled\n"
    assert server.asked("POST", ACTIONS)[0].body["signal"] == "USR1"


def test_all_jobs_can_be_cancelled(muster: Caller, server: CannedServer) -> None:
    server.answer("POST", ACTIONS, ManyDocument(done=(17, 18)))

    outcome = muster("cancel", "--all")

    assert outcome.code == 0
    assert {17, 18} <= set(server.asked("POST", ACTIONS)[0].body["ids"])


@pytest.mark.parametrize(
    "argv",
    [
        ("cancel",),
        ("cancel", "--all", "17"),
        ("cancel", "--all", "--user", "bob"),
        ("cancel", "17", "--signal", "USR1", "--wait"),
        ("cancel", "17", "--user", "bob"),
        ("cancel", "seventeen"),
        ("cancel", "20-10"),
        ("show",),
        ("why",),
        ("wait",),
        ("resume",),
        ("explain", "17-18"),
        ("update", "17"),
        ("quota", "set", "acme"),
        ("history", "--state", "running"),
        ("history", "--since", "sometime"),
        ("attach", "17"),
        ("drain", "pretend1"),
        ("up", "--gpus", "4 of them"),
        ("up", "--tls-cert", "c.pem"),
        ("up", "--tls-cert", "c.pem", "--tls-key", "k.pem"),
        ("completion", "powershell"),
        ("ps", "-o", "xml"),
        ("submit", "--env", "=1", "--", "true"),
        ("nonsense",),
        ("apply", "-f", "/nonexistent/file"),
    ],
)
def test_wrong_usage_exits_with_two_and_asks_the_server_for_no_change(
    muster: Caller, server: CannedServer, argv: tuple[str, ...]
) -> None:
    outcome = muster(*argv)

    assert outcome.code == 2
    assert outcome.out == ""
    assert "Usage: muster" in outcome.err or "Error: " in outcome.err
    assert [each for each in server.requests if each.method != "GET"] == []


def test_resume_takes_jobs_and_nodes(muster: Caller, server: CannedServer) -> None:
    server.answer("POST", ACTIONS, ManyDocument(done=(17,)))

    outcome = muster("resume", "17", "pretend2")

    assert outcome.out == "node pretend2 takes work again\njob 17 resumed\n"


def test_drain_says_what_is_still_there(muster: Caller, server: CannedServer) -> None:
    outcome = muster("drain", "pretend1", "--reason", "new power supply")

    assert outcome.out == "node pretend1 drains; job 17 still there\n"
    asked = server.asked("POST", "/v1/nodes/pretend1/drain")[0]
    assert asked.body == {"reason": "new power supply"}


def test_update_sends_only_what_is_to_change(muster: Caller, server: CannedServer) -> None:
    server.answer("PATCH", "/v1/jobs/17", RUNNING)

    outcome = muster("update", "17", "--time", "4h", "--label", "a=b", "--mail-type", "end,fail")

    assert outcome.out == "job 17 updated\n"
    body = server.asked("PATCH", "/v1/jobs/17")[0].body
    assert {name: value for name, value in body.items() if value is not None} == {
        "time": "4h",
        "labels": {"a": "b"},
        "mail_on": ["end", "fail"],
    }


def test_tokens_are_made_and_revoked(muster: Caller, server: CannedServer) -> None:
    made = muster("tokens", "create", "--role", "viewer", "--lifetime", "7d")
    alone = muster("tokens", "create", "-o", "name")
    revoked = muster("tokens", "revoke", "3fa9")

    assert made.out == alone.out == "muster-secret\n"
    assert "is good until 2026-12-15 09:00:00" in made.err
    assert alone.err == ""
    assert server.asked("POST", "/v1/tokens")[0].body["role"] == "viewer"
    assert revoked.out == "key 3fa9 of alice revoked\n"


def test_a_job_of_an_array_that_there_is_not_exits_with_four(muster: Caller) -> None:
    outcome = muster("cancel", "99_1")

    assert outcome.code == 4
    assert "there is no job 99_1" in outcome.err


def test_a_job_that_there_is_not_exits_with_four_for_every_command(
    muster: Caller, server: CannedServer
) -> None:
    server.answer(
        "POST",
        "/v1/jobs/actions",
        ManyDocument(failed={"99": "there is no job 99, or it has ended"}),
    )

    assert muster("cancel", "99").code == 4
    assert muster("hold", "99").code == 4
