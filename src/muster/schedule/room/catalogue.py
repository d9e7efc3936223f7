"""What the kinds of node offer each need: worked out once, and again when other kinds are there."""

from collections.abc import Mapping

from muster.model.policy import Policy
from muster.model.resources import Resources
from muster.model.value import ClusterName
from muster.schedule.room.fit import offer
from muster.schedule.room.index import NodeKind
from muster.schedule.room.needs import Need, Needs, Offer, PoolOption, Tier, tasks_on_host
from muster.schedule.room.profiles import GpuNeed, Profiles


class _Answers:
    """What was found out about one need, and as of which version."""

    __slots__ = ("at_most", "clusters", "kinds_seen", "options", "tiers", "usable")

    def __init__(self) -> None:
        self.kinds_seen = -1
        self.options: dict[Tier, list[PoolOption]] = {}
        self.tiers: list[Tier] = []
        self.clusters: list[ClusterName] = []
        self.usable: tuple[int, int] = (-1, 0)
        self.at_most: tuple[int, int] = (-1, 0)


class Catalogue:
    """All kinds of node by their names, and what they offer.

    `version` changes when kinds come or go, `sizes_version` when nodes of other sizes are there,
    `nodes_version` with every node that changes.
    """

    def __init__(self, policy: Policy, profiles: Profiles) -> None:
        self.needs = Needs()
        self.kinds: dict[str, NodeKind] = {}
        # Those on which it depends on the time whether a job may go there.
        self.timed_kinds: dict[str, NodeKind] = {}
        self.version = 0
        self.sizes_version = 0
        self.nodes_version = 0
        self._policy = policy
        self._profiles = profiles
        self._offers: dict[NodeKind, dict[Need, Offer | None]] = {}
        self._answers: dict[Need, _Answers] = {}
        self._amounts: dict[tuple[Need, GpuNeed | None], Resources] = {}

    def add(self, kind: NodeKind) -> None:
        """Nodes of a new kind came."""
        self.kinds[kind.name] = kind
        if kind.reserved or kind.pool.max_time is not None:
            self.timed_kinds[kind.name] = kind
        self.version += 1

    def remove(self, kind: NodeKind) -> None:
        """The last node of a kind went."""
        del self.kinds[kind.name]
        self.timed_kinds.pop(kind.name, None)
        self._offers.pop(kind, None)
        self.version += 1

    def offer(self, kind: NodeKind, need: Need) -> Offer | None:
        """What a kind of node offers a need."""
        offers = self._offers.get(kind)
        if offers is None:
            offers = self._offers[kind] = {}
        if need not in offers:
            offers[need] = offer(kind, need, self.needs, self._policy)
        return offers[need]

    def amount(self, need: Need, gpus: GpuNeed | None) -> Resources:
        """What one task comes to on the model that was settled."""
        known = self._amounts.get((need, gpus))
        if known is None:
            known = need.each.amount(None if gpus is None else gpus.model)
            self._amounts[need, gpus] = known
        return known

    def options(self, need: Need) -> Mapping[Tier, list[PoolOption]]:
        """In each tier, where all tasks of a group may go together."""
        return self._about(need).options

    def tiers(self, need: Need) -> list[Tier]:
        """Where to look first, second and so on."""
        return self._about(need).tiers

    def clusters(self, need: Need) -> list[ClusterName]:
        """The clusters that could serve the need, in the order they are tried."""
        return self._about(need).clusters

    def usable_nodes(self, need: Need) -> int:
        """How many nodes are up that the need may go to."""
        about = self._about(need)
        if about.usable[0] != self.nodes_version:
            kinds = self.kinds.values()
            found = sum(len(kind.rooms) for kind in kinds if self.offer(kind, need))
            about.usable = (self.nodes_version, found)
        return about.usable[1]

    def at_most(self, need: Need) -> int:
        """How many tasks all nodes together would hold if nothing ran there."""
        about = self._about(need)
        if about.at_most[0] != self.sizes_version:
            about.at_most = (self.sizes_version, self._at_most(need))
        return about.at_most[1]

    def _about(self, need: Need) -> _Answers:
        known = self._answers.get(need)
        if known is None:
            known = self._answers[need] = _Answers()
        if known.kinds_seen != self.version:
            known.kinds_seen = self.version
            known.options = self._options(need)
            known.tiers = sorted(known.options)
            known.clusters = list(dict.fromkeys(ClusterName(tier[-1]) for tier in known.tiers))
        return known

    def _options(self, need: Need) -> dict[Tier, list[PoolOption]]:
        found: dict[Tier, set[PoolOption]] = {}
        for kind in self.kinds.values():
            offered = self.offer(kind, need)
            if offered is not None:
                options = found.setdefault(offered.tier, set())
                options.update(PoolOption(kind.pool.name, gpus) for gpus in offered.gpus)
        return {tier: sorted(options, key=_option_name) for tier, options in found.items()}

    def _at_most(self, need: Need) -> int:
        total = 0
        for kind in self.kinds.values():
            offered = self.offer(kind, need)
            if offered is not None:
                total += max(self._empty_fit(kind, need, gpus) for gpus in offered.gpus)
        return total

    def _empty_fit(self, kind: NodeKind, need: Need, gpus: GpuNeed | None) -> int:
        total = 0
        for (cpu_milli, memory_mib, states), nodes in kind.sizes.items():
            fit = tasks_on_host(need, cpu_milli, memory_mib)
            if gpus is not None:
                empty = self._profiles.of(states, gpus.family)
                fit = min(fit, self._profiles.most(empty, gpus))
            total += nodes * fit
        return total


def _option_name(option: PoolOption) -> tuple[str, str]:
    return (option.pool, "" if option.gpus is None else option.gpus.model)
