"""Mails about jobs, in the words and with the variables that Slurm's mail programs know. Pure.

Mail about jobs of every door looks the same: a mail program need not know the door.
"""

from muster.controller.mail.sender import Letter
from muster.controller.queries.diagnosis import Diagnosed
from muster.doors.diagnosis_words import at_length
from muster.doors.slurm.lists.jobs import LABEL, by_number
from muster.doors.slurm.words import times
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.states import State, ended_as, state_of
from muster.doors.slurm.words.users import group_of, uid_of
from muster.launch.patterns import Names, default_stdout, filled
from muster.lifecycle.notices import SHARES, ArrayResult, Notice, status_of
from muster.model.job import FINAL
from muster.model.launch import Launch
from muster.model.mail import Occasion
from muster.model.value import Duration

WORDS = {
    Occasion.INVALID_DEPEND: "Invalid dependency",
    Occasion.BEGIN: "Began",
    Occasion.END: "Ended",
    Occasion.FAIL: "Failed",
    Occasion.REQUEUE: "Requeued",
    Occasion.STAGE_OUT: "StageOut/Teardown",
    Occasion.TIME_LIMIT_50: "Reached 50% of time limit",
    Occasion.TIME_LIMIT_80: "Reached 80% of time limit",
    Occasion.TIME_LIMIT_90: "Reached 90% of time limit",
    Occasion.TIME_LIMIT: "Reached time limit",
    Occasion.MISSES_DEADLINE: "Expected to miss its deadline",
}

OVER = frozenset({Occasion.END, Occasion.FAIL})
TIMED = frozenset({*OVER, Occasion.REQUEUE, Occasion.TIME_LIMIT, *SHARES})
"""Mails that say how long the job ran."""
REPORTED = frozenset({*OVER, Occasion.TIME_LIMIT})
"""Mails that say what became of its GPUs."""


def letter(notice: Notice, launch: Launch | None, told: Diagnosed | None = None) -> Letter:
    """The mail; launch: what the job runs; told: what was found of it, where that is known."""
    job = notice.job
    text, messages = _ending(notice)
    when, time = ("", {}) if notice.is_of_array else _time(notice)
    return Letter(
        to=job.spec.mail.to or job.spec.user,
        subject=f"{_whose(notice)} Name={job.spec.name} {WORDS[notice.on]}{when}{text}",
        body=at_length(told) if told is not None and notice.on in REPORTED else "",
        env=_job(notice) | _place(notice) | _files(notice, launch) | time | messages,
    )


def _whose(notice: Notice) -> str:
    job, part = notice.job, notice.job.spec.array
    if part is None:
        return f"Slurm Job_id={job.id}"
    if notice.is_of_array:
        return f"Slurm Array Summary Job_id={part.array}_* ({part.array})"
    return f"Slurm Array Task Job_id={part.array}_{part.index} ({job.id})"


def _time(notice: Notice) -> tuple[str, dict[str, str]]:
    if notice.on is Occasion.BEGIN:
        text = times.long_text(Duration(max(0, notice.at - notice.job.submitted_at)))
        return f", Queued time {text}", {"SLURM_JOB_QUEUED_TIME": text}
    if notice.on in TIMED:
        text = times.long_text(notice.ran)
        return f", Run time {text}", {"SLURM_JOB_RUN_TIME": text}
    return "", {}


def _ending(notice: Notice) -> tuple[str, dict[str, str]]:
    if notice.on not in OVER:
        return "", {}
    # Slurm writes before it has ended a job, and so with nothing of how that obeyed.
    status = status_of(notice.job.why)
    code, signal = divmod(status, 256)
    messages = {
        "SLURM_JOB_DERIVED_EC": "0",
        "SLURM_JOB_EXIT_CODE": str(status),
        "SLURM_JOB_EXIT_CODE2": f"{code}:{signal}",
    }
    if notice.spread is not None:
        text, more = _spread(notice.spread, _state(notice))
        return text, messages | more
    text = f", {_state(notice)}" + ("" if signal else f", ExitCode {code}")
    return text, {**messages, "SLURM_JOB_EXIT_CODE_MAX": str(code)}


