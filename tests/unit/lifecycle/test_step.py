import pytest

from muster.lifecycle.step import step, submitted
from muster.model.errors import ImpossibleMoveError
from muster.model.event import JobEvent, JobSubmitted
from muster.model.job import (
    Cancelled,
    DeadlinePassed,
    EndReason,
    Exited,
    HeldBy,
    JobState,
    LaunchFailed,
    NodeFailed,
    OutOfMemory,
    Preempted,
    Requeued,
    Signaled,
    TimedOut,
)
from muster.model.queue import PreemptMode
from muster.model.value import Duration, Instant, NodeId, replace
from unit.lifecycle.given import (
    ANN,
    BOB,
    CLAIM,
    JOB,
    NOW,
    OTHER,
    cancel_asked,
    checkpointed,
    claim_dropped,
    claimed,
    ended,
    held,
    job,
    placed,
    preempted,
    released,
    requeue_asked,
    requeued,
    resized,
    resumed,
    spec,
    started,
    suspended,
    updated,
)

OK = Exited(code=0)
BAD = Exited(code=1)
KILLED = Signaled(signal=9)
LOST = NodeFailed(node=NodeId("n1"))
NO_MEMORY = OutOfMemory(node=NodeId("n1"))
TIME_UP = TimedOut(limit=Duration(1))
TOO_LATE = DeadlinePassed(deadline=NOW)
BY_OTHER = Preempted(by=OTHER)
BY_ANN = Cancelled(by=ANN)
SENT_BACK = Requeued(by=ANN)
RUNNING = (placed(), started())

MOVES: dict[str, tuple[tuple[JobEvent, ...], JobState]] = {
    "a hold keeps it waiting": ((held(),), JobState.HELD),
    "a release lets it wait its turn": ((held(), released()), JobState.PENDING),
    "placing starts it": ((placed(),), JobState.STARTING),
    "the backend says it runs": (RUNNING, JobState.RUNNING),
    "a checkpoint moves nothing": ((*RUNNING, checkpointed()), JobState.RUNNING),
    "more room moves nothing": ((*RUNNING, resized()), JobState.RUNNING),
    "a user suspends it": ((*RUNNING, suspended()), JobState.SUSPENDED),
    "a short one is suspended before it was seen": ((placed(), suspended()), JobState.SUSPENDED),
    "it goes on": ((*RUNNING, suspended(), resumed()), JobState.RUNNING),
    "preemption stops it": ((*RUNNING, preempted()), JobState.STOPPING),
    "preemption stops it before it ran": ((placed(), preempted()), JobState.STOPPING),
    "a late start does not undo stopping": ((placed(), preempted(), started()), JobState.STOPPING),
    "a clean exit completes": ((*RUNNING, ended(OK)), JobState.COMPLETED),
    "one that was never seen to run completes too": ((placed(), ended(OK)), JobState.COMPLETED),
    "a bad exit fails": ((*RUNNING, ended(BAD)), JobState.FAILED),
    "a signal that Muster did not send fails": ((*RUNNING, ended(KILLED)), JobState.FAILED),
    "too little memory fails": ((*RUNNING, ended(NO_MEMORY)), JobState.FAILED),
    "its time is over": ((*RUNNING, ended(TIME_UP)), JobState.FAILED),
    "it could not be launched": ((placed(), ended(LaunchFailed(text=""))), JobState.FAILED),
    "a lost node puts it back": ((*RUNNING, ended(LOST)), JobState.PENDING),
    "a lost node under a suspended one too": (
        (*RUNNING, suspended(), ended(LOST)),
        JobState.PENDING,
    ),
    "somebody else's preemption puts it back": ((*RUNNING, ended(BY_OTHER)), JobState.PENDING),
    "it was cancelled behind our back": ((*RUNNING, ended(BY_ANN)), JobState.CANCELLED),
    "the backend put it back": ((*RUNNING, requeued()), JobState.PENDING),
    "its deadline passed while it waited": ((ended(TOO_LATE, 0),), JobState.FAILED),
    "its deadline passed while it was held": ((held(), ended(TOO_LATE, 0)), JobState.FAILED),
    "sent back while it started": ((placed(), requeue_asked()), JobState.STOPPING),
    "sent back while it ran": ((*RUNNING, requeue_asked()), JobState.STOPPING),
    "sent back while suspended": ((*RUNNING, suspended(), requeue_asked()), JobState.STOPPING),
    "sent back and held, it waits until it is released": (
        (*RUNNING, requeue_asked(ANN), held(), ended(KILLED)),
        JobState.HELD,
    ),
    "somebody sent it back behind our back": ((*RUNNING, ended(SENT_BACK)), JobState.PENDING),
    "a late start does not undo being sent back": (
        (placed(), requeue_asked(), started()),
        JobState.STOPPING,
    ),
    "a suspension does not park one that is sent back": (
        (*RUNNING, requeue_asked(), suspended()),
        JobState.STOPPING,
    ),
    "an update moves nothing": ((*RUNNING, updated(name="other")), JobState.RUNNING),
    "cancelled while it waited": ((cancel_asked(),), JobState.CANCELLED),
    "cancelled while it was held": ((held(), cancel_asked()), JobState.CANCELLED),
    "cancelled while it started": ((placed(), cancel_asked()), JobState.STOPPING),
    "cancelled while it ran": ((*RUNNING, cancel_asked()), JobState.STOPPING),
    "cancelled while suspended": ((*RUNNING, suspended(), cancel_asked()), JobState.STOPPING),
}


