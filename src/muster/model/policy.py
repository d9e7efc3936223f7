"""How we choose: every knob of the planner, as data."""

from enum import StrEnum

from muster.model.burst import Burst
from muster.model.value import DAY, HOUR, Duration, Value


class Packing(StrEnum):
    """Which of the nodes that fit: keep what remains useful, or keep neighbours few."""

    PACK = "pack"
    SPREAD = "spread"


class Preference(StrEnum):
    """Which cluster first, when a job does not say."""

    ORDER = "order"
    PRICE = "price"


class Aim(StrEnum):
    """What levels of service are learned for: the average time to completion, or slowdown.

    Slowdown is how many times as long as it runs a job is there: short ones feel every wait.
    """

    COMPLETION = "completion"
    SLOWDOWN = "slowdown"


class OrderWeights(Value, gc=False):
    """What counts how much for whose turn it is; each factor runs from 0 to 1,000.

    Age alone grows without end, one full factor every `age_full`: no job starves.
    Size counts only with a weight: one for each GPU; a negative weight puts small jobs first.
    Short: how little the job is expected to take, learned from those that ended.
    Service: how little GPU-time the job has had, by its level; it counts only with a weight.
    """

    job_class: int = 10_000
    fair_share: int = 4_000
    age: int = 1_000
    size: int = 0
    short: int = 8_000
    service: int = 0
    queue: int = 1_000
    age_full: Duration = Duration(14 * DAY)


class SharePolicy(Value, gc=False):
    """How fast past use is forgotten, and how much of what is held now counts as use to come."""

    half_life: Duration = Duration(7 * DAY)
    lookahead: Duration = HOUR


class PreemptPolicy(Value, gc=False):
    """When running jobs may be stopped for others.

    tries: for how many waiting jobs one plan looks for victims; candidates: among how many of the
    cheapest running jobs it looks. They bound the time of a plan.
    by_service: may a job stop any others of its class that had more service, and stand on a higher
    level?
    by_service_if_saved: may it stop those of them that save when they are stopped, and did before?
    waited_percent: no job is preempted by service before it ran this percentage of its wait.
    """

    by_class: bool = True
    reclaim: bool = True
    by_service: bool = False
    by_service_if_saved: bool = False
    tries: int = 6
    candidates: int = 500
    min_run: Duration = Duration(0)
    waited_percent: int = 0
    restart_cost: Duration = Duration(60_000)


class Policy(Value):
    """One value holds all choices, so that a rehearsal differs from live by this value alone.

    backfill_depth: how many blocked jobs get a reservation in time; backfill_horizon: how many
    running jobs are looked at, in the order in which they must end, to find that time (all of
    them for the first in line).
    patience: who has waited so long goes before everybody else, and room is kept for it; 0: nobody.
    default_time: for jobs without a limit in pools without a default; None means without end.
    aim: counts where service does.
    bursts: when jobs of one cluster may move to another; without a rule for it, they always may.
    """

    order: OrderWeights = OrderWeights()
    share: SharePolicy = SharePolicy()
    preempt: PreemptPolicy = PreemptPolicy()
    packing: Packing = Packing.PACK
    prefer: Preference = Preference.ORDER
    backfill_depth: int = 4
    backfill_horizon: int = 4_000
    patience: Duration = Duration(14 * DAY)
    default_time: Duration | None = None
    repartition: bool = True
    grow: bool = True
    aim: Aim = Aim.COMPLETION
    bursts: tuple[Burst, ...] = ()

    @property
    def has_levels(self) -> bool:
        """Does it count how much service jobs had?"""
        return self.counts_all_service or self.preempt.by_service_if_saved

    @property
    def counts_all_service(self) -> bool:
        """Does it count so of every job, not only of those that save?"""
        return self.preempt.by_service or bool(self.order.service)
