"""Whatever happens to jobs, each end is mailed once, and nothing that was not asked for."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from controller.desk import Desk
from controller.ear import EVERYTHING, Ear, listening, submits_array
from muster.backends.simulated.attempt import Behaviour
from muster.controller.use_cases.job_actions import JobAction
from muster.model.job import EndReason, Exited, Job, JobState, RetryPolicy, Signaled
from muster.model.mail import Mail, Occasion
from muster.model.value import SECOND, Duration, JobId, replace
from muster.stores.base import HistoryQuery

ENDS: tuple[EndReason, ...] = (Exited(code=0), Exited(code=3), Signaled(signal=9))
DEEDS = ("submits", "array", "parts", "passes", "cancels", "requeues", "leads")


def history(desk: Desk, ear: Ear, deeds: list[tuple[str, int]], mail: Mail) -> None:
    """Let all of this happen, and everything end."""
    for deed, number in deeds:
        live = sorted(desk.record.jobs)
        match deed:
            case "submits":
                job = desk.submits(limit_s=60, mail=mail, max_attempts=2, retry=RetryPolicy())
                work = Duration((5 + 20 * number) * SECOND)
                desk.will_go(job, Behaviour(work=work, end=ENDS[number % 3]))
            case "array" | "parts":
                each = replace(mail, each_part=deed == "parts")
                submits_array(desk, 1 + number % 3, lasts=5 + number, mail=each)
            case "passes":
                desk.lets_pass(number * 7)
            case "leads":
                ear.begins()
            case _:
                move = JobAction.CANCEL if deed == "cancels" else JobAction.REQUEUE
                desk.asks("root", move, *(live[number % len(live) :][:2] if live else ()))
    desk.lets_all_end()


@given(
    deeds=st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 9)), max_size=12),
    on=st.one_of(st.just(tuple(Occasion)), st.just((Occasion.BEGIN, Occasion.FAIL))),
)
def test_every_end_is_mailed_once(deeds: list[tuple[str, int]], on: tuple[Occasion, ...]) -> None:
    desk = Desk(gpus=2)
    ear = listening(desk)

    history(desk, ear, deeds, replace(EVERYTHING, on=on))

    mailed = Counter(ear.heard())
    assert {text.split()[1] for text in mailed if not text.startswith("array")} <= {*on}
    jobs = [
        each.job for each in desk.simulation.parts.history.ended(HistoryQuery(limit=1_000)).jobs
    ]
    for job in jobs:
        if job.spec.array is None or job.spec.mail.each_part:
            ends = [mailed[f"{job.id} {each}"] for each in (Occasion.END, Occasion.FAIL)]
            is_failed = job.state is JobState.FAILED
            assert ends == [int(not is_failed and Occasion.END in on), int(is_failed)]
            assert mailed[f"{job.id} begin"] <= job.attempt
        else:
            array = job.spec.array.array
            assert mailed[f"array {array} over"] == 1
            first = {text for text in mailed if text.endswith(" begin")}
            parts = {f"{each.id} begin" for each in jobs if _array(each) == array}
            assert sum(mailed[text] for text in first & parts) <= 1


def _array(job: Job) -> JobId | None:
    part = job.spec.array
    return None if part is None else part.array
