"""Every route of the REST API as a method."""

import secrets
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from muster.api.alerts import AlertPage, SilenceAsked, SilenceDocument, SilencePage
from muster.api.diagnosis import EfficiencyDocument, FindingPage, FleetDocument, TimelineDocument
from muster.api.jobs import (
    ExplanationDocument,
    JobDocument,
    JobLine,
    JobPage,
    LinePage,
    ManyDocument,
    UpdateDocument,
)
from muster.api.pages import (
    ActionDocument,
    AuditPage,
    ClassPage,
    DrainDocument,
    EventPage,
    JobFilter,
    NodePage,
    QueuePage,
    RehearsalAsked,
    TokenPage,
    UserPage,
)
from muster.api.requests import JobFile, SubmitDocument, SubmittedDocument
from muster.api.site import (
    ClassDocument,
    EventDocument,
    KubernetesDocument,
    MeDocument,
    NodeDocument,
    QueueDocument,
    QuotaAsked,
    RehearsalDocument,
    SiteChange,
    SiteText,
    StatusDocument,
    TokenAsked,
    TokenDocument,
)
from muster.client.address import Address
from muster.client.errors import LostAnswerError
from muster.client.sending import here, sent
from muster.client.speech import Query, Speech, decoded, named
from muster.client.streams import Patience, followed, terminal, waited
from muster.client.submitting import SubmittedJob, Work, asked_for, with_keywords_of
from muster.client.wire import Stream
from muster.model.value import replace

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection


class Client:
    """A Muster to talk to: `Client()`, or `Client("https://host:port", token=...)`.

    Without an address it is the one that MUSTER_URL and MUSTER_TOKEN name, else the Muster of this
    machine, where you need no token.
    Raises ApiError when the server refuses, UnreachableError when it does not answer. Keeps one
    connection open; use one client in one thread, and close it, or use it in a `with`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        ca: str | None = None,
        door: str = "python",
    ) -> None:
        address = Address.found() if url is None else Address.of(url, token=token, ca=ca)
        self._speech = Speech(address, door=door)

    @classmethod
    def at(cls, address: Address, *, door: str = "python") -> Self:
        """The server at an address that is already known."""
        made = cls.__new__(cls)
        made._speech = Speech(address, door=door)
        return made

    @property
    def address(self) -> Address:
        """Where it asks."""
        return self._speech.address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._speech.close()

    def status(self) -> StatusDocument:
        """The installation at a glance."""
        return self._speech.get("/v1/status", StatusDocument)

    def me(self) -> MeDocument:
        """Who the server takes you for."""
        return self._speech.get("/v1/me", MeDocument)

    @with_keywords_of(JobFile)
    def submit(self, work: Work, asked: Mapping[str, Any]) -> SubmittedJob:
        """Submit a job. When this returns, the job is stored and cannot be lost.

        work: a command as a list of words; the text of a script (with a first line such as
        `#!/bin/bash`, else the shell runs it); or a job file that `read_job_file` has read.
        Keywords are the keys of a job file, such as `gpus=4`, `time="2h"`, `env={"A": "1"}`; they
        win over those of the file. The job runs in this folder and with this process's
        environment, unless `workdir` and `env_only` say otherwise.
        """
        document = sent(asked_for(work, asked), here())
        return SubmittedJob(self, self.submit_document(document))

    def submit_document(self, document: SubmitDocument) -> SubmittedDocument:
        """Submit a whole document of the REST API.

        Where the answer is lost it is sent again with the same key, so that it makes one job.
        """
        key = document.request_key or secrets.token_hex(12)
        keyed, patience = replace(document, request_key=key), Patience()
        with suppress(LostAnswerError):
            return self._speech.send("POST", "/v1/jobs", keyed, SubmittedDocument)
        while True:
            with patience:
                return self._speech.send("POST", "/v1/jobs", keyed, SubmittedDocument)

    def jobs(self, wanted: JobFilter | None = None) -> JobPage:
        """One page of jobs; live ones unless `ended` is asked for."""
        body = self._speech.get_bytes("/v1/jobs", _query(wanted or JobFilter()))
        return decoded(body, JobPage)

    def all_jobs(self, wanted: JobFilter | None = None) -> Iterator[JobDocument]:
        """All jobs that are wanted, page after page."""
        wanted = wanted or JobFilter()
        while True:
            page = self.jobs(wanted)
            yield from page.jobs
            if page.next is None:
                return
            wanted = replace(wanted, after=page.next)

    def all_lines(self, wanted: JobFilter | None = None) -> list[JobLine]:
        """All live jobs that are wanted, in short lines: the quickest way to list many."""
        wanted, lines = wanted or JobFilter(), list[JobLine]()
        while True:
            page = decoded(self._speech.get_bytes("/v1/jobs/lines", _query(wanted)), LinePage)
            lines.extend(page.lines)
            if page.next is None:
                return lines
            wanted = replace(wanted, after=page.next)

    def job(self, job: int) -> JobDocument:
        """One job, live or over, with its tasks and attempts."""
        return self._speech.get(f"/v1/jobs/{job}", JobDocument)

    def cancel(self, jobs: Sequence[int]) -> ManyDocument:
        """End these jobs."""
        return self.act("cancel", jobs)

    def hold(self, jobs: Sequence[int]) -> ManyDocument:
        """Keep these waiting jobs from starting."""
        return self.act("hold", jobs)

    def release(self, jobs: Sequence[int]) -> ManyDocument:
        """Let held jobs start again."""
        return self.act("release", jobs)

    def requeue(self, jobs: Sequence[int]) -> ManyDocument:
        """Send these jobs back to wait for another attempt."""
        return self.act("requeue", jobs)

    def suspend(self, jobs: Sequence[int]) -> ManyDocument:
        """Stop these jobs where they are; they keep their memory."""
        return self.act("suspend", jobs)

    def resume(self, jobs: Sequence[int]) -> ManyDocument:
        """Let suspended jobs go on."""
        return self.act("resume", jobs)

    def signal(self, jobs: Sequence[int], signal: str) -> ManyDocument:
        """Send a signal to the processes of these jobs."""
        return self.act("signal", jobs, signal=signal)

    def act(self, action: str, jobs: Sequence[int], *, signal: str | None = None) -> ManyDocument:
        """The same for many jobs; what could not be done comes with its reason."""
        asked = ActionDocument(action=action, ids=tuple(jobs), signal=signal)
        return self._speech.send("POST", "/v1/jobs/actions", asked, ManyDocument)

    def update(self, job: int, change: UpdateDocument) -> JobDocument:
        """Change what a job asks for."""
        return self._speech.send("PATCH", f"/v1/jobs/{job}", change, JobDocument)

    def explain(self, job: int) -> ExplanationDocument:
        """Why it waits, who is in its way, and what would help."""
        return self._speech.get(f"/v1/jobs/{job}/explanation", ExplanationDocument)

    def efficiency(self, job: int, attempt: int | None = None) -> EfficiencyDocument:
        """What it did with its GPUs, and why it is slow: its last attempt, or this one."""
        path = f"/v1/jobs/{job}/efficiency"
        return self._speech.get(path, EfficiencyDocument, attempt=attempt)

    def timeline(
        self, job: int, attempt: int | None = None, *, steps: int | None = None
    ) -> TimelineDocument:
        """What was measured of it, what happened to it and what it wrote last, on one axis."""
        path = f"/v1/jobs/{job}/timeline"
        return self._speech.get(path, TimelineDocument, attempt=attempt, steps=steps)

    def findings(
        self, *, queue: str | None = None, user: str | None = None, limit: int | None = None
    ) -> FindingPage:
        """What costs most of what runs now."""
        return self._speech.get("/v1/findings", FindingPage, queue=queue, user=user, limit=limit)

    def report(self, *, by: str | None = None, **which: str | int | bool | None) -> FleetDocument:
        """What became of every second of every GPU; by: columns, with commas between them.

        which: queue, user, since, limit; rehearse: with one change for each of the dearest rows,
        and what it would bring.
        """
        return self._speech.get("/v1/report", FleetDocument, by=by, **which)

    def log(
        self, job: int, *, stderr: bool = False, task: int = 0, offset: int = 0, tail: int = 0
    ) -> Stream:
        """What a job wrote so far, in parts; an offset below zero counts from the end.

        tail: only the last so many lines.
        """
        query: Query = {
            "stream": _stream(stderr=stderr),
            "task": task,
            "offset": offset or None,
            "tail": tail or None,
        }
        return self._speech.streamed(f"/v1/jobs/{job}/log", query)

    def follow_log(
        self, job: int, *, stderr: bool = False, task: int = 0, offset: int = 0, tail: int = 0
    ) -> Stream:
        """What a job writes, as it writes it, until it is over."""
        query: Query = {
            "stream": _stream(stderr=stderr),
            "task": task,
            "offset": offset or None,
            "tail": tail or None,
            "follow": True,
        }
        return self._speech.streamed(f"/v1/jobs/{job}/log", query)

    def attach(self, job: int) -> "ClientConnection":
        """Sit at the job's terminal: bytes go both ways."""
        return terminal(self._speech, f"/v1/jobs/{job}/terminal")

    def job_events(self, job: int, *, after: int = 0, limit: int = 1_000) -> EventPage:
        """What happened to a job, from the log."""
        return self._speech.get(f"/v1/jobs/{job}/events", EventPage, after=after, limit=limit)

    def event_page(self, *, after: int = 0, limit: int = 1_000) -> EventPage:
        """What happened, from the log, oldest first."""
        return self._speech.get("/v1/events", EventPage, after=after, limit=limit)

    def events(
        self,
        after: int | None = None,
        *,
        job: int | None = None,
        user: str | None = None,
        queue: str | None = None,
    ) -> Generator[EventDocument]:
        """What happens, for ever, each event once; from the log after a number, else from now on.

        Continues by itself where it was when the server restarts. Close it to leave.
        """
        query: Query = {"job": job, "user": user, "queue": queue}
        yield from followed(self._speech, after, query)

    def wait(self, job: int) -> JobDocument:
        """The job when it is over; returns at once if it is."""
        return waited(self._speech, lambda: self.job(job), job)

    def nodes(self) -> Iterator[NodeDocument]:
        """All nodes, page after page."""
        after: str | None = None
        while True:
            page = self._speech.get("/v1/nodes", NodePage, after=after)
            yield from page.nodes
            if page.next is None:
                return
            after = page.next

    def node(self, node: str) -> NodeDocument:
        """One node."""
        return self._speech.get(f"/v1/nodes/{named(node)}", NodeDocument)

    def drain(self, node: str, reason: str) -> NodeDocument:
        """Let a node take nothing new; what runs there goes on."""
        asked = DrainDocument(reason=reason)
        return self._speech.send("POST", f"/v1/nodes/{named(node)}/drain", asked, NodeDocument)

    def undrain(self, node: str) -> NodeDocument:
        """Let a node take work again."""
        return self._speech.send("POST", f"/v1/nodes/{named(node)}/resume", None, NodeDocument)

    def queues(self) -> tuple[QueueDocument, ...]:
        """All queues, with what they use, may use and borrow."""
        return self._speech.get("/v1/queues", QueuePage).queues

    def queue(self, path: str) -> QueueDocument:
        """One queue."""
        return self._speech.get(f"/v1/queues/{named(path)}", QueueDocument)

    def set_quota(self, asked: QuotaAsked) -> SiteChange:
        """Give a queue other numbers."""
        return self._speech.send("POST", "/v1/quotas", asked, SiteChange)

    def classes(self) -> tuple[ClassDocument, ...]:
        """All job classes."""
        return self._speech.get("/v1/classes", ClassPage).classes

    def users(self) -> UserPage:
        """All users who are listed by name, and the role of all others."""
        return self._speech.get("/v1/users", UserPage)

    def tokens(self) -> tuple[TokenDocument, ...]:
        """Your tokens, or all of them for administrators."""
        return self._speech.get("/v1/tokens", TokenPage).tokens

    def make_token(self, asked: TokenAsked) -> TokenDocument:
        """A new token; its secret is shown only this once."""
        return self._speech.send("POST", "/v1/tokens", asked, TokenDocument)

    def revoke_token(self, token: str) -> TokenDocument:
        """Make a key useless."""
        return self._speech.send("DELETE", f"/v1/tokens/{named(token)}", None, TokenDocument)

    def alerts(self) -> AlertPage:
        """What is wrong: alerts that wait for their time, that fire, and that are just over."""
        return self._speech.get("/v1/alerts", AlertPage)

    def silences(self) -> tuple[SilenceDocument, ...]:
        """Silences that have not ended."""
        return self._speech.get("/v1/silences", SilencePage).silences

    def make_silence(self, asked: SilenceAsked) -> SilenceDocument:
        """Have nobody told of some alerts for a while."""
        return self._speech.send("POST", "/v1/silences", asked, SilenceDocument)

    def end_silence(self, silence: str) -> SilenceDocument:
        """End a silence now."""
        return self._speech.send("DELETE", f"/v1/silences/{named(silence)}", None, SilenceDocument)

    def kubernetes_token(self) -> KubernetesDocument:
        """Where the Kubernetes API is, and a token for it that ends soon."""
        return self._speech.send("POST", "/v1/kubernetes/token", None, KubernetesDocument)

    def site(self) -> str:
        """The configuration, as YAML."""
        return self._speech.get_bytes("/v1/site", {}).decode()

    def apply(self, text: str, *, dry_run: bool = False) -> SiteChange:
        """Apply another configuration, or only see what would change."""
        return self._speech.send(
            "PUT", "/v1/site", SiteText(text=text, dry_run=dry_run), SiteChange
        )

    def rehearse(self, asked: RehearsalAsked) -> RehearsalDocument:
        """What would become of the jobs: the planner is asked, and nothing is done."""
        return self._speech.send("POST", "/v1/rehearsals", asked, RehearsalDocument)

    def audit(self, *, before: str | None = None, limit: int = 100) -> AuditPage:
        """Who changed what, newest first."""
        return self._speech.get("/v1/audit", AuditPage, before=before, limit=limit)


def _query(wanted: JobFilter) -> Query:
    return {
        "user": wanted.users,
        "queue": wanted.queues,
        "state": wanted.states,
        "node": wanted.nodes,
        "id": wanted.ids,
        "array": wanted.arrays,
        "name": wanted.name,
        "ended": wanted.ended,
        "ended_from": wanted.ended_from,
        "ended_to": wanted.ended_to,
        "limit": wanted.limit,
        "after": wanted.after,
    }


def _stream(*, stderr: bool) -> str:
    return "stderr" if stderr else "stdout"
