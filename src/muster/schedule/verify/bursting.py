"""Jobs move to another cluster only where a rule about bursting lets them."""

from collections.abc import Iterator

from muster.model.burst import Burst, can_slice, expected_hold, has_chosen, suits, takes, waits_for
from muster.model.job import Job, JobState
from muster.model.value import PoolName
from muster.schedule.verify.case import Case
from muster.schedule.verify.violation import Violation


def rules_about_bursting_hold(case: Case) -> Iterator[Violation]:
    """A rule lets in a job in whose pool another cluster's jobs burst, that the other could run."""
    rules = case.plan.policy.bursts
    if not rules:
        return
    waiting = {rule: _waiting(case, rule) for rule in rules}
    for addition in case.fresh:
        job = addition.job
        has_claim = job.claim is not None and job.claim.cluster == addition.cluster
        # A claim was judged when it was made.
        if has_chosen(job.spec) or has_claim:
            continue
        for pool in sorted(addition.pools):
            kept = [rule for rule in rules if _concerns(case, rule, job, pool)]
            if kept and not any(_lets_in(case, each, job, pool, waiting[each]) for each in kept):
                text = f"No rule lets it move to pool {pool} from cluster {kept[0].preferred}."
                yield Violation(rule="bursting", subject=f"job {job.id}", text=text)


def _waiting(case: Case, rule: Burst) -> int:
    policy, snapshot, total = case.plan.policy, case.snapshot, 0
    for job in snapshot.jobs.values():
        if job.state is not JobState.PENDING:
            continue
        if waits_for(rule.preferred, job, snapshot.pools, snapshot.now):
            hold = expected_hold(job, policy.default_time, policy.preempt.restart_cost)
            total += hold.gpu_milli * hold.lasts
    return total


def _concerns(case: Case, rule: Burst, job: Job, name: PoolName) -> bool:
    """Does the rule say that the job belongs elsewhere, where it could run?"""
    pool = case.snapshot.pools.get(name)
    if pool is None or not takes(pool, job.spec, rule.to):
        return False
    return bool(_prices(case, rule, job))


def _prices(case: Case, rule: Burst, job: Job) -> list[int]:
    """Of the preferred cluster's pools that could run the job."""
    found: list[int] = []
    if not can_slice(case.snapshot.clusters.get(rule.preferred), job.spec):
        return found
    for pool in case.snapshot.pools.values():
        if not takes(pool, job.spec, rule.preferred):
            continue
        nodes = [each for each in case.snapshot.nodes.values() if each.pool == pool.name]
        if all(any(suits(node, group) for node in nodes) for group in job.spec.groups):
            found.append(pool.gpu_hour_micros)
    return found


def _lets_in(case: Case, rule: Burst, job: Job, name: PoolName, waiting: int) -> bool:
    policy = case.plan.policy
    hold = expected_hold(job, policy.default_time, policy.preempt.restart_cost)
    here = hold.cost(min(_prices(case, rule, job)))
    there = rule.cost_there(hold, case.snapshot.pools[name].gpu_hour_micros)
    is_cheap = here > 0 and there * 100 <= here * rule.cost_percent
    return job.spec.job_class in rule.classes and rule.is_exceeded(waiting) and is_cheap