@pytest.mark.parametrize(("events", "state"), MOVES.values(), ids=MOVES)
def test_the_moves_of_a_job(events: tuple[JobEvent, ...], state: JobState) -> None:
    assert job(after=events).state is state


REQUEUE, CHECKPOINT = PreemptMode.REQUEUE, PreemptMode.CHECKPOINT
SUSPEND, CANCEL = PreemptMode.SUSPEND, PreemptMode.CANCEL


@pytest.mark.parametrize(
    ("mode", "why", "state"),
    [
        (REQUEUE, BY_OTHER, JobState.PENDING),
        (REQUEUE, KILLED, JobState.PENDING),
        (REQUEUE, BAD, JobState.PENDING),
        (REQUEUE, NO_MEMORY, JobState.PENDING),
        (REQUEUE, LOST, JobState.PENDING),
        (REQUEUE, OK, JobState.COMPLETED),
        (REQUEUE, TIME_UP, JobState.FAILED),
        (REQUEUE, TOO_LATE, JobState.FAILED),
        (REQUEUE, BY_ANN, JobState.CANCELLED),
        (CHECKPOINT, BY_OTHER, JobState.PENDING),
        (CHECKPOINT, OK, JobState.COMPLETED),
        (SUSPEND, KILLED, JobState.PENDING),
        (CANCEL, BY_OTHER, JobState.CANCELLED),
        (CANCEL, KILLED, JobState.CANCELLED),
        (CANCEL, OK, JobState.COMPLETED),
    ],
)
def test_how_a_preempted_attempt_ends(mode: PreemptMode, why: EndReason, state: JobState) -> None:
    after = job(after=(*RUNNING, preempted(mode), ended(why)))

    assert after.state is state
    assert after.failures == 0


@pytest.mark.parametrize(
    ("why", "state"),
    [
        (SENT_BACK, JobState.PENDING),
        (KILLED, JobState.PENDING),
        (BAD, JobState.PENDING),
        (NO_MEMORY, JobState.PENDING),
        (LOST, JobState.PENDING),
        (OK, JobState.COMPLETED),
        (TIME_UP, JobState.FAILED),
        (TOO_LATE, JobState.FAILED),
        (BY_ANN, JobState.CANCELLED),
    ],
)
@pytest.mark.parametrize("requeue", [True, False])
def test_how_an_attempt_ends_that_somebody_sent_back(
    why: EndReason, state: JobState, requeue: bool
) -> None:
    after = job(requeue=requeue, after=(*RUNNING, requeue_asked(), ended(why)))

    assert after.state is state
    assert (after.failures, after.not_before) == (0, None)


def test_a_job_that_was_sent_back_starts_again_and_says_so_while_it_waits() -> None:
    waiting = job(after=(*RUNNING, requeue_asked(), ended(KILLED)))
    again = step(step(waiting, placed(2)), started(2))

    assert waiting.why == SENT_BACK
    assert (again.state, again.attempt, again.why) == (JobState.RUNNING, 2, None)


def test_a_backend_that_requeues_does_what_was_asked() -> None:
    after = job(after=(*RUNNING, requeue_asked(), requeued()))

    assert (after.state, after.why) == (JobState.PENDING, SENT_BACK)


@pytest.mark.parametrize("why", [SENT_BACK, BY_ANN, KILLED, BAD, LOST, TIME_UP], ids=repr)
def test_a_cancel_wins_over_a_requeue_under_way(why: EndReason) -> None:
    after = job(after=(*RUNNING, requeue_asked(BOB), cancel_asked(ANN), ended(why)))

    assert (after.state, after.why) == (JobState.CANCELLED, BY_ANN)


