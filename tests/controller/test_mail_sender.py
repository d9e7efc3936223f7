"""The thread that sends mail: nothing waits for it, and it sends while this process leads."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Lock
from time import monotonic, sleep

from controller.desk import Desk
from muster.controller.mail.notices import NoticeSource
from muster.controller.mail.program import NotSentError
from muster.controller.mail.sender import Letter, MailSender, Post
from muster.lifecycle.notices import Notice
from muster.model.launch import Launch
from muster.model.mail import Mail, Occasion

MAIL = Mail(on=(Occasion.BEGIN, Occasion.END))
PATIENCE_S = 10.0


def written(notice: Notice, launch: Launch | None) -> Letter:
    argv = launch.argv if launch is not None else ()
    return Letter(to="ann", subject=f"{notice.job.id} {notice.on.value} {' '.join(argv)}")


class Sent:
    """Letters that were sent; `gate` holds them up, `fails` has the next one fail."""

    def __init__(self) -> None:
        self.gate = Event()
        self.gate.set()
        self.fails = Event()
        self._lock = Lock()
        self._subjects: list[str] = []

    def send(self, letter: Letter) -> None:
        assert self.gate.wait(PATIENCE_S)
        if self.fails.is_set():
            self.fails.clear()
            raise NotSentError("no such mailbox")
        with self._lock:
            self._subjects.append(letter.subject)

    def subjects(self) -> list[str]:
        with self._lock:
            return list(self._subjects)


@contextmanager
def mailing(desk: Desk, sent: Sent) -> Generator[MailSender]:
    journal = desk.simulation.journal
    news = NoticeSource(desk.record, journal.store)
    post = Post(written=written, send=sent.send)
    made = MailSender(news, journal.store, lambda: desk.simulation.now, post)
    leave = journal.subscribers.add(made.note)
    try:
        yield made
    finally:
        sent.gate.set()
        leave()
        made.close()


def until(is_so: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not is_so():
        assert monotonic() < deadline
        sleep(0.001)


def test_who_leads_sends_mail_and_nobody_waits_for_it() -> None:
    desk, sent = Desk(), Sent()
    with mailing(desk, sent) as post:
        desk.simulation.journal.write(post.begin).result()
        sent.gate.clear()
        job = desk.submits(mail=MAIL)

        desk.lets_all_end()

        assert desk.state(job) == "completed"
        assert sent.subjects() == []
        sent.gate.set()
        until(lambda: sent.subjects() == [f"{job} begin true", f"{job} end true"])


def test_who_does_not_lead_sends_nothing() -> None:
    desk, sent = Desk(), Sent()
    with mailing(desk, sent) as post:
        desk.submits(mail=MAIL)
        desk.lets_all_end()
        desk.simulation.journal.write(post.begin).result()
        job = desk.submits(mail=MAIL)
        desk.lets_pass(1)
        post.rest()
        desk.lets_all_end()

    assert sent.subjects() == [f"{job} begin true"]


def test_a_mail_that_cannot_be_sent_holds_up_no_other() -> None:
    desk, sent = Desk(), Sent()
    with mailing(desk, sent) as post:
        desk.simulation.journal.write(post.begin).result()
        sent.fails.set()
        job = desk.submits(mail=MAIL)
        desk.lets_all_end()

        until(lambda: sent.subjects() == [f"{job} end true"])


def test_what_waits_at_the_end_is_still_sent() -> None:
    desk, sent = Desk(), Sent()
    with mailing(desk, sent) as post:
        desk.simulation.journal.write(post.begin).result()
        sent.gate.clear()
        job = desk.submits(mail=MAIL)
        desk.lets_all_end()

    assert sent.subjects() == [f"{job} begin true", f"{job} end true"]
