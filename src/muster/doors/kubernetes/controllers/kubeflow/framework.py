"""What the kinds of training jobs differ in, and the replicas that they want."""

from collections.abc import Callable, Mapping

from muster.doors.kubernetes.objects.value import JsonObject, Kind, items, name_of, part
from muster.model.value import Value

Environment = Callable[[JsonObject, "Replica"], list[JsonObject]]
"""The variables that every container of a replica is given."""

Beside = Callable[[JsonObject], list[JsonObject]]
"""What a job has beside its pods and their Services."""

Furnish = Callable[[JsonObject, "Replica", JsonObject], None]
"""Adds to the spec of a replica's pod what it finds there."""


def _nothing_beside(_: JsonObject) -> list[JsonObject]:
    return []


def _as_it_is(_job: JsonObject, _replica: "Replica", _spec: JsonObject) -> None:
    return


class Replica(Value):
    """One replica that a job wants: its role, its number in it, and what it is made of."""

    role: str
    index: int
    spec: JsonObject
    is_single: bool = False

    def name_in(self, job: JsonObject) -> str:
        """The name of its pod, and of the Service that leads to it."""
        name = f"{name_of(job)}-{self.role.lower()}"
        return name if self.is_single else f"{name}-{self.index}"


class Framework(Value):
    """One kind of training job.

    field: where its replicas are said. roles: in the order of ranks. once: roles that have one
    replica. unnumbered: roles whose pod has no number in its name.
    container: the one that trains, "" where that may have any name, and port_name: of the port at
    which replicas find each other.
    leader: the role with which a job ends; "" where all replicas must, or those that are counted,
    if some are. least: so many start
    together. restart: the policy of replicas that name none. defaults: of fields of the spec.
    """

    kind: Kind
    field: str
    roles: tuple[str, ...]
    container: str
    port_name: str
    environment: Environment
    leader: Callable[[JsonObject], str]
    least: Callable[[JsonObject], int]
    restart: str
    defaults: Mapping[str, object] = {}
    counted: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()
    unnumbered: frozenset[str] = frozenset()
    beside: Beside = _nothing_beside
    furnish: Furnish = _as_it_is

    def replicas(self, job: JsonObject) -> list[Replica]:
        """All of them, in the order of ranks."""
        specs = part(job, "spec", self.field)
        named = [each for each in self.roles if each in specs]
        return [
            Replica(
                role=role, index=index, spec=part(specs, role), is_single=role in self.unnumbered
            )
            for role in named
            for index in range(count_of(part(specs, role)))
        ]


def count_of(spec: JsonObject) -> int:
    """How many replicas of a role there are to be."""
    count = spec.get("replicas")
    return 1 if count is None else int(count)


def total_of(specs: JsonObject) -> int:
    """How many replicas of all roles there are to be."""
    return sum(count_of(part(specs, role)) for role in specs)


def least_of(job: JsonObject, specs: JsonObject) -> int:
    """So many replicas start together: as the policy says, or all."""
    said = part(policy_of(job), "schedulingPolicy").get("minAvailable")
    return total_of(specs) if said is None else max(1, min(int(said), total_of(specs)))


def policy_of(job: JsonObject) -> JsonObject:
    """How the job as a whole is run."""
    return part(job, "spec", "runPolicy")


def port_of(spec: JsonObject, container: str, port_name: str) -> int | None:
    """The port that a template names for meeting; None where it names none."""
    for own in items(spec, "template", "spec", "containers"):
        for each in items(own, "ports") if own.get("name") == container else ():
            if each.get("name") == port_name:
                return int(each["containerPort"])
    return None
