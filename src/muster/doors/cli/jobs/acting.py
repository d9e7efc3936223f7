"""The commands that do one thing to many jobs: cancel, hold, release, suspend, resume, requeue."""

from typing import Any

import click

from muster.doors.cli.complete import jobs_or_nodes
from muster.doors.cli.jobs.named import Chosen, is_job, job_numbers, labelled
from muster.doors.cli.options import example, filter_options, jobs_argument
from muster.doors.cli.screen.printing import complain, note, say
from muster.doors.cli.screen.text import counted, listed
from muster.doors.cli.surroundings import Call

DONE = {
    "cancel": "cancelled",
    "hold": "held",
    "release": "released",
    "suspend": "suspended",
    "resume": "resumed",
    "requeue": "requeued",
    "signal": "signalled",
}

REFUSED, NOT_FOUND = 1, 4
AT_ONCE = 10_000
NAMED = 12


@click.command(
    epilog=example(
        "muster cancel 17 18",
        "muster cancel 12_*",
        "muster cancel --user alice --state pending",
        "muster cancel --signal USR1 17",
        "muster cancel --all --wait",
    )
)
@jobs_argument
@filter_options
@click.option("--all", "every", is_flag=True, help="Every job that waits or runs.")
@click.option("-s", "--signal", help="Send this signal and let the jobs decide.")
@click.option("--wait", "waits", is_flag=True, help="Return when they are over.")
@click.pass_obj
def cancel(
    call: Call,
    jobs: tuple[str, ...],
    *,
    every: bool,
    signal: str | None,
    waits: bool,
    **chosen: Any,
) -> int:
    """End jobs: waiting ones at once, running ones with SIGTERM, and SIGKILL after their grace."""
    if every and (jobs or Chosen(**chosen) != Chosen()):
        raise click.UsageError("--all means every job: name none, and choose none.")
    if signal and waits:
        raise click.UsageError("--wait waits for an end: leave it out with --signal.")
    numbers = _every(call) if every else _meant(call, jobs, Chosen(**chosen))
    code = _act(call, "signal" if signal else "cancel", numbers, signal=signal)
    for each in numbers if waits else ():
        call.client.wait(each)
    return code


@click.command(epilog=example("muster hold 17", "muster hold --queue acme/nlp"))
@jobs_argument
@filter_options
@click.pass_obj
def hold(call: Call, jobs: tuple[str, ...], **chosen: Any) -> int:
    """Keep waiting jobs from starting until they are released."""
    return _act(call, "hold", _meant(call, jobs, Chosen(**chosen)))


@click.command(epilog=example("muster release 17", "muster release --user alice"))
@jobs_argument
@filter_options
@click.pass_obj
def release(call: Call, jobs: tuple[str, ...], **chosen: Any) -> int:
    """Let held jobs start when their turn comes."""
    return _act(call, "release", _meant(call, jobs, Chosen(**chosen)))


@click.command(epilog=example("muster suspend 17"))
@jobs_argument
@filter_options
@click.pass_obj
def suspend(call: Call, jobs: tuple[str, ...], **chosen: Any) -> int:
    """Stop running jobs in place; they keep their memory and go on after `muster resume`."""
    return _act(call, "suspend", _meant(call, jobs, Chosen(**chosen)))


@click.command(epilog=example("muster resume 17", "muster resume node3"))
@click.argument("things", metavar="JOB|NODE...", nargs=-1, shell_complete=jobs_or_nodes)
@click.pass_obj
def resume(call: Call, things: tuple[str, ...]) -> int:
    """Let suspended jobs go on, or drained nodes take work again.

    What is written like a job (`17`, `17-20`, `12_3`, `12_*`) is a job; everything else is a node.
    """
    if not things:
        raise click.UsageError("Name a job or a node.")
    for node in (thing for thing in things if not is_job(thing)):
        call.client.undrain(node)
        say(f"node {node} takes work again")
    numbers = job_numbers(call.client, filter(is_job, things))
    return _act(call, "resume", numbers) if numbers else 0


@click.command(epilog=example("muster requeue 17"))
@jobs_argument
@filter_options
@click.pass_obj
def requeue(call: Call, jobs: tuple[str, ...], **chosen: Any) -> int:
    """End the present attempt of running jobs and let them wait for their next one."""
    return _act(call, "requeue", _meant(call, jobs, Chosen(**chosen)))


def _meant(call: Call, jobs: tuple[str, ...], chosen: Chosen) -> tuple[int, ...]:
    """The jobs that are named, or those that the filters choose; both at once would be unclear."""
    filtered = chosen != Chosen()
    if bool(jobs) == filtered:
        raise click.UsageError("Name jobs, or choose them with --user, --queue, --state ...")
    return job_numbers(call.client, jobs) if jobs else _every(call, chosen)


def _every(call: Call, chosen: Chosen | None = None) -> tuple[int, ...]:
    """All that are not over, or those of them that are chosen."""
    return tuple(job.id for job in call.client.all_jobs((chosen or Chosen()).filter()))


def _act(call: Call, action: str, numbers: tuple[int, ...], *, signal: str | None = None) -> int:
    if not numbers:
        note("There are no such jobs.")
        return 0
    parts = [numbers[at : at + AT_ONCE] for at in range(0, len(numbers), AT_ONCE)]
    outcomes = [call.client.act(action, part, signal=signal) for part in parts]
    done = [job for outcome in outcomes for job in outcome.done]
    failed = {job: why for outcome in outcomes for job, why in outcome.failed.items()}
    labels = list(labelled(call.client, done[:NAMED]).values())
    if len(done) == 1:
        say(f"job {labels[0]} {DONE[action]}")
    elif done:
        more = f" and {len(done) - NAMED} more" if len(done) > NAMED else ""
        say(f"{counted(len(done), 'job')} {DONE[action]}: {listed(labels)}{more}")
    called = labelled(call.client, [int(job) for job in failed][:NAMED])
    for job, why in failed.items():
        label = called.get(int(job), job)
        complain(call, why if label in why else f"job {label}: {why}")
    if failed and not done and all("there is no job" in why for why in failed.values()):
        return NOT_FOUND
    return REFUSED if failed else 0
