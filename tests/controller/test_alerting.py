"""Alerts through the real loop, in pretend time, to receivers that are really there or hang."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from controller.desk import SITE, Desk
from muster.backends.simulated.attempt import Behaviour
from muster.controller.alerting.board import MOST_SHOWN, AlertBoard, Standing
from muster.controller.alerting.delivery import Delivery, Message, NotDeliveredError
from muster.controller.alerting.job_news import JobNewsSource, Knowledge
from muster.controller.alerting.job_teller import JobTeller
from muster.controller.alerting.kept import RULES_KEY, rules_body
from muster.controller.alerting.loop import AlertLoop, shipped_rules
from muster.controller.alerting.outbox import MOST_WAITING, Outbox
from muster.controller.alerting.queries import AlertQueries
from muster.controller.alerting.use_cases import SilenceRequest, make_silence
from muster.controller.loop.controller import LastPlan
from muster.controller.messages import Caller
from muster.controller.watching.left_out import LeftOut
from muster.controller.world.record import Record
from muster.controller.world.transaction import Transaction
from muster.doors.rest.words import ended
from muster.model.alerting import Alerting, JobRoute, Receiver, ReceiverKind, Route
from muster.model.errors import ForbiddenError
from muster.model.job import Exited
from muster.model.kept_object import KeptObject
from muster.model.queue import Queue
from muster.model.site import Grant, Role, Site, User
from muster.model.value import Duration, Instant, QueuePath, UserName, replace
from muster.stores.base import LiveState
from muster.telemetry.alerting.bodies import MOST_TOLD
from muster.telemetry.alerting.judging import Alert, AlertState
from muster.telemetry.family import Family, FamilyKind, Point
from muster.telemetry.promql.labels import series_name

RESEND = Duration(15_000)


class Hook:
    """A receiver that keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, Any]] = []
        self.status = 200
        self.came = Event()
        hook = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                hook.bodies.append((self.path, json.loads(self.rfile.read(size))))
                self.send_response(hook.status)
                self.end_headers()
                hook.came.set()

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def test_a_hot_gpu_is_told_to_a_webhook_and_shown(tmp_path: Path, hook: Hook) -> None:
    loop, board = judged_by(receiver(tmp_path, ReceiverKind.WEBHOOK, f"{hook.url}/in"), hot)
    for second in range(0, 181, 15):
        loop.evaluate(Instant(second * 1_000), RESEND)

    assert hook.came.wait(30)
    loop.close()
    path, body = hook.bodies[0]
    assert (path, body["version"], body["status"]) == ("/in", "4", "firing")
    assert [each["labels"]["alertname"] for each in body["alerts"]] == ["GPUTemperatureTooHigh"]
    assert [each.name for each in board.standing.alerts] == ["GPUTemperatureTooHigh"]
    assert board.standing.problems == ()


def test_an_alertmanager_is_told_again_and_again(tmp_path: Path, hook: Hook) -> None:
    loop, _ = judged_by(receiver(tmp_path, ReceiverKind.ALERTMANAGER, hook.url), hot)
    for second in range(0, 241, 15):
        loop.evaluate(Instant(second * 1_000), RESEND)
        told = 0 if second < 180 else (second - 180) // 15 + 1
        wait_until(lambda told=told: len(hook.bodies) >= told)

    loop.close()
    assert {path for path, _ in hook.bodies} == {"/api/v2/alerts"}
    assert hook.bodies[0][1][0]["labels"]["severity"] == "critical"


@pytest.mark.parametrize("kind", [ReceiverKind.WEBHOOK, ReceiverKind.ALERTMANAGER])
def test_a_job_that_fails_is_told_as_it_fails(
    tmp_path: Path, hook: Hook, kind: ReceiverKind
) -> None:
    to = receiver(tmp_path, kind, hook.url)
    route = JobRoute(receivers=(to.name,))
    alerting = Alerting(receivers={to.name: to}, jobs=(route,), wait=Duration(0))
    desk = Desk(site=replace(SITE, alerts=alerting))
    knowledge = Knowledge(last_plan=LastPlan(), words=ended)
    news, outbox = JobNewsSource(desk.record, knowledge), Outbox(Delivery(None))
    teller = JobTeller(desk.record, news, outbox, lambda: desk.simulation.now, LeftOut())
    desk.simulation.journal.subscribers.add(teller.note)
    desk.simulation.journal.write(teller.begin).result()
    job = desk.submits()
    desk.will_go(job, Behaviour(work=Duration(1_000), end=Exited(code=3)))

    desk.lets_all_end()

    assert hook.came.wait(60)
    teller.close()
    outbox.close()
    (_, body), *_ = hook.bodies
    (alert,) = body["alerts"] if kind is ReceiverKind.WEBHOOK else body
    assert (alert["labels"]["alertname"], alert["labels"]["job"]) == ("JobFailed", str(job))
    assert alert["startsAt"] < alert["endsAt"]


