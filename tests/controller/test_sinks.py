"""Sinks that are well, hang, are slow, or refuse; what jobs write; and who is sent what."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from controller.desk import LAB, SITE, Desk
from controller.gatherer import Gatherer, gatherer
from muster.backends.base import OutputQuery
from muster.controller.sending.channel import Channel
from muster.controller.sending.queue import MOST_BYTES, MOST_LINES
from muster.controller.sending.sending import Sending
from muster.controller.sending.tail import MOST_BEHIND, Held, Tail
from muster.controller.world.transaction import Transaction
from muster.model.errors import UnknownError
from muster.model.job import Job
from muster.model.launch import Launch
from muster.model.queue import Queue
from muster.model.running import Output
from muster.model.sinks import Sent, Sink, SinkKind
from muster.model.site import TelemetryRules
from muster.model.value import ClusterName, Instant, JobId, QueuePath, replace
from muster.telemetry.family import Family, FamilyKind, Point
from muster.telemetry.sinks.lines import Line, LineKind
from muster.telemetry.sinks.otlp import Origin

AT = 1_800_000_000_000_000_000
ORIGIN = Origin(node="n1", version="1", began=Instant(0))
PRIVATE = QueuePath("secret")


def families(queue: QueuePath | None) -> Iterable[Family]:
    labels = (("queue", queue or "all"),)
    yield Family(name="muster_jobs", kind=FamilyKind.GAUGE, help="", points=(Point(labels, 2),))


def own(number: int, text: str = "") -> Line:
    return Line(at_ns=AT + number, text=text or f"line {number}", kind=LineKind.CONTROLLER)


def sink(
    server: Gatherer,
    *sends: Sent,
    kind: SinkKind = SinkKind.LOKI,
    queue: str | None = None,
    headers: str = "",
) -> Sink:
    return Sink(
        name="s",
        kind=kind,
        url=server.url,
        sends=sends or (Sent.LOG,),
        queue=None if queue is None else QueuePath(queue),
        headers_file=headers,
    )


@contextmanager
def channel(into: Sink, *, pauses_s: tuple[float, ...] = (0.01, 0.01)) -> Generator[Channel]:
    made = Channel(into, families, ORIGIN, pauses_s=pauses_s, gathering_s=0.01)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("kind", [SinkKind.LOKI, SinkKind.OTLP])
def test_lines_come_in_their_order(kind: SinkKind) -> None:
    with gatherer() as server, channel(sink(server, kind=kind)) as into:
        into.put([own(n) for n in range(1_000)])

        lines = server.awaits(1_000)

    assert [text for _, text, _ in lines] == [f"line {n}" for n in range(1_000)]
    assert (into.lines["sent"], into.lines["dropped"], into.problem) == (1_000, 0, "")


def test_a_sink_that_hangs_holds_nobody_up_and_what_is_lost_is_counted() -> None:
    with gatherer() as server:
        server.hangs = Event()
        with channel(sink(server)) as into:
            into.put([own(0)])
            into.put(own(n) for n in range(1, 3 * MOST_LINES))
            lost = into.lines["dropped"]
            server.hangs.set()
            lines = server.awaits(3 * MOST_LINES - lost)

    # One batch may have been on its way already.
    assert MOST_LINES < lost <= 2 * MOST_LINES
    # The newest say how things are.
    assert lines[-1][1] == f"line {3 * MOST_LINES - 1}"


def test_large_lines_do_not_fill_the_memory() -> None:
    with gatherer() as server:
        server.hangs = Event()
        with channel(sink(server)) as into:
            into.put(own(n, "x" * 60_000) for n in range(1_000))
            kept = 1_000 - into.lines["dropped"]
            server.hangs.set()

    assert kept * 60_000 < MOST_BYTES + 2 * 1_048_576


def test_a_busy_sink_is_given_the_time_that_it_asks_for() -> None:
    with gatherer() as server:
        server.answers = [(429, {"Retry-After": "0"}), (503, {}), (204, {})]
        # Without what it says, the first pause would last for ever.
        with channel(sink(server), pauses_s=(9_999.0, 0.01)) as into:
            into.put([own(1)])
            server.awaits(1)

    assert (into.lines["sent"], into.lines["failed"], into.lines["dropped"]) == (1, 2, 0)


def test_a_sink_that_refuses_is_not_asked_the_same_again() -> None:
    with gatherer() as server:
        server.answers = [(400, {}), (204, {})]
        with channel(sink(server)) as into:
            into.put([own(1)])
            server.awaits_requests(1)
            into.put([own(2)])
            lines = server.awaits(1)

    assert [text for _, text, _ in lines] == ["line 2"]
    assert (into.lines["sent"], into.lines["dropped"]) == (1, 1)


def test_after_the_last_try_lines_are_lost() -> None:
    with gatherer() as server:
        server.answers = [(500, {}), (500, {}), (500, {}), (204, {})]
        with channel(sink(server)) as into:
            into.put([own(1)])
            server.awaits_requests(3)
            into.put([own(2)])
            server.awaits(1)

    assert (into.lines["sent"], into.lines["failed"], into.lines["dropped"]) == (1, 3, 1)


def test_nobody_there_is_a_problem_that_does_not_show_secrets(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer very-secret\nX-Scope-OrgID: lab\n", encoding="utf-8")
    with gatherer() as server, channel(sink(server, headers=str(headers))) as into:
        server.answers = [(401, {})]
        into.put([own(1)])
        server.awaits_requests(1)

    assert server.headers[0]["Authorization"] == "Bearer very-secret"
    assert server.headers[0]["X-Scope-OrgID"] == "lab"
    assert into.problem == "it answered with status 401"


def test_headers_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.write_text("no header\n", encoding="utf-8")
    with gatherer() as server, channel(sink(server, headers=str(headers))) as into:
        into.put([own(1)])

    assert "must have lines such as" in into.problem
    assert "no header" not in into.problem
    assert server.requests == 0


def test_metrics_are_sent_by_otlp() -> None:
    into = gatherer()
    with into as server, channel(sink(server, Sent.METRICS, kind=SinkKind.OTLP, queue="a")) as it:
        it.tell_metrics(Instant(1_800_000_000_000))
        (found,) = server.awaits_metrics()

    assert found["name"] == "muster_jobs"
    (point,) = found["gauge"]["dataPoints"]
    assert point["attributes"] == [{"key": "queue", "value": {"stringValue": "a"}}]


class Files:
    """What jobs wrote, by job and stream."""

    def __init__(self) -> None:
        self.files: dict[tuple[JobId, bool], bytes] = {}
        self.keeps_files = True

    def __call__(self, cluster: ClusterName, query: OutputQuery) -> Output:
        assert cluster == LAB
        key = (query.job.id, query.stderr)
        if key not in self.files:
            raise UnknownError("nothing is written")
        content = self.files[key]
        offset = max(0, len(content) + query.offset) if query.offset < 0 else query.offset
        part = content[offset : offset + query.limit]
        where = f"/out/{query.job.id}.{query.stderr}" if self.keeps_files else None
        return Output(content=part, next=offset + len(part), where=where)


def held(desk: Desk, *jobs: JobId) -> dict[JobId, Held]:
    return {
        job: Held(job=desk.record.jobs[job], allocation=desk.record.allocations[job])
        for job in jobs
    }


def launch_of(_: Job) -> Launch:
    return Launch(stderr="err")


def running(desk: Desk, **fields: object) -> JobId:
    job = desk.submits("ada", lasts=600, **fields)
    desk.lets_pass(10)
    return job


def test_what_a_job_writes_is_followed_line_by_line() -> None:
    desk, files = Desk(), Files()
    job = running(desk, queue="a/b")
    tail = Tail(files, launch_of)
    files.files[job, False] = b"one\ntw"
    first = list(tail.turn(held(desk, job), (), AT))
    files.files[job, False] += b"o\n 10%\r 20%\r\n"
    files.files[job, True] = b"oh\nthe end"
    second = list(tail.turn(held(desk, job), (), AT))
    last = list(tail.turn({}, (), AT))

    assert [each.text for each in first] == ["one"]
    assert [each.text for each in second] == ["two", " 20%", "oh"]
    assert [each.text for each in last] == ["the end"]
    assert (first[0].queue, first[0].cluster, first[0].kind) == ("a/b", LAB, LineKind.JOB)
    assert {"job": str(job), "user": "ada", "stream": "stderr"}.items() <= dict(
        second[-1].fields
    ).items()
    assert tail.offsets == {}


def test_a_job_that_ends_between_two_looks_is_read_all_the_same() -> None:
    desk, files = Desk(), Files()
    job = running(desk)
    files.files[job, False] = b"so soon"
    tail = Tail(files, launch_of)
    ended = held(desk, job).values()

    assert [each.text for each in tail.turn({}, ended, AT)] == ["so soon"]
    assert list(tail.turn({}, (), AT)) == []


def test_a_new_process_goes_on_where_the_last_one_was() -> None:
    desk, files = Desk(), Files()
    job = running(desk)
    files.files[job, False] = b"one\n"
    before = Tail(files, launch_of)
    list(before.turn(held(desk, job), (), AT))
    files.files[job, False] += b"two\n"

    after = Tail(files, launch_of)
    after.begin(before.offsets)

    assert [each.text for each in after.turn(held(desk, job), (), AT)] == ["two"]


def test_a_new_attempt_that_begins_its_file_again_is_read_from_its_beginning() -> None:
    desk, files = Desk(), Files()
    job = running(desk)
    tail = Tail(files, launch_of)
    files.files[job, False] = b"first attempt\n"
    list(tail.turn(held(desk, job), (), AT))
    again = {
        job: replace(each, allocation=replace(each.allocation, attempt=2))
        for job, each in held(desk, job).items()
    }
    files.files[job, False] = b"second\n"

    assert [each.text for each in tail.turn(again, (), AT)] == ["second"]


def test_whoever_writes_faster_than_can_be_read_is_passed_over() -> None:
    desk, files = Desk(), Files()
    job = running(desk)
    tail = Tail(files, launch_of)
    files.files[job, False] = b"x" * 99 + b"\n" + b"y\n" * MOST_BEHIND
    list(tail.turn(held(desk, job), (), AT))
    skipped = tail.skipped_bytes
    files.files[job, False] += b"now\n"

    assert [each.text for each in tail.turn(held(desk, job), (), AT)] == ["now"]
    assert MOST_BEHIND < skipped < 2 * MOST_BEHIND


def test_clusters_that_keep_no_files_are_not_asked_again() -> None:
    desk, files = Desk(), Files()
    files.keeps_files = False
    job = running(desk)
    files.files[job, False] = files.files[job, True] = b"one\n"
    tail = Tail(files, launch_of)

    assert list(tail.turn(held(desk, job), (), AT)) == []
    files.files.clear()
    assert list(tail.turn(held(desk, job), (), AT)) == []


def site_with(*sinks: Sink) -> TelemetryRules:
    return TelemetryRules(sinks={each.name: each for each in sinks})


def test_private_queues_and_other_subtrees_are_not_sent_to_who_may_not_see_them(
    tmp_path: Path,
) -> None:
    queues = {**SITE.queues, PRIVATE: Queue(path=PRIVATE, private=True)}
    with gatherer() as everybody, gatherer() as of_a, gatherer() as of_secret:
        sinks = (
            Sink(name="all", kind=SinkKind.LOKI, url=everybody.url, sends=(Sent.LOG, Sent.OUTPUT)),
            Sink(
                name="a",
                kind=SinkKind.OTLP,
                url=of_a.url,
                sends=(Sent.OUTPUT,),
                queue=QueuePath("a"),
            ),
            Sink(
                name="own",
                kind=SinkKind.LOKI,
                url=of_secret.url,
                sends=(Sent.OUTPUT,),
                queue=PRIVATE,
            ),
        )
        desk = Desk(site=replace(SITE, queues=queues, telemetry=site_with(*sinks)))
        files = Files()
        jobs = {queue: running(desk, queue=queue) for queue in ("default", "a/b", "secret")}
        for queue, job in jobs.items():
            files.files[job, False] = f"of {queue}\n".encode()
        sending = Sending(
            desk.record,
            Tail(files, launch_of),
            lambda each: Channel(each, families, ORIGIN, gathering_s=0.01),
            tmp_path / "sent.json",
        )
        sending.begin(Transaction(desk.record, desk.simulation.now, lambda _: {}))
        sending.turn(AT)
        sending.write(own(1, "started"))
        told = everybody.awaits(3), of_a.awaits(1), of_secret.awaits(1)
        sending.close()

    assert [sorted(text for _, text, _ in lines) for lines in told] == [
        ["of a/b", "of default", "started"],
        ["of a/b"],
        ["of secret"],
    ]


def test_rules_are_followed_and_problems_are_said(tmp_path: Path) -> None:
    desk = Desk()
    sending = Sending(
        desk.record,
        Tail(Files(), launch_of),
        lambda each: Channel(each, families, ORIGIN, pauses_s=(), gathering_s=0.01),
        tmp_path / "sent.json",
    )
    with gatherer() as server:
        server.answers = [(403, {})]
        desk.record.site = replace(SITE, telemetry=site_with(sink(server)))
        sending.follow_rules()
        sending.write(own(1))
        server.awaits_requests(1)
        desk.record.site = SITE
        kept = sending
        problems = _awaited(kept)
        sending.follow_rules()

    assert problems == ("sink s: it answered with status 403; 1 log lines were lost",)
    assert sending.problems() == ()
    sending.close()


def _awaited(sending: Sending) -> tuple[str, ...]:
    """The problems, once the channel has tried."""
    while not (found := sending.problems()) or "; 0 log" in found[0]:
        Event().wait(0.01)
    return found