def _spread(spread: ArrayResult, state: str) -> tuple[str, dict[str, str]]:
    """How the parts of an array ended: by their exit codes, or by the highest signal."""
    (low, low_signal), (high, high_signal) = (
        divmod(each, 256) for each in (spread.least, spread.most)
    )
    again = ", with requeued tasks" if spread.requeued else ""
    if high_signal:
        text = f", Mixed, MaxSignal [{high_signal}]{again}"
        return text, {"SLURM_JOB_TERM_SIGNAL_MAX": str(high_signal)}
    if low_signal:
        return f", Mixed, MaxExitCode [{high}]{again}", {"SLURM_JOB_EXIT_CODE_MAX": str(high)}
    word = "Mixed" if low == 0 and high > 0 else state
    messages = {"SLURM_JOB_EXIT_CODE_MIN": str(low), "SLURM_JOB_EXIT_CODE_MAX": str(high)}
    return f", {word}, ExitCode [{low}-{high}]{again}", messages


def _state(notice: Notice) -> str:
    """Of the job when it happened, which may be over by now."""
    job = notice.job
    if notice.on in OVER and job.ended_for is not None:
        return ended_as(job.ended_for).name
    if job.state in FINAL and notice.on not in OVER:
        return State.RUNNING.name
    return state_of(job).name


def _job(notice: Notice) -> dict[str, str]:
    job, spec = notice.job, notice.job.spec
    group, gid = group_of(spec.user)
    number = str(spec.array.array if notice.is_of_array and spec.array else job.id)
    messages = {
        "SLURM_ARRAY_JOB_ID": str(spec.array.array) if spec.array else None,
        "SLURM_ARRAY_TASK_ID": str(spec.array.index) if spec.array else None,
        "SLURM_JOB_ACCOUNT": spec.queue,
        "SLURM_JOB_COMMENT": spec.labels.get(f"{LABEL}comment"),
        "SLURM_JOB_CONSTRAINTS": spec.labels.get(f"{LABEL}features"),
        "SLURM_JOB_GID": str(gid),
        "SLURM_JOB_GROUP": group,
        "SLURM_JOB_ID": number,
        "SLURM_JOBID": number,
        "SLURM_JOB_MAIL_TYPE": WORDS[notice.on],
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_RESERVATION": spec.reservation,
        "SLURM_JOB_RESTART_COUNT": str(max(0, job.attempt - 1)),
        "SLURM_JOB_STATE": _state(notice),
        "SLURM_JOB_UID": str(uid_of(spec.user)),
        "SLURM_JOB_USER": spec.user,
        "SLURM_WCKEY": spec.labels.get(f"{LABEL}wckey"),
    }
    return {name: value for name, value in messages.items() if value is not None}


def _place(notice: Notice) -> dict[str, str]:
    held = notice.held
    if held is None:
        pools = ",".join(notice.job.spec.pools)
        return {"SLURM_JOB_PARTITION": pools} if pools else {}
    nodes = sorted({placed.node for placed in held.placements}, key=by_number)
    return {
        "SLURM_CLUSTER_NAME": held.cluster,
        "SLURM_JOB_NODELIST": compressed(nodes),
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_JOB_PARTITION": held.placements[0].pool,
    }


def _files(notice: Notice, launch: Launch | None) -> dict[str, str]:
    """Where it runs and writes."""
    if launch is None or launch.workdir is None:
        return {}
    job, part, folder = notice.job, notice.job.spec.array, launch.workdir
    names = Names(
        job=job.id,
        job_name=job.spec.name,
        user=job.spec.user,
        node=_first_node(notice),
        array=None if part is None else part.array,
        index=None if part is None else part.index,
    )
    wanted = filled(launch.stdout or default_stdout(is_array=part is not None), names)
    return {
        "SLURM_JOB_STDOUT": wanted if wanted.startswith("/") else f"{folder}/{wanted}",
        "SLURM_JOB_WORK_DIR": folder,
    }


def _first_node(notice: Notice) -> str:
    held = notice.held
    return "" if held is None else held.placements[0].node
