from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from muster.doors.kubernetes.controllers.jobs.indexes import index_of, parsed, written
from muster.doors.kubernetes.controllers.jobs.sync import is_finished as job_is_over
from muster.doors.kubernetes.controllers.jobs.sync import sync
from muster.doors.kubernetes.controllers.pods import is_active, is_leaving
from muster.doors.kubernetes.objects.value import JsonObject, part
from properties.kubernetes_world import KubernetesWorld, job


@given(st.frozensets(st.integers(min_value=0, max_value=40)))
def test_indexes_are_read_as_they_are_written(indexes: frozenset[int]) -> None:
    assert parsed(written(indexes), 41) == indexes


class JobMachine(RuleBasedStateMachine):
    """A Job whose pods start, end, fail and are deleted in any order."""

    @initialize(
        parallelism=st.integers(min_value=0, max_value=4),
        completions=st.integers(min_value=1, max_value=6),
        backoff_limit=st.integers(min_value=0, max_value=4),
        mode=st.sampled_from(["NonIndexed", "Indexed"]),
        replacement=st.sampled_from(["TerminatingOrFailed", "Failed"]),
    )
    def is_created(
        self, parallelism: int, completions: int, backoff_limit: int, mode: str, replacement: str
    ) -> None:
        self.world = KubernetesWorld()
        self.completions = completions
        self.job = self.world.create(
            job(
                parallelism=parallelism,
                completions=completions,
                backoffLimit=backoff_limit,
                completionMode=mode,
                podReplacementPolicy=replacement,
            )
        )
        self.over_at: JsonObject | None = None
        self.created_when_over = 0
        self.world.settles()

    @rule(data=st.data())
    def a_pod_runs(self, data: st.DataObject) -> None:
        waiting = [p for p in self.world.active() if p["status"]["phase"] == "Pending"]
        assume(waiting)
        self.world.runs(data.draw(st.sampled_from(waiting)))
        self.world.settles()

    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 137]))
    def a_pod_ends(self, data: st.DataObject, code: int) -> None:
        active = self.world.active()
        assume(active)
        self.world.ends(data.draw(st.sampled_from(active)), code=code)
        self.world.settles()

    @rule(data=st.data())
    def a_pod_is_deleted(self, data: st.DataObject) -> None:
        active = self.world.active()
        assume(active)
        self.world.delete(data.draw(st.sampled_from(active)))
        self.world.settles()

    @rule()
    def deleted_pods_stop(self) -> None:
        self.world.all_stop()
        self.world.settles()

    @rule(seconds=st.sampled_from([1, 20, 700]))
    def time_passes(self, seconds: int) -> None:
        self.world.passes(seconds)
        self.world.settles()

    @rule(parallelism=st.integers(min_value=0, max_value=4))
    def it_is_made_wider_or_narrower(self, parallelism: int) -> None:
        self.job = self.world.edit(self.job, parallelism=parallelism)
        self.world.settles()

    @precondition(lambda self: not job_is_over(self.world.fresh(self.job)))
    @rule(suspend=st.booleans())
    def it_is_suspended_or_resumed(self, suspend: bool) -> None:
        self.job = self.world.edit(self.job, suspend=suspend)
        self.world.settles()

    @invariant()
    def never_more_active_pods_than_allowed(self) -> None:
        held = self.world.fresh(self.job)
        active = len(self.world.active(held))
        assert active <= held["spec"]["parallelism"]
        assert active <= self.completions - part(held, "status").get("succeeded", 0)
        if held["spec"].get("suspend"):
            assert active == 0

    @invariant()
    def no_index_runs_twice(self) -> None:
        indexes = [index_of(pod) for pod in self.world.pods() if is_active(pod)]
        known = [each for each in indexes if each is not None]
        assert len(known) == len(set(known))

    @invariant()
    def a_finished_job_stays_as_it_is(self) -> None:
        held = self.world.fresh(self.job)
        if self.over_at is not None:
            assert held["status"] == self.over_at
            assert len(self.world.created) == self.created_when_over
        elif job_is_over(held):
            self.over_at = held["status"]
            self.created_when_over = len(self.world.created)
            assert not self.world.active(held)
            assert not any(is_leaving(pod) for pod in self.world.pods(held))

    @invariant()
    def what_it_says_is_what_there_is(self) -> None:
        held = self.world.fresh(self.job)
        status = held["status"]
        assert status.get("active", 0) == len(self.world.active(held))
        assert status["uncountedTerminatedPods"] == {}

    @invariant()
    def looking_twice_changes_nothing(self) -> None:
        held = self.world.fresh(self.job)
        assert sync(held, self.world.objects, self.world.now).changes == ()


TestJobMachine = JobMachine.TestCase
TestJobMachine.settings = settings(max_examples=60, stateful_step_count=25)
