"""Rights by roles, as Kubernetes has them: rules, and who is bound to them. Pure."""

from collections.abc import Iterable, Mapping

from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, namespace_of, part
from muster.model.value import Value

ANY = "*"
ACCOUNT_PREFIX = "system:serviceaccount:"


class User(Value):
    """Who asks, as Kubernetes names them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, list[str]] = {}


class Act(Value):
    """What somebody wants to do. path: for what is no resource, such as `/version`."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Group and plural."""
        return self.group, self.resource

    @property
    def whole_resource(self) -> str:
        """`pods`, or `pods/log`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Allowed(Value):
    """Somebody may. why: which binding says so."""

    why: str


class RoleBook:
    """The roles and bindings that there are."""

    def __init__(
        self,
        cluster_roles: Iterable[JsonObject],
        roles: Iterable[JsonObject],
        cluster_bindings: Iterable[JsonObject],
        bindings: Iterable[JsonObject],
    ) -> None:
        self._cluster_roles = {name_of(each): each for each in cluster_roles}
        self._roles = {(namespace_of(each), name_of(each)): each for each in roles}
        self._cluster_bindings = tuple(cluster_bindings)
        self._bindings = tuple(bindings)

    def allowed(self, user: User, act: Act) -> Allowed | None:
        """Does some binding allow it?"""
        for binding, rule in self._rules(user, act.namespace):
            if permits(rule, act):
                reference = part(binding, "roleRef")
                kind, name = binding.get("kind"), name_of(binding)
                place = namespace_of(binding)
                shown = f"{name}/{place}" if place else name
                who = _bound_as(binding, user)
                return Allowed(
                    why=f'RBAC: allowed by {kind} "{shown}" of {reference.get("kind")} '
                    f'"{reference.get("name")}" to {who}'
                )
        return None

    def rules_for(self, user: User, namespace: str) -> list[JsonObject]:
        """All rules that hold for a user in a namespace."""
        return [rule for _, rule in self._rules(user, namespace)]

    def rules_of_role(self, name: str) -> list[JsonObject]:
        """The rules of a ClusterRole."""
        return items(self._cluster_roles.get(name, {}), "rules")

    def _rules(self, user: User, namespace: str) -> Iterable[tuple[JsonObject, JsonObject]]:
        for binding in self._cluster_bindings:
            if _bound_as(binding, user):
                role = self._cluster_roles.get(str(part(binding, "roleRef").get("name")), {})
                yield from ((binding, rule) for rule in items(role, "rules"))
        for binding in self._bindings:
            if namespace and namespace_of(binding) == namespace and _bound_as(binding, user):
                yield from ((binding, rule) for rule in items(self._role_of(binding), "rules"))

    def _role_of(self, binding: JsonObject) -> JsonObject:
        reference = part(binding, "roleRef")
        name = str(reference.get("name"))
        if reference.get("kind") == "ClusterRole":
            return self._cluster_roles.get(name, {})
        return self._roles.get((namespace_of(binding), name), {})


def permits(rule: JsonObject, act: Act) -> bool:
    """Does one rule allow it?"""
    verbs = items(rule, "verbs")
    if act.verb not in verbs and ANY not in verbs:
        return False
    if act.path:
        return any(_fits_path(each, act.path) for each in items(rule, "nonResourceURLs"))
    groups = items(rule, "apiGroups")
    if act.group not in groups and ANY not in groups:
        return False
    names = items(rule, "resourceNames")
    if names and act.name not in names:
        return False
    return any(_fits_resource(each, act) for each in items(rule, "resources"))


def _fits_resource(given: str, act: Act) -> bool:
    if given in {ANY, act.whole_resource}:
        return True
    return bool(act.subresource) and given == f"{ANY}/{act.subresource}"


def _fits_path(given: str, path: str) -> bool:
    return given in {ANY, path} or (given.endswith(ANY) and path.startswith(given[:-1]))


def _bound_as(binding: JsonObject, user: User) -> str:
    """As whom a binding names the user; empty if it does not."""
    for subject in items(binding, "subjects"):
        name = str(subject.get("name"))
        match subject.get("kind"):
            case "User" if name in {user.name, ANY}:
                return f'User "{name}"'
            case "Group" if name in user.groups:
                return f'Group "{name}"'
            case "ServiceAccount":
                place = str(subject.get("namespace") or namespace_of(binding))
                if user.name == f"{ACCOUNT_PREFIX}{place}:{name}":
                    return f'ServiceAccount "{name}/{place}"'
            case _:
                pass
    return ""


def missing(owned: Iterable[JsonObject], wanted: Iterable[JsonObject]) -> list[str]:
    """What other rules give beyond those that somebody has, as Kubernetes writes it; by text."""
    have = tuple(owned)
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for rule in wanted:
        for place, act in _acts_of(rule):
            is_there = any(permits(each, act) for each in have)
            if not is_there and act.verb not in verbs.setdefault(place, []):
                verbs[place].append(act.verb)
    return sorted(_shown(place, each) for place, each in verbs.items() if each)


def _acts_of(rule: JsonObject) -> Iterable[tuple[tuple[str, str, str], Act]]:
    """Everything that a rule gives, each with the place by which it is counted."""
    for verb in items(rule, "verbs"):
        for path in items(rule, "nonResourceURLs"):
            yield ("", "", path), Act(verb=verb, path=path)
        for group in items(rule, "apiGroups"):
            for whole in items(rule, "resources"):
                resource, _, sub = str(whole).partition("/")
                for name in items(rule, "resourceNames") or [""]:
                    act = Act(verb=verb, group=group, resource=resource, subresource=sub, name=name)
                    yield (group, whole, name), act


def _shown(place: tuple[str, str, str], verbs: list[str]) -> str:
    group, resource, name = place
    said = f"Verbs:[{' '.join(map(_quoted, verbs))}]"
    if not resource:
        return f"{{NonResourceURLs:[{_quoted(name)}], {said}}}"
    names = f"ResourceNames:[{_quoted(name)}], " if name else ""
    return f"{{APIGroups:[{_quoted(group)}], Resources:[{_quoted(resource)}], {names}{said}}}"


def _quoted(text: str) -> str:
    return f'"{text}"'