def test_who_sent_it_back_first_is_remembered() -> None:
    assert job(after=(*RUNNING, requeue_asked(ANN), requeue_asked(BOB))).why == SENT_BACK


UNFINISHED: dict[str, tuple[JobEvent, ...]] = {
    "held": (held(),),
    "waiting": (),
    "waiting again": (*RUNNING, ended(LOST)),
    "starting": (placed(),),
    "running": RUNNING,
    "suspended": (*RUNNING, suspended()),
    "stopping": (*RUNNING, preempted()),
}


@pytest.mark.parametrize("events", UNFINISHED.values(), ids=UNFINISHED)
def test_an_update_changes_what_is_asked_for_and_nothing_else(events: tuple[JobEvent, ...]) -> None:
    before = job(after=events)

    after = step(before, updated(time_limit=Duration(5)))

    assert after.spec == spec(time_limit=Duration(5))
    assert replace(after, spec=before.spec) == before


def test_the_last_update_counts() -> None:
    after = job(after=(updated(priority=1), updated(priority=2)))

    assert after.spec.priority == 2


def test_a_stopping_job_remembers_for_whom_and_how() -> None:
    after = job(after=(*RUNNING, preempted(CHECKPOINT)))

    assert after.why == Preempted(by=OTHER, mode=CHECKPOINT)


def test_preemption_by_suspending_ends_in_suspension_and_a_resume() -> None:
    asleep = job(after=(*RUNNING, preempted(SUSPEND), suspended()))

    assert asleep.state is JobState.SUSPENDED
    assert asleep.why == Preempted(by=OTHER, mode=SUSPEND)
    assert step(asleep, resumed()) == job(after=RUNNING)


def test_a_job_that_must_give_its_room_up_is_not_parked_by_a_suspension() -> None:
    assert job(after=(*RUNNING, preempted(REQUEUE), suspended())).state is JobState.STOPPING


@pytest.mark.parametrize("why", [BY_OTHER, BY_ANN, KILLED, BAD, LOST, TIME_UP], ids=repr)
def test_a_cancel_wins_over_a_preemption_under_way(why: EndReason) -> None:
    after = job(after=(*RUNNING, preempted(), cancel_asked(), ended(why)))

    assert (after.state, after.why) == (JobState.CANCELLED, BY_ANN)


def test_a_cancelled_job_that_was_quicker_has_completed() -> None:
    after = job(after=(*RUNNING, cancel_asked(), ended(OK)))

    assert (after.state, after.why) == (JobState.COMPLETED, OK)


def test_a_cancelled_job_does_not_come_back_when_its_backend_requeues_it() -> None:
    after = job(max_attempts=9, after=(*RUNNING, cancel_asked(), requeued()))

    assert (after.state, after.why) == (JobState.CANCELLED, BY_ANN)


def test_who_cancelled_first_is_remembered() -> None:
    assert job(after=(*RUNNING, cancel_asked(ANN), cancel_asked(BOB))).why == BY_ANN


def test_a_hold_names_its_holder_and_gives_up_the_room_that_was_cleared() -> None:
    after = job(after=(claimed(), held(BOB)))

    assert (after.why, after.claim) == (HeldBy(user=BOB), None)


def test_an_administrator_takes_a_hold_over_and_nobody_takes_it_back() -> None:
    taken = job(after=(held(ANN), held(BOB, as_admin=True)))

    assert taken.why == HeldBy(user=BOB, as_admin=True)
    assert step(taken, held(ANN)).why == taken.why
    assert step(taken, released()).state is JobState.PENDING


def test_a_suspended_job_can_be_held_where_it_is() -> None:
    asleep = job(after=(*RUNNING, suspended(), held(BOB), held(ANN)))

    assert (asleep.state, asleep.why) == (JobState.SUSPENDED, HeldBy(user=BOB))
    assert step(asleep, released()).why is None


def test_a_claim_lives_until_it_is_dropped_or_used() -> None:
    waiting = job(after=(claimed(),))

    assert waiting.claim == CLAIM
    assert step(waiting, claim_dropped()).claim is None
    assert step(waiting, placed()).claim is None
    assert step(waiting, cancel_asked()).claim is None


def test_a_failed_attempt_is_tried_again_after_a_pause_until_all_are_used_up() -> None:
    once = job(max_attempts=2, after=(*RUNNING, ended(BAD)))
    again = step(step(once, placed(2)), ended(BAD, 2))

    assert (once.state, once.failures, once.why) == (JobState.PENDING, 1, BAD)
    assert once.begin_at == Instant(NOW + 100)
    assert step(once, placed(2)).begin_at is None
    assert again.state is JobState.FAILED


