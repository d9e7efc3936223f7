"""Jobs that want to be near each other, or apart."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from muster.model.cluster import Node, Pool
from muster.model.job import NODE_LEVEL, JobRule, JobSpec, Where
from muster.model.placement import Placement
from muster.model.value import NodeId, PoolName
from muster.schedule.room.index import Room

Domain = tuple[str, ...]
Label = tuple[str, str]
Key = TypeVar("Key", bound=Hashable)

Filter = Callable[[Room], bool]
"""May a job's tasks have this room?"""


class Neighbours:
    """Where jobs with labels are, and what those who are there forbid. Apart goes both ways.

    A job that has only a claim, or is suspended, keeps others away, but is no company.
    """

    def __init__(self, nodes: Mapping[NodeId, Node], pools: Mapping[PoolName, Pool]) -> None:
        self._nodes = nodes
        self._pools = pools
        self._there: dict[Label, Counter[NodeId]] = {}
        self._coming: dict[Label, Counter[NodeId]] = {}
        self._forbidden: dict[Label, Counter[tuple[str, Domain]]] = {}
        self._filters: dict[tuple[frozenset[Label], Where], Filter | None] = {}

    def follow(self, nodes: Mapping[NodeId, Node]) -> None:
        """Nodes may have moved to another place."""
        self._nodes = nodes
        self._filters.clear()

    def count(
        self, spec: JobSpec, placements: tuple[Placement, ...], *, is_away: bool, sign: int
    ) -> None:
        """A job comes (sign 1) or goes (sign -1)."""
        self._filters.clear()
        nodes = {placement.node for placement in placements}
        places = self._coming if is_away else self._there
        for label in spec.labels.items():
            _add(places.setdefault(label, Counter()), nodes, sign)
        for group in spec.groups:
            for rule in group.where.apart:
                here = {each.node for each in placements if each.group == group.name}
                domains = {(rule.level, self._domain(node, rule.level)) for node in here}
                known = ((level, domain) for level, domain in domains if domain is not None)
                _add(self._forbidden.setdefault((rule.key, rule.value), Counter()), known, sign)

    def filter(self, spec: JobSpec, where: Where) -> Filter | None:
        """Which rooms the job's tasks may have, or None if neighbours do not matter to it."""
        if not where.apart and not where.near and not self.matters_to(spec):
            return None
        key = (frozenset(spec.labels.items()), where)
        if key not in self._filters:
            self._filters[key] = self._filter(spec, where)
        return self._filters[key]

    def _filter(self, spec: JobSpec, where: Where) -> Filter | None:
        barred = {each for label in spec.labels.items() for each in self._forbidden.get(label, ())}
        for rule in where.apart:
            barred |= {(rule.level, domain) for domain in self._domains(rule, self._there)}
            barred |= {(rule.level, domain) for domain in self._domains(rule, self._coming)}
        wanted = [
            (rule.level, self._domains(rule, self._there))
            for rule in where.near
            if self._binds(rule, spec)
        ]
        levels = {level for level, _ in barred}

        def allows(room: Room) -> bool:
            node = room.node.id
            if any((level, self._domain(node, level)) in barred for level in levels):
                return False
            return all(self._domain(node, level) in domains for level, domains in wanted)

        return allows if barred or wanted else None

    @property
    def is_choosy(self) -> bool:
        """Does anybody who is there keep others away?"""
        return bool(self._forbidden)

    def matters_to(self, spec: JobSpec) -> bool:
        """Does it depend on its own labels where this job may go?"""
        if not self._forbidden or not spec.labels:
            return False
        return any(self._forbidden.get(label) for label in spec.labels.items())

    def _binds(self, rule: JobRule, spec: JobSpec) -> bool:
        """The first of its kind may go anywhere."""
        is_first = not self._there.get((rule.key, rule.value))
        return not (is_first and spec.labels.get(rule.key) == rule.value)

    def _domains(self, rule: JobRule, places: dict[Label, Counter[NodeId]]) -> set[Domain]:
        nodes = places.get((rule.key, rule.value), ())
        found = (self._domain(node, rule.level) for node in nodes)
        return {domain for domain in found if domain is not None}

    def _domain(self, node_id: NodeId, level: str) -> Domain | None:
        node = self._nodes.get(node_id)
        if node is None or level == NODE_LEVEL:
            return (node_id,)
        levels = self._pools[node.pool].levels
        if level not in levels:
            return None
        return (node.cluster, *node.where[: levels.index(level) + 1])


def _add(counter: Counter[Key], keys: Iterable[Key], sign: int) -> None:
    for key in keys:
        counter[key] += sign
        if not counter[key]:
            del counter[key]
