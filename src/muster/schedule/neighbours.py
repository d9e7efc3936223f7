"""Jobs that want to be near each other, or apart."""

from collections import Counter
from collections.abc import Callable, Mapping

from muster.model.cluster import Node, Pool
from muster.model.job import NODE_LEVEL, JobRule, JobSpec, Where
from muster.model.placement import Placement
from muster.model.value import NodeId, PoolName
from muster.schedule.index import Room

Domain = tuple[str, ...]
Label = tuple[str, str]


class Neighbours:
    """Where jobs with labels are, and what those who are there forbid. Apart goes both ways."""

    def __init__(self, nodes: Mapping[NodeId, Node], pools: Mapping[PoolName, Pool]) -> None:
        self._nodes = nodes
        self._pools = pools
        self._jobs: Counter[Label] = Counter()
        self._nodes_of: dict[Label, set[NodeId]] = {}
        self._forbidden: dict[Label, set[tuple[str, Domain]]] = {}

    def add(self, spec: JobSpec, placements: tuple[Placement, ...]) -> None:
        """A job is there."""
        for label in spec.labels.items():
            self._jobs[label] += 1
            self._nodes_of.setdefault(label, set()).update(each.node for each in placements)
        rules = {group.name: group.where.apart for group in spec.groups}
        for placement in placements:
            for rule in rules.get(placement.group, ()):
                domain = self._domain(placement.node, rule.level)
                if domain is not None:
                    forbidden = self._forbidden.setdefault((rule.key, rule.value), set())
                    forbidden.add((rule.level, domain))

    def filter(self, spec: JobSpec, where: Where) -> Callable[[Room], bool] | None:
        """Which rooms the job's tasks may have, or None if neighbours do not matter to it."""
        if not self._forbidden and not where.apart and not where.near:
            return None
        barred = {
            each for label in spec.labels.items() for each in self._forbidden.get(label, ())
        }
        for rule in where.apart:
            barred |= {(rule.level, domain) for domain in self._domains(rule)}
        wanted = [(rule.level, self._domains(rule)) for rule in where.near if self._binds(rule, spec)]
        if not barred and not wanted:
            return None
        levels = {level for level, _ in barred}

        def allows(room: Room) -> bool:
            node = room.node.id
            if any((level, self._domain(node, level)) in barred for level in levels):
                return False
            return all(self._domain(node, level) in domains for level, domains in wanted)

        return allows

    def matters_to(self, spec: JobSpec) -> bool:
        """Does where this job may go hang on its own labels?"""
        return bool(spec.labels) and bool(self._forbidden.keys() & spec.labels.items())

    def _binds(self, rule: JobRule, spec: JobSpec) -> bool:
        """The first of its kind may go anywhere."""
        label = (rule.key, rule.value)
        is_first = not self._jobs[label] and spec.labels.get(rule.key) == rule.value
        return not is_first

    def _domains(self, rule: JobRule) -> set[Domain]:
        nodes = self._nodes_of.get((rule.key, rule.value), ())
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
