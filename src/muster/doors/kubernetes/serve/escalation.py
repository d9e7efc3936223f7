"""Nobody gives away rights that they do not have, by making roles or by binding people to them."""

from muster.doors.kubernetes.objects.errors import forbidden
from muster.doors.kubernetes.objects.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    RBAC,
    ROLE,
    ROLE_BINDING,
)
from muster.doors.kubernetes.objects.rbac import Act, User, missing
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    items,
    name_of,
    namespace_of,
    part,
)
from muster.doors.kubernetes.serve.access import Access, Identity
from muster.doors.kubernetes.serve.view import ObjectView
from muster.doors.kubernetes.serve.writing import Admit

GUARDED = frozenset({ROLE, CLUSTER_ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING})


def no_escalation(kind: Kind, identity: Identity, access: Access, view: ObjectView) -> Admit | None:
    """Refuses roles and bindings that give more than the writer has; None for other kinds."""
    if kind not in GUARDED:
        return None

    def admit(new: JsonObject, old: JsonObject | None) -> None:
        namespace = namespace_of(new)
        is_role = kind in {ROLE, CLUSTER_ROLE}
        wanted = items(new, "rules") if is_role else _bound_rules(new, view)
        known = [] if old is None else items(old, "rules") if is_role else _bound_rules(old, view)
        if old is not None and wanted == known and items(new, "subjects") == items(old, "subjects"):
            return
        if access.allowed(identity, _free_pass(kind, new)) is not None:
            return
        gained = missing(access.rules_for(identity, namespace), wanted)
        if gained:
            text = (
                f"user {_named(identity.user)} is attempting to grant RBAC permissions "
                "not currently held:\n" + "\n".join(gained)
            )
            raise forbidden(kind, name_of(new), text)

    return admit


def _free_pass(kind: Kind, new: JsonObject) -> Act:
    """The right that lets one give away more than one has."""
    if kind in {ROLE, CLUSTER_ROLE}:
        return Act(
            verb="escalate",
            group=RBAC,
            resource=kind.plural,
            namespace=namespace_of(new),
            name=name_of(new),
        )
    reference = part(new, "roleRef")
    plural = CLUSTER_ROLE.plural if reference.get("kind") == "ClusterRole" else ROLE.plural
    return Act(
        verb="bind",
        group=RBAC,
        resource=plural,
        namespace=namespace_of(new),
        name=str(reference.get("name")),
    )


def _bound_rules(binding: JsonObject, view: ObjectView) -> list[JsonObject]:
    reference = part(binding, "roleRef")
    name = str(reference.get("name"))
    if reference.get("kind") == "ClusterRole":
        role = view.get(CLUSTER_ROLE, "", name)
    else:
        role = view.get(ROLE, namespace_of(binding), name)
    return items(role or {}, "rules")


def _named(user: User) -> str:
    groups = " ".join(f'"{each}"' for each in user.groups)
    return f'"{user.name}" (groups=[{groups}])'
