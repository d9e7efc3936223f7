"""Does a plan keep the hard rules? Judged from snapshot and plan alone, never from the planner.

The rules are those of `docs/hard-rules.md`, in its order. Nothing here knows how plans are made:
a mistake would have to be made twice, in two ways, to go unseen.
"""

from collections.abc import Callable, Iterator

from muster.model.plan import Plan
from muster.model.snapshot import Snapshot
from muster.schedule.verify.bursting import rules_about_bursting_hold
from muster.schedule.verify.case import Case, case_of
from muster.schedule.verify.ceilings import class_ceilings_hold, queues_hold_few_enough_jobs
from muster.schedule.verify.cuts import repartitions_are_in_order
from muster.schedule.verify.decisions import (
    attempts_are_current,
    claims_are_clear_before_the_start,
    decisions_suit_the_state,
    every_waiting_job_has_one_decision,
    names_the_snapshot,
    preempts_name_the_attempt,
    queue_and_class_exist,
)
from muster.schedule.verify.devices import clusters_can_slice, devices_have_one_use
from muster.schedule.verify.neighbours import has_its_company, keeps_apart
from muster.schedule.verify.place import (
    clusters_are_reachable_and_allowed,
    clusters_can_run_it,
    groups_are_of_one_kind,
    nodes_take_work,
    spot_is_respected,
)
from muster.schedule.verify.preemption import (
    preemptions_belong_to_clears,
    victims_are_ready,
    victims_make_room,
)
from muster.schedule.verify.quotas import quotas_hold
from muster.schedule.verify.register import Register
from muster.schedule.verify.reservations import (
    amounts_stay_reserved,
    nodes_stay_reserved,
    reservations_asked_for_are_kept_to,
)
from muster.schedule.verify.rights import preemption_is_right
from muster.schedule.verify.room import cpu_and_memory_suffice, exclusive_tasks_are_alone
from muster.schedule.verify.shares import amounts_are_the_ask, devices_are_the_ask
from muster.schedule.verify.times import (
    arrays_keep_their_width,
    begins_late_enough,
    deadlines_can_be_met,
    dependencies_are_met,
    time_limits_are_allowed,
)
from muster.schedule.verify.violation import Violation
from muster.schedule.verify.where import (
    groups_stand_together,
    labels_and_lists_hold,
    nodes_are_not_crowded,
    taints_are_tolerated,
)
from muster.schedule.verify.whole import groups_are_whole, resizes_go_on

__all__ = ["Register", "Violation", "violations"]

RULES_FOR_EACH: tuple[Callable[[Case], Iterator[Violation]], ...] = (
    decisions_suit_the_state,
    attempts_are_current,
    claims_are_clear_before_the_start,
    queue_and_class_exist,
    groups_are_whole,
    clusters_are_reachable_and_allowed,
    clusters_can_run_it,
    nodes_take_work,
    groups_are_of_one_kind,
    spot_is_respected,
    amounts_are_the_ask,
    devices_are_the_ask,
    clusters_can_slice,
    labels_and_lists_hold,
    taints_are_tolerated,
    nodes_are_not_crowded,
    groups_stand_together,
    time_limits_are_allowed,
    begins_late_enough,
    deadlines_can_be_met,
    reservations_asked_for_are_kept_to,
    rules_about_bursting_hold,
)
"""Rules that look at each addition by itself, whatever else the plan adds."""

RULES_FOR_ALL: tuple[Callable[[Case], Iterator[Violation]], ...] = (
    names_the_snapshot,
    every_waiting_job_has_one_decision,
    preempts_name_the_attempt,
    cpu_and_memory_suffice,
    devices_have_one_use,
    exclusive_tasks_are_alone,
    repartitions_are_in_order,
    keeps_apart,
    has_its_company,
    quotas_hold,
    queues_hold_few_enough_jobs,
    class_ceilings_hold,
    dependencies_are_met,
    arrays_keep_their_width,
    nodes_stay_reserved,
    amounts_stay_reserved,
    preemptions_belong_to_clears,
    victims_make_room,
    victims_are_ready,
    preemption_is_right,
    resizes_go_on,
)
"""Rules that look at the plan as a whole."""

RULES_FOR_NONE = (names_the_snapshot, every_waiting_job_has_one_decision)
"""Those of them that have something to say about a plan that lets everybody wait."""


def violations(snapshot: Snapshot, plan: Plan, register: Register | None = None) -> list[Violation]:
    """Every hard rule that the plan breaks; empty when it may be committed. Never raises.

    register: kept by a caller that asks about one snapshot after the other; it only saves time.
    """
    if register is None:
        return _violations(case_of(snapshot, plan))
    register.follow(snapshot)
    found = _violations(case_of(snapshot, plan, register))
    register.approve(plan, is_sound=not found)
    return found


def _violations(case: Case) -> list[Violation]:
    plan = case.plan
    if not case.additions and not plan.measures and not case.clears:
        return [broken for rule in RULES_FOR_NONE for broken in rule(case)]
    found = [broken for rule in RULES_FOR_ALL for broken in rule(case)]
    for part in case.parts():
        found += [broken for rule in RULES_FOR_EACH for broken in rule(part)]
    return found
