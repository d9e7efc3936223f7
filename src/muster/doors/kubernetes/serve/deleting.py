"""Deleting: at once, after a grace, or when all who have to finish something have done so."""

from muster.controller.use_cases.objects import ObjectChangedError
from muster.doors.kubernetes.objects.errors import (
    Reason,
    StatusError,
    bad_request,
    conflict,
    details_of,
    forbidden,
    not_found,
)
from muster.doors.kubernetes.objects.faces import as_shown
from muster.doors.kubernetes.objects.kinds import NAMESPACE
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    copied,
    items,
    metadata,
    name_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.serve.call import Query, flag, number, text
from muster.doors.kubernetes.serve.writing import (
    MODIFIED,
    TRIES,
    ObjectWriter,
    Request,
    Result,
)
from muster.model.kept_object import KeptObject
from muster.model.value import Instant, Value

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
FINALIZER_OF = {"Orphan": ORPHAN, "Foreground": FOREGROUND}
LONGEST_GRACE_S = 10 * 365 * 86_400
KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class Deletion(Value):
    """How something is deleted. grace_s: None leaves the choice to the object."""

    grace_s: int | None = None
    propagation: str = ""
    uid: str = ""
    version: str = ""


def deletion_of(options: JsonObject, query: Query) -> Deletion:
    """From the body, and from the query where the body says nothing."""
    given = options.get("gracePeriodSeconds")
    grace_s = number(query, "gracePeriodSeconds") if given is None else _seconds(given)
    propagation = str(options.get("propagationPolicy") or text(query, "propagationPolicy"))
    orphan = options.get("orphanDependents")
    if not propagation and (orphan or flag(query, "orphanDependents")):
        propagation = "Orphan"
    if propagation not in {"", "Background", *FINALIZER_OF}:
        raise bad_request(f"invalid propagationPolicy: {propagation}")
    wanted = part(options, "preconditions")
    return Deletion(
        grace_s=None if grace_s is None else max(0, min(grace_s, LONGEST_GRACE_S)),
        propagation=propagation,
        uid=str(wanted.get("uid") or ""),
        version=str(wanted.get("resourceVersion") or ""),
    )


def _seconds(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise bad_request("gracePeriodSeconds must be a whole number")
    return given


class Deleter:
    """Deletes objects through the writer."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    def delete(self, request: Request, deletion: Deletion, now: Instant) -> Result:
        """The object as it is now, or as it was if it is gone."""
        target = request.target
        for _ in range(TRIES):
            kept = self._writer.view.find(target.kind, target.namespace, target.name)
            if kept is None:
                raise not_found(target.kind, target.name)
            old = as_shown(target.kind, self._writer.view.read(kept))
            _demand_meant(request, old, kept, deletion)
            self._writer.demand_deletable(request, old)
            ending = self._ending(request, old, deletion, now)
            try:
                if ending is None:
                    self._writer.remove(request, kept)
                    return Result(object=old, gone=True)
                return self._writer.put_ending(request, kept, ending)
            except ObjectChangedError:
                continue
        raise conflict(target.kind, target.name, MODIFIED)

    def _ending(
        self, request: Request, old: JsonObject, deletion: Deletion, now: Instant
    ) -> JsonObject | None:
        """The object while it ends; None if it can go at once."""
        given = metadata(old)
        finalizers = self._finalizers(old, deletion)
        grace_s = self._grace_s(request, old, deletion)
        is_namespace = request.kind == NAMESPACE
        if (
            not finalizers
            and not grace_s
            and not (is_namespace and items(old, "spec", "finalizers"))
        ):
            return None
        new = copied(old)
        ours = metadata(new)
        ours["finalizers"] = finalizers
        if not finalizers:
            ours.pop("finalizers")
        left_s = int(given.get("deletionGracePeriodSeconds") or 0)
        if "deletionTimestamp" not in given or grace_s < left_s:
            ours["deletionTimestamp"] = stamp(Instant(now + grace_s * 1_000))
        if not is_namespace:
            ours["deletionGracePeriodSeconds"] = grace_s
        if "generation" in given and "deletionTimestamp" not in given:
            ours["generation"] = int(given["generation"]) + 1
        if is_namespace:
            new["status"] = {**part(new, "status"), "phase": "Terminating"}
        return new

    def _grace_s(self, request: Request, old: JsonObject, deletion: Deletion) -> int:
        own = request.blueprint.rules.grace_s
        if own is None:
            return 0
        wanted = own(old) if deletion.grace_s is None else deletion.grace_s
        if "deletionTimestamp" in metadata(old):
            return min(wanted, int(metadata(old).get("deletionGracePeriodSeconds") or 0))
        return wanted

    def _finalizers(self, old: JsonObject, deletion: Deletion) -> list[str]:
        """Who has to finish something: those there are, and what the deletion itself asks for."""
        known = [str(each) for each in metadata(old).get("finalizers") or ()]
        ours = FINALIZER_OF.get(deletion.propagation)
        kept = (
            [each for each in known if each not in FINALIZER_OF.values()]
            if deletion.propagation
            else known
        )
        if ours is not None and self._has_dependents(old):
            return [*kept, ours]
        return kept

    def _has_dependents(self, old: JsonObject) -> bool:
        uid = uid_of(old)
        return any(
            uid in each.body for each in self._writer.view.every() if each.key.name != name_of(old)
        )


def _demand_meant(request: Request, old: JsonObject, kept: KeptObject, deletion: Deletion) -> None:
    """StatusError if the request means another object, or one that must stay."""
    target = request.target
    if deletion.uid and deletion.uid != uid_of(old):
        text_ = (
            f"the UID in the precondition ({deletion.uid}) does not match the UID in record "
            f"({uid_of(old)}). The object might have been deleted and then recreated"
        )
        raise _changed(target.kind, target.name, text_)
    if deletion.version and deletion.version != str(kept.version):
        text_ = (
            f"the ResourceVersion in the precondition ({deletion.version}) does not match the "
            f"ResourceVersion in record ({kept.version}). The object might have been modified"
        )
        raise _changed(target.kind, target.name, text_)
    if target.kind == NAMESPACE and target.name in KEPT_NAMESPACES:
        raise forbidden(NAMESPACE, target.name, "this namespace may not be deleted")


def _changed(kind: Kind, name: str, why: str) -> StatusError:
    """Kubernetes names the kind here, where it names the resource elsewhere."""
    called = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return StatusError(
        Reason.CONFLICT,
        f'Operation cannot be fulfilled on {called} "{name}": {why}',
        details=details_of(kind, name, field="kind"),
    )