LATE: dict[str, tuple[tuple[JobEvent, ...], JobEvent]] = {
    "a start that is already known": (RUNNING, started()),
    "a placement that is already made": (RUNNING, placed()),
    "the end of an attempt that is over": ((*RUNNING, ended(LOST)), ended(LOST)),
    "another story about its end": ((*RUNNING, ended(LOST)), ended(OK)),
    "a deadline that did not stop an earlier attempt": (
        (*RUNNING, ended(LOST), placed(2)),
        ended(TOO_LATE, 1),
    ),
    "the end of an earlier attempt": ((*RUNNING, ended(LOST), placed(2)), ended(OK)),
    "a start of an earlier attempt": ((*RUNNING, ended(LOST), placed(2)), started()),
    "a suspension of an earlier attempt": ((*RUNNING, ended(LOST), placed(2)), suspended()),
    "a preemption that came too late": ((*RUNNING, ended(LOST)), preempted()),
    "a preemption of one that already stops": ((*RUNNING, cancel_asked()), preempted()),
    "a hold of a running job": (RUNNING, held()),
    "a release of a job that is not held": ((), released()),
    "a requeue of a job that waits": ((*RUNNING, ended(LOST)), requeued()),
    "a requeue of a job that never ran": ((), requeue_asked()),
    "a requeue of a held job": ((held(),), requeue_asked()),
    "a requeue asked after the end of the attempt": ((*RUNNING, ended(LOST)), requeue_asked()),
    "a requeue asked twice": ((*RUNNING, requeue_asked()), requeue_asked()),
    "a requeue of one that makes room already": ((*RUNNING, preempted()), requeue_asked()),
    "a preemption of one that is sent back": ((*RUNNING, requeue_asked()), preempted()),
    "a requeue of a job that is being cancelled": ((*RUNNING, cancel_asked()), requeue_asked()),
    "a requeue of a cancelled job": ((cancel_asked(),), requeue_asked()),
    "a requeue of a job that is over": ((*RUNNING, ended(OK)), requeue_asked()),
    "an update applied twice": ((*RUNNING, updated(priority=5)), updated(priority=5)),
    "an update of a job that is over": ((*RUNNING, ended(OK)), updated(priority=5)),
    "an update of a cancelled job": ((cancel_asked(),), updated(priority=5)),
    "anything about a job that is over": ((*RUNNING, ended(OK)), ended(BAD)),
    "a cancel of a job that is over": ((*RUNNING, ended(OK)), cancel_asked()),
    "a hold of a job that is over": ((*RUNNING, ended(OK)), held()),
}


@pytest.mark.parametrize(("events", "late"), LATE.values(), ids=LATE)
def test_what_comes_late_changes_nothing(events: tuple[JobEvent, ...], late: JobEvent) -> None:
    before = job(after=events)

    assert step(before, late) == before


IMPOSSIBLE: dict[str, tuple[tuple[JobEvent, ...], JobEvent]] = {
    "a start of an attempt that was never placed": ((), started()),
    "an end of an attempt to come": (RUNNING, ended(OK, 2)),
    "placing a held job": ((held(),), placed()),
    "placing a running job again": (RUNNING, placed(2)),
    "placing a job that is over": ((cancel_asked(),), placed()),
    "skipping an attempt": ((), placed(2)),
    "claiming for a held job": ((held(),), claimed()),
    "claiming for a running job": (RUNNING, claimed()),
    "resizing before it runs": ((placed(),), resized()),
    "resuming before it ran": ((placed(),), resumed()),
}


@pytest.mark.parametrize(("events", "event"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_our_bug(events: tuple[JobEvent, ...], event: JobEvent) -> None:
    before = job(after=events)

    with pytest.raises(ImpossibleMoveError, match=f"job 7 is {before.state}"):
        step(before, event)


def test_an_event_of_another_job_is_our_bug() -> None:
    with pytest.raises(ImpossibleMoveError):
        step(job(), type(held())(at=NOW, job=OTHER, by=ANN))


def test_a_submitted_job_waits_or_is_held() -> None:
    waiting = submitted(JobSubmitted(at=NOW, job=JOB, spec=spec()))
    kept = submitted(JobSubmitted(at=NOW, job=JOB, spec=spec(), held=True))

    assert (waiting.state, waiting.why, waiting.attempt) == (JobState.PENDING, None, 0)
    assert (kept.state, kept.why) == (JobState.HELD, HeldBy(user=ANN))