def test_more_alerts_than_anybody_reads_are_told_in_bounds(tmp_path: Path, hook: Hook) -> None:
    to = receiver(tmp_path, ReceiverKind.WEBHOOK, f"{hook.url}/in")
    loop, board = judged_by(to, lambda _: busy(MOST_SHOWN + 500), rules=BUSY)

    for second in (0, 15, 30):
        loop.evaluate(Instant(second * 1_000), RESEND)

    assert hook.came.wait(60)
    loop.close()
    ((_, body),) = hook.bodies
    assert (len(body["alerts"]), body["truncatedAlerts"]) == (MOST_TOLD, MOST_SHOWN - 500)
    assert len(board.standing.alerts) == MOST_SHOWN
    assert board.standing.problems == (
        f"500 alerts more than the {MOST_SHOWN} that are shown; narrow down the rules",
    )


def test_what_waits_for_an_alertmanager_is_only_what_is_so_now() -> None:
    """It is told everything every time, so that a slow one need not be told of what was."""
    gate, told = Event(), list[str]()

    def deliver(_: Receiver, message: Message) -> None:
        gate.wait(60)
        told.append(message.text)

    outbox = Outbox(deliver)
    outbox.use([mail("slow")])
    for turn in range(5):
        outbox.replace("slow", [Message(receiver="slow", text=f"{turn}{part}") for part in "ab"])
    gate.set()
    wait_until(lambda: told[-2:] == ["4a", "4b"])

    assert len(told) <= 3
    outbox.close()


def test_what_happened_is_told_although_what_is_so_is_told_anew() -> None:
    gate, told = Event(), list[str]()

    def deliver(_: Receiver, message: Message) -> None:
        gate.wait()
        told.append(message.text)

    outbox = Outbox(deliver)
    outbox.use([mail("slow")])
    outbox.put(Message(receiver="slow", text="job 1 failed"))
    for turn in range(3):
        outbox.replace("slow", [Message(receiver="slow", text=str(turn))])
        outbox.put(Message(receiver="slow", text=f"job {turn + 2} failed"))
    gate.set()
    wait_until(lambda: told[-1:] == ["2"])

    assert [text for text in told if "failed" in text] == [f"job {n} failed" for n in (1, 2, 3, 4)]
    outbox.close()


def test_a_receiver_that_hangs_or_fails_stops_nobody() -> None:
    hangs, gate, told = Event(), Event(), list[str]()
    messages = MOST_WAITING + 10

    def deliver(to: Receiver, message: Message) -> None:
        if to.name == "hangs":
            hangs.set()
            gate.wait()
        elif to.name == "fails":
            raise NotDeliveredError("it answered with status 400", again=False)
        else:
            told.append(message.text)

    outbox = Outbox(deliver, pauses_s=(0.0,))
    outbox.use([mail("hangs"), mail("fails"), mail("works")])
    for number in range(messages):
        for name in ("hangs", "fails", "works"):
            outbox.put(Message(receiver=name, text=str(number)))
    assert hangs.wait(60)
    wait_until(lambda: done(outbox, "works") == messages)
    wait_until(lambda: done(outbox, "fails") == messages)

    counts = counted(outbox)
    gate.set()
    assert counts["hangs", "dropped"] in {9, 10}
    assert counts["hangs", "sent"] == 0
    assert counts["fails", "failed"] > 0
    assert counts["fails", "sent"] == 0
    assert counts["works", "sent"] == len(told) > 0
    assert told[-1] == str(messages - 1)
    assert "receiver fails: it answered with status 400" in outbox.problems()
    outbox.close()


def test_what_failed_is_tried_again_and_then_dropped() -> None:
    tries = list[str]()

    def deliver(_: Receiver, message: Message) -> None:
        tries.append(message.text)
        raise NotDeliveredError("it does not answer")

    outbox = Outbox(deliver, pauses_s=(0.0, 0.0))
    outbox.use([mail("a")])
    outbox.put(Message(receiver="a", text="x"))
    wait_until(lambda: counted(outbox)["a", "dropped"] == 1)
    outbox.close()

    assert tries == ["x", "x", "x"]


@pytest.mark.parametrize(
    ("kind", "url", "said"),
    [
        (ReceiverKind.WEBHOOK, "ftp://secret", "must be one line"),
        (ReceiverKind.SLACK, "http://127.0.0.1:1/secret", "does not answer"),
        (ReceiverKind.TEAMS, "http://[secret", "does not answer"),
    ],
)
def test_what_cannot_be_told_never_shows_its_url(
    tmp_path: Path, kind: ReceiverKind, url: str, said: str
) -> None:
    with pytest.raises(NotDeliveredError, match=said) as found:
        Delivery(None)(receiver(tmp_path, kind, url), Message(receiver="it", body={}))

    assert "secret" not in str(found.value)


def test_a_refusal_of_a_receiver_is_not_tried_again_but_a_busy_one_is(
    tmp_path: Path, hook: Hook
) -> None:
    to = receiver(tmp_path, ReceiverKind.SLACK, hook.url)
    for status, again in ((400, False), (429, True), (503, True), (302, False)):
        hook.status = status
        with pytest.raises(NotDeliveredError) as found:
            Delivery(None)(to, Message(receiver="it", body={}))
        assert found.value.again is again, status


