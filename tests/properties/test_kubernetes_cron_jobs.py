from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.doors.kubernetes.controllers.changes import Emit
from muster.doors.kubernetes.controllers.conditions import is_true
from muster.doors.kubernetes.controllers.cron_jobs.schedule import Schedule, parsed
from muster.doors.kubernetes.controllers.cron_jobs.sync import SCHEDULED_AT, due, sync
from muster.doors.kubernetes.controllers.jobs.sync import is_finished
from muster.doors.kubernetes.controllers.pods import is_leaving
from muster.doors.kubernetes.objects.kinds import JOB
from muster.doors.kubernetes.objects.times import instant, stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    name_of,
    part,
    uid_of,
)
from muster.model.value import HOUR, MINUTE, SECOND, Instant
from properties.kubernetes_world import START, KubernetesWorld, job

SCHEDULES = st.sampled_from(
    ["* * * * *", "*/5 * * * *", "7,19 */2 * * *", "@hourly", "30 2 * * 1-5", "0 0 29 2 *"]
)
ZONES = st.sampled_from(["", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
MOMENTS = st.integers(min_value=START, max_value=START + 400 * 24 * HOUR).map(Instant)
LIMITS = st.integers(min_value=0, max_value=3)


@given(SCHEDULES, ZONES, MOMENTS, st.integers(min_value=0, max_value=3 * 24 * 60))
def test_nothing_that_is_scheduled_is_passed_over(
    text: str, zone: str, moment: Instant, minutes: int
) -> None:
    schedule = parsed(text, zone)
    between = Instant(moment + minutes * MINUTE)

    first = schedule.after(moment)

    assert first is not None
    assert first > moment
    assert first % MINUTE == 0
    # Whoever asks a little later is told the same, unless it has come by then.
    assert schedule.after(between) == first or between >= first


@given(SCHEDULES, MOMENTS, st.integers(min_value=0, max_value=5_000))
def test_what_is_due_is_the_latest_time_that_is_past(
    text: str, moment: Instant, minutes: int
) -> None:
    now = Instant(moment + minutes * MINUTE)
    last = Instant(moment // SECOND * SECOND)
    schedule = parsed(text)
    cron: JsonObject = {"spec": {}, "status": {"lastScheduleTime": stamp(last)}}

    late = due(cron, schedule, now)

    if late is None:
        first = schedule.after(last)
        assert first is None or first > now
    else:
        assert last < late.at <= now
        following = schedule.after(late.at)
        assert following is None or following > now


class CronJobMachine(RuleBasedStateMachine):
    """A CronJob whose Jobs end well, badly, late or never, and which is changed meanwhile."""

    @initialize(
        schedule=SCHEDULES,
        policy=st.sampled_from(["Allow", "Forbid", "Replace"]),
        deadline=st.sampled_from([None, 30, 300]),
        kept=LIMITS,
        kept_failed=LIMITS,
    )
    def is_created(
        self, schedule: str, policy: str, deadline: int | None, kept: int, kept_failed: int
    ) -> None:
        self.world = KubernetesWorld()
        self.known: set[str] = set()
        self.names: list[str] = []
        spec: JsonObject = {
            "schedule": schedule,
            "concurrencyPolicy": policy,
            "successfulJobsHistoryLimit": kept,
            "failedJobsHistoryLimit": kept_failed,
            "jobTemplate": {"spec": {**job()["spec"], "backoffLimit": 0}},
        }
        if deadline is not None:
            spec["startingDeadlineSeconds"] = deadline
        kind = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}}
        self.cron = self.world.create({**kind, "spec": spec})
        self._settles()

    @rule(seconds=st.sampled_from([1, 59, 60, 61, 300, 3_700, 100_000]))
    def time_passes(self, seconds: int) -> None:
        before = part(self._held(), "status").get("lastScheduleTime", "")
        self.world.passes(seconds)
        self._settles()
        assert part(self._held(), "status").get("lastScheduleTime", "") >= before

    @rule(data=st.data(), code=st.sampled_from([0, 0, 1]))
    def a_job_ends(self, data: st.DataObject, code: int) -> None:
        active = self.world.active()
        assume(active)
        self.world.ends(data.draw(st.sampled_from(active)), code=code)
        self._settles()

    @rule()
    def deleted_pods_stop(self) -> None:
        self.world.all_stop()
        self._settles()

    @rule(data=st.data())
    def somebody_deletes_a_job(self, data: st.DataObject) -> None:
        jobs = self.world.of(JOB)
        assume(jobs)
        self.world.delete(data.draw(st.sampled_from(jobs)))
        self._settles()

    @rule(suspend=st.booleans())
    def it_is_held_or_let_go(self, suspend: bool) -> None:
        self.world.edit(self.cron, suspend=suspend)
        self._settles()

    @rule(schedule=SCHEDULES)
    def its_schedule_changes(self, schedule: str) -> None:
        self.world.edit(self.cron, schedule=schedule)
        self._settles()

    @invariant()
    def no_time_has_two_jobs(self) -> None:
        assert len(self.names) == len(set(self.names))

    @invariant()
    def as_many_run_at_once_as_it_says(self) -> None:
        policy = self._held()["spec"]["concurrencyPolicy"]
        running = [each for each in self.world.of(JOB) if not is_finished(each)]
        if policy == "Forbid":
            assert len(running) <= 1
        if policy == "Replace":
            assert len([each for each in running if not is_leaving(each)]) <= 1

    @invariant()
    def no_more_are_remembered_than_it_says(self) -> None:
        spec = self._held()["spec"]
        over = [each for each in self.world.of(JOB) if is_finished(each) and not is_leaving(each)]
        well = [each for each in over if _is_complete(each)]
        assert len(well) <= spec["successfulJobsHistoryLimit"]
        assert len(over) - len(well) <= spec["failedJobsHistoryLimit"]

    @invariant()
    def it_names_those_that_run(self) -> None:
        told = {each["uid"] for each in items(self._held(), "status", "active")}
        running = {uid_of(each) for each in self.world.of(JOB) if not is_finished(each)}
        assert told == running

    @invariant()
    def what_is_due_has_been_started(self) -> None:
        held = self._held()
        may_skip = held["spec"]["concurrencyPolicy"] == "Forbid" and self.world.of(JOB)
        if not held["spec"].get("suspend") and not may_skip:
            assert due(held, parsed(held["spec"]["schedule"]), self.world.now) is None

    @invariant()
    def looking_twice_changes_nothing(self) -> None:
        again = sync(self._held(), self.world.objects, self.world.now).changes
        assert [each for each in again if not isinstance(each, Emit)] == []

    def _held(self) -> JsonObject:
        return self.world.fresh(self.cron)

    def _settles(self) -> None:
        self.world.settles()
        held = self._held()
        schedule = parsed(held["spec"]["schedule"])
        for each in self.world.of(JOB):
            if uid_of(each) not in self.known:
                self.known.add(uid_of(each))
                self.names.append(name_of(each))
                self._is_due(each, held, schedule)

    def _is_due(self, made: JsonObject, held: JsonObject, schedule: Schedule) -> None:
        """It was started because its time had come, and not too long ago."""
        at = instant(annotations_of(made)[SCHEDULED_AT])
        assert at is not None
        assert not held["spec"].get("suspend")
        assert schedule.after(Instant(at - MINUTE)) == at
        deadline = held["spec"].get("startingDeadlineSeconds")
        assert at <= self.world.now
        assert deadline is None or self.world.now - at <= deadline * SECOND


def _is_complete(made: JsonObject) -> bool:
    return is_true(items(made, "status", "conditions"), "Complete")


TestCronJobMachine = CronJobMachine.TestCase
TestCronJobMachine.settings = settings(max_examples=60, stateful_step_count=20)
