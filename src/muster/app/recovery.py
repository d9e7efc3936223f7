"""Jobs that run, and a database that does not know them: it was lost, or is older than they are."""

from collections.abc import Iterator
from pathlib import Path

from muster.backends.kept import KeptJob, attempts_kept, was_used
from muster.controller.world.record import Record
from muster.controller.world.transaction import Transaction, without_launch
from muster.model.event import JobEnded, JobEvent, JobPlaced, JobSubmitted, RequeueAsked
from muster.model.job import JobSpec, Requeued
from muster.model.site import Site
from muster.model.value import JobId, UserName, replace
from muster.settings import BadSettingsError

ITSELF = UserName("muster")
NAMED = 5

ADVICE = (
    "Nothing was changed, and jobs that run go on. Put a backup in its place with `muster restore "
    "FILE`, or begin with what is there and take these jobs over with `muster up --recover`"
)


class LostDatabaseError(BadSettingsError):
    """The administrator: put the database back, or take over what runs without it."""


def demand_known(home: Path, record: Record) -> None:
    """Refuse to lead with a database that does not know what runs: it would end it."""
    unknown = list(unknown_attempts(home, record))
    if unknown:
        names = listed(sorted({each.job for each in unknown}))
        text = f"the database does not know jobs that run from {home} ({names}): it was lost, or "
        raise LostDatabaseError(f"{text}is older than they are. {ADVICE}.")
    if record.version == 0 and was_used(home):
        raise LostDatabaseError(f"the database is empty, but {home} was in use. {ADVICE}.")


def listed(jobs: list[JobId]) -> str:
    """The first few of them."""
    return ", ".join(map(str, jobs[:NAMED])) + (", ..." if len(jobs) > NAMED else "")


def unknown_attempts(home: Path, record: Record) -> Iterator[KeptJob]:
    """Attempts that began after all that this database knows."""
    for kept in attempts_kept(home):
        job = record.jobs.get(kept.job)
        is_newer = kept.job >= record.next_job if job is None else False
        if is_newer or (job is not None and job.attempt < kept.allocation.attempt):
            yield kept


def take_over(home: Path, transaction: Transaction) -> None:
    """A command: what runs becomes known, as if it had been submitted and started here."""
    for kept in unknown_attempts(home, transaction.record):
        if transaction.job(kept.job) is None:
            spec = _at_home(kept.spec, transaction.site)
            event = JobSubmitted(at=kept.submitted_at, job=kept.job, spec=spec)
            transaction.apply(without_launch(event))
            transaction.keep_launch(kept.job, spec.launch)
            transaction.next_job = JobId(max(transaction.next_job, kept.job + 1))
        transaction.apply_all(_until_placed(kept, transaction))


def _at_home(spec: JobSpec, site: Site) -> JobSpec:
    """In a queue and a class that there are: the rules may have been lost as well."""
    queue = spec.queue if spec.queue in site.queues else site.default_queue
    known = spec.job_class in site.classes
    job_class = spec.job_class if known else min(site.classes, default=spec.job_class)
    return replace(spec, queue=queue, job_class=job_class)


def _until_placed(kept: KeptJob, transaction: Transaction) -> Iterator[JobEvent]:
    """The attempt, after those before it, of which nothing is left."""
    held, job = kept.allocation, transaction.job(kept.job)
    begun = 0 if job is None else job.attempt
    for number in range(begun + 1, held.attempt + 1):
        yield JobPlaced(
            at=held.placed_at,
            job=kept.job,
            attempt=number,
            cluster=held.cluster,
            placements=held.placements,
        )
        if number < held.attempt:
            yield RequeueAsked(at=held.placed_at, job=kept.job, by=ITSELF)
            why = Requeued(by=ITSELF)
            yield JobEnded(at=held.placed_at, job=kept.job, attempt=number, why=why)