def test_a_command_gets_the_json_of_a_webhook(tmp_path: Path) -> None:
    said = tmp_path / "said"
    to = Receiver(name="it", kind=ReceiverKind.COMMAND, command=("/bin/sh", "-c", f"cat > {said}"))

    Delivery(None)(to, Message(receiver="it", body={"version": "4"}))

    assert json.loads(said.read_text()) == {"version": "4"}


def test_a_command_that_fails_says_what_it_said() -> None:
    to = Receiver(
        name="it", kind=ReceiverKind.COMMAND, command=("/bin/sh", "-c", "echo no pager >&2; exit 3")
    )

    with pytest.raises(NotDeliveredError, match="ended with 3: no pager"):
        Delivery(None)(to, Message(receiver="it", body={}))


def test_rules_that_muster_ships_are_in_the_package() -> None:
    assert "GPUTemperatureTooHigh" in shipped_rules()


def judged_by(
    to: Receiver, families: Callable[[Instant], tuple[Family, ...]], rules: str = ""
) -> tuple[AlertLoop, AlertBoard]:
    alerting = Alerting(receivers={to.name: to}, routes=(Route(receivers=(to.name,)),))
    own = KeptObject(key=RULES_KEY, version=1, body=rules_body(rules))
    record = Record(LiveState(objects=(own,)), {}, Site(alerts=alerting))
    board = AlertBoard()
    return AlertLoop(record, families, board, Outbox(Delivery(None))), board


def hot(_: Instant) -> tuple[Family, ...]:
    point = Point((("gpu", "0"), ("UUID", "GPU-1"), ("Hostname", "n1")), 92)
    return (
        Family(name="dcgm_temperature_gpu", kind=FamilyKind.GAUGE, help="heat", points=(point,)),
    )


BUSY = """
groups:
- name: own
  rules:
  - alert: Busy
    expr: muster_jobs > 0
    annotations: {summary: "{{ $labels.state }}"}
"""


def busy(number: int) -> tuple[Family, ...]:
    points = tuple(Point((("state", f"s{each:05}"),), 1) for each in range(number))
    return (Family(name="muster_jobs", kind=FamilyKind.GAUGE, help="jobs", points=points),)


def receiver(folder: Path, kind: ReceiverKind, url: str) -> Receiver:
    file = folder / "url"
    file.write_text(url + "\n")
    return Receiver(name="it", kind=kind, url_file=str(file))


def mail(name: str) -> Receiver:
    return Receiver(name=name, kind=ReceiverKind.MAIL, to="ops")


def counted(outbox: Outbox) -> dict[tuple[str, str], float]:
    (family,) = outbox.families()
    return {
        (dict(point.labels)["receiver"], dict(point.labels)["outcome"]): point.value
        for point in family.points
    }


def done(outbox: Outbox, receiver: str) -> float:
    """Messages of which something has become."""
    counts = counted(outbox)
    return counts[receiver, "sent"] + counts[receiver, "dropped"]


def wait_until(is_so: Callable[[], bool], patience_s: float = 60.0) -> None:
    pause = Event()
    for _ in range(int(patience_s / 0.02)):
        if is_so():
            return
        pause.wait(0.02)
    pytest.fail("it did not come true")


def test_nobody_sees_or_silences_alerts_of_another_subtree() -> None:
    site = Site(
        everyone=Role.VIEWER,
        queues={QueuePath(name): Queue(path=QueuePath(name)) for name in ("acme", "other")},
        users={
            UserName("ada"): User(
                name=UserName("ada"),
                grants=(Grant(role=Role.QUEUE_ADMIN, queue=QueuePath("acme")),),
            ),
            UserName("root"): User(name=UserName("root"), grants=(Grant(role=Role.ADMIN),)),
        },
    )
    record = Record(LiveState(), {}, site)
    board = AlertBoard()
    names = [("inside", "acme/nlp"), ("beside", "acmes"), ("machine", "")]
    board.standing = Standing(
        alerts=tuple(alert(name, queue) for name, queue in names), problems=("a receiver fails",)
    )
    queries = AlertQueries(record, board, lambda: Instant(0))

    ada = queries.standing(Caller(user=UserName("ada"), door="rest"))
    root = queries.standing(Caller(user=UserName("root"), door="rest"))

    assert ([each.name for each in ada.alerts], ada.problems) == (["inside"], ())
    assert ([each.name for each in root.alerts], len(root.problems)) == (
        ["inside", "beside", "machine"],
        1,
    )
    transaction = Transaction(record, Instant(0), lambda _: {})
    caller = Caller(user=UserName("ada"), door="rest")
    wanted = SilenceRequest(
        tests=(), lasts=Duration(60_000), comment="why", queue=QueuePath("acme")
    )
    assert make_silence(caller, wanted, transaction).by == "ada"
    for queue in (QueuePath("other"), None):
        with pytest.raises(ForbiddenError):
            make_silence(caller, replace(wanted, queue=queue), transaction)


def alert(name: str, queue: str) -> Alert:
    return Alert(
        labels=series_name({"alertname": name, "queue": queue}),
        annotations=(),
        value=1,
        state=AlertState.FIRING,
        since=Instant(0),
    )
