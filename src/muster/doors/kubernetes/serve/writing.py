"""What changes objects: create, update, patch, apply and delete; checked, and then committed."""

import secrets
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from muster.controller.messages import Caller
from muster.controller.use_cases.objects import (
    ObjectChangedError,
    ObjectsWrite,
    ObjectWrite,
    Written,
)
from muster.controller.world.transaction import Transaction
from muster.doors.kubernetes.objects.admission_review import CONNECT, CREATE, DELETE, Asked
from muster.doors.kubernetes.objects.admission_review import UPDATE as CHANGED
from muster.doors.kubernetes.objects.errors import (
    Reason,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    not_found,
)
from muster.doors.kubernetes.objects.faces import as_kept, as_shown
from muster.doors.kubernetes.objects.kinds import NAMESPACE
from muster.doors.kubernetes.objects.managing import (
    APPLY,
    UPDATE,
    Change,
    Manager,
    applied,
    updated,
)
from muster.doors.kubernetes.objects.metadata import Creation
from muster.doors.kubernetes.objects.strategy import (
    Blueprint,
    before_admission,
    is_done_with,
    new_object,
    next_object,
)
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    copied,
    metadata,
    name_of,
    namespace_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.sealing import Sealing
from muster.doors.kubernetes.serve.view import Lookup
from muster.model.kept_object import KeptObject, ObjectKey, RemovedObject
from muster.model.value import Instant, Value, replace

TRIES = 20
"""So often others may write first before a change that names no version is given up."""

MOST_OBJECT = 1_536 * 1_024
"""In bytes, as it is kept."""

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names: without vowels, so that no words come of them."""

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

CREATED_BY_UPDATE = frozenset(
    "Lease Event Endpoints LimitRange Role RoleBinding ClusterRole ClusterRoleBinding".split()
)
"""Kinds of which a PUT makes a new object where there is none."""

STATUS_FIELDS = ("f:status",)

Commit = Callable[[ObjectsWrite], "Future[tuple[Written, ...]]"]
Mutate = Callable[[JsonObject | None], JsonObject | None]
"""What becomes of an object; None: it must be there, and is not."""


Admit = Callable[[JsonObject, JsonObject | None], None]
"""StatusError: the new object, in the place of the old one if there is one, must not be."""


class Author(Value):
    """Who writes. agent: what their program calls itself. groups: what they belong to."""

    caller: Caller
    agent: str = ""
    groups: tuple[str, ...] = ()


class Request(Value):
    """One write: of what, how, by whom. admit: looks at the object last, and may refuse it."""

    target: Target
    writing: Writing
    author: Author
    blueprint: Blueprint
    admit: Admit | None = None

    @property
    def kind(self) -> Kind:
        return self.target.kind

    def manager(self, operation: str) -> Manager:
        """Who manages the fields that this writes."""
        return Manager(
            name=self.writing.manager or self.author.agent or "unknown",
            operation=operation,
            version=self.kind.api_version,
            subresource=self.target.subresource,
        )


Then = Callable[[Transaction], None]
"""What else is done in a transaction."""


class Entry(Protocol):
    """Looks at objects for those whose they are: see `entrance`."""

    def prepared(self, kind: Kind, given: JsonObject, namespace: str, by: Caller) -> JsonObject:
        """What is added before the object is looked at; StatusError when it may not be."""
        ...

    def changed(self, kind: Kind, new: JsonObject, old: JsonObject, by: Caller) -> JsonObject:
        """A changed object with what only Muster says of it; StatusError when it may not be."""
        ...

    def entering(self, kind: Kind, new: JsonObject, by: Caller) -> Then | None:
        """What happens in the transaction that writes a new object."""
        ...

    def changing(self, kind: Kind, old: JsonObject, new: JsonObject, by: Caller) -> Then | None:
        """What happens in the transaction that writes another version of an object."""
        ...

    def asked_to_leave(self, kind: Kind, old: JsonObject, by: Caller) -> None:
        """Somebody deletes an object, which may yet take a while; StatusError if they may not."""
        ...

    def leaving(self, kind: Kind, name: str, by: Caller) -> Then | None:
        """What happens in the transaction that takes an object away."""
        ...

    def seeing(self, view: Lookup) -> "Entry":
        """The same, for somebody who sees what is not committed yet."""
        ...


class Say(Protocol):
    """Those who have a say before an object is written: see `webhooks`."""

    def changed(self, asked: Asked) -> JsonObject | None:
        """The object as they want it; None if they leave it as it is."""
        ...

    def demand_allowed(self, asked: Asked) -> None:
        """StatusError if one of them refuses it."""
        ...


class Result(Value):
    """An object after a write. created: it is new. gone: it was removed by it."""

    object: JsonObject
    created: bool = False
    gone: bool = False


class ObjectWriter:
    """Writes objects: what clients ask for, and what controllers find necessary."""

    def __init__(
        self, view: Lookup, commit: Commit, sealing: Sealing, clock: Callable[[], Instant]
    ) -> None:
        self.view = view
        self._commit = commit
        self._sealing = sealing
        self._clock = clock
        self.entry: Entry | None = None
        self.say: Say | None = None

    def now(self) -> str:
        """As objects write it."""
        return stamp(self._clock())

    def instant(self) -> Instant:
        """The same, to reckon with."""
        return self._clock()

    def create(self, request: Request, given: JsonObject) -> Result:
        """A new object; where its name is generated, another one if that is taken."""
        self._demand_namespace(request, name_of(given))
        for _ in range(TRIES):
            try:
                return Result(object=self._create(request, given), created=True)
            except StatusError as error:
                if name_of(given) or error.reason is not Reason.ALREADY_EXISTS:
                    raise
        raise already_exists(request.kind, str(metadata(given).get("generateName")))

    def update(self, request: Request, given: JsonObject) -> Result:
        """An object as it is to be."""

        def mutate(old: JsonObject | None) -> JsonObject | None:
            may_begin = request.kind.kind in CREATED_BY_UPDATE and not request.target.subresource
            return given if old is not None or may_begin else None

        return self.change(request, mutate)

    def apply(self, request: Request, config: JsonObject) -> Result:
        """Server-side apply: the fields that are named, and no others."""
        named = {**config, "metadata": {**metadata(config), "name": request.target.name}}

        def mutate(old: JsonObject | None) -> JsonObject | None:
            live = old or {**request.blueprint.empty(), **_type_of(request.kind)}
            change = self._change_of(request, live, APPLY)
            found = applied(change, named, force=request.writing.force)
            # What the configuration says is nothing is not there.
            return request.blueprint.in_shape(found)

        return self.change(request, mutate, manages=False)

    def change(self, request: Request, mutate: Mutate, *, manages: bool = True) -> Result:
        """What a function makes of the object, tried again when others were quicker.

        manages: who manages which field is worked out here, and not by the function.
        """
        target = request.target
        for _ in range(TRIES):
            kept = self.view.find(target.kind, target.namespace, target.name)
            old = None if kept is None else request.blueprint.read(self.view.read(kept))
            new = mutate(None if old is None else copied(old))
            if new is None:
                raise not_found(target.kind, target.name)
            if kept is None or old is None:
                self._demand_namespace(request, target.name)
                return Result(object=self._create(request, new, manages=manages), created=True)
            _demand_same(request, new, old, kept)
            try:
                return self._replace(request, kept, new, manages=manages)
            except ObjectChangedError:
                # Who named a version gets to know that it is not the last one.
                continue
        raise conflict(target.kind, target.name, MODIFIED)

    def demand_deletable(self, request: Request, old: JsonObject) -> None:
        """StatusError if somebody who has a say wants it to stay."""
        if self.entry is not None and not request.writing.dry_run:
            self.entry.asked_to_leave(request.kind.kept, old, request.author.caller)
        self._heard(request, DELETE, None, old)
        self._demand_allowed(request, DELETE, None, old)

    def demand_connectable(self, request: Request, options: JsonObject) -> None:
        """StatusError if somebody who has a say keeps them out. options: what they want inside."""
        self._demand_allowed(request, CONNECT, options, None)

    def remove(self, request: Request, kept: KeptObject) -> None:
        """Take an object away. ObjectChangedError: it is another one by now."""
        if request.writing.dry_run:
            return
        by, name = request.author.caller, kept.key.name
        also = None if self.entry is None else self.entry.leaving(request.kind.kept, name, by)
        gone = ObjectWrite(key=kept.key, seen=kept.version, body=None)
        self._write(request, "delete", gone, also)

    def put_ending(self, request: Request, kept: KeptObject, new: JsonObject) -> Result:
        """Write an object that is being deleted. ObjectChangedError: it is another one by now."""
        if request.writing.dry_run or new == as_shown(request.kind, self.view.read(kept)):
            return Result(object=new)
        return Result(object=self._put(request, "delete", (kept.key, kept.version), new))

    def put_as_is(self, request: Request, kept: KeptObject, new: JsonObject) -> None:
        """Write what follows from something else, as kubelets and schedulers do: it is so."""
        if request.blueprint.has_status:
            new = self._with_status_managed(request, self.view.read(kept), new)
        self._put(request, None, (kept.key, kept.version), new)

    def put_placed(self, request: Request, kept: KeptObject, new: JsonObject) -> None:
        """Write a pod that somebody gave its place, and have it start there."""
        old, by = self.view.read(kept), request.author.caller
        also = None if self.entry is None else self.entry.changing(request.kind.kept, old, new, by)
        if not request.writing.dry_run:
            self._put(request, "update", (kept.key, kept.version), new, also)

    def make_as_is(self, request: Request, new: JsonObject) -> None:
        """Write a new object that follows from something else, and from which nothing follows."""
        target = request.target
        key = _key(target.kind, target.namespace, target.name)
        self._put(request, None, (key, None), new)

    def _with_status_managed(
        self, request: Request, old: JsonObject, new: JsonObject
    ) -> JsonObject:
        """Whoever says how an object is manages its status."""
        status = replace(request, target=replace(request.target, subresource="status"))
        live = {**new, "status": old.get("status", {})}
        return updated(self._change_of(status, live, UPDATE), new)

    def _create(self, request: Request, given: JsonObject, *, manages: bool = True) -> JsonObject:
        target, now = request.target, self.now()
        made = Creation(uid=str(uuid.uuid4()), suffix=_suffix(), now=now)
        by, written = request.author.caller, given
        if self.entry is not None:
            given = self.entry.prepared(request.kind.kept, given, target.namespace, by)
        new = new_object(request.blueprint, given, target.namespace, made)
        changed = self._heard(request, CREATE, new, None)
        if changed is not None:
            if self.entry is not None:
                changed = self.entry.prepared(request.kind.kept, changed, target.namespace, by)
            new = new_object(request.blueprint, changed, target.namespace, made)
        if request.admit is not None:
            request.admit(new, None)
        self._demand_allowed(request, CREATE, new, None)
        if manages:
            live = {**request.blueprint.empty(), **_type_of(request.kind)}
            own = before_admission(request.blueprint, written, target.namespace, made)
            managed = metadata(updated(self._change_of(request, live, UPDATE), own))
            metadata(new).pop("managedFields", None)
            if "managedFields" in managed:
                metadata(new)["managedFields"] = managed["managedFields"]
        key = _key(request.kind, namespace_of(new), name_of(new))
        if self.view.find(request.kind, key.namespace, key.name) is not None:
            raise already_exists(request.kind, key.name)
        also = None if self.entry is None else self.entry.entering(request.kind.kept, new, by)
        if request.writing.dry_run:
            return new
        try:
            return self._put(request, "create", (key, None), new, also)
        except ObjectChangedError:
            raise already_exists(request.kind, key.name) from None

    def _replace(
        self, request: Request, kept: KeptObject, given: JsonObject, *, manages: bool
    ) -> Result:
        old = request.blueprint.read(self.view.read(kept))
        subresource = request.target.subresource
        new = next_object(request.blueprint, given, old, subresource)
        changed = self._heard(request, CHANGED, new, old)
        if changed is not None:
            new = next_object(request.blueprint, changed, old, subresource)
        if self.entry is not None:
            new = self.entry.changed(request.kind.kept, new, old, request.author.caller)
        if request.admit is not None:
            request.admit(new, old)
        self._demand_allowed(request, CHANGED, new, old)
        if manages:
            new = updated(self._change_of(request, old, UPDATE), new)
        metadata(new)["resourceVersion"] = str(kept.version)
        if is_done_with(new):
            self.remove(request, kept)
            return Result(object=new, gone=True)
        if new == old or request.writing.dry_run:
            return Result(object=new)
        by = request.author.caller
        also = None if self.entry is None else self.entry.changing(request.kind.kept, old, new, by)
        return Result(object=self._put(request, "update", (kept.key, kept.version), new, also))

    def _heard(
        self, request: Request, operation: str, new: JsonObject | None, old: JsonObject | None
    ) -> JsonObject | None:
        if self.say is None:
            return None
        changed = self.say.changed(_asked(request, operation, new, old))
        return None if changed is None else as_shown(request.kind, changed)

    def _demand_allowed(
        self, request: Request, operation: str, new: JsonObject | None, old: JsonObject | None
    ) -> None:
        if self.say is not None:
            self.say.demand_allowed(_asked(request, operation, new, old))

    def _put(
        self,
        request: Request,
        action: str | None,
        place: tuple[ObjectKey, int | None],
        new: JsonObject,
        also: Then | None = None,
    ) -> JsonObject:
        key, seen = place
        body = self._sealing.closed(key, as_kept(request.kind, new))
        _demand_small(body)
        write = ObjectWrite(key=key, seen=seen, body=body)
        written = self._write(request, action, write, also)
        if isinstance(written, RemovedObject):
            raise not_found(request.kind, key.name)
        return as_shown(request.kind, self.view.read(written))

    def _write(
        self,
        request: Request,
        action: str | None,
        write: ObjectWrite,
        also: Then | None = None,
    ) -> Written:
        def then(transaction: Transaction) -> None:
            namespace_is_there(transaction)
            if also is not None:
                also(transaction)

        def namespace_is_there(transaction: Transaction) -> None:
            # Looked at again where nothing can come between: it may have begun to end.
            is_new = write.seen is None and write.body is not None
            if is_new and write.key.namespace:
                kept = transaction.object(_key(NAMESPACE, "", write.key.namespace))
                found = None if kept is None else self.view.read(kept)
                _demand_open(request, found, write.key.name)

        wanted = ObjectsWrite(
            caller=request.author.caller,
            writes=(write,),
            action=action,
            also=then,
        )
        return self._commit(wanted).result()[0]

    def _change_of(self, request: Request, live: JsonObject, operation: str) -> Change:
        is_status = request.target.subresource == "status"
        has_status = request.blueprint.has_status
        return Change(
            live=live,
            manager=request.manager(operation),
            now=self.now(),
            schema=request.blueprint.schema,
            ignored=(STATUS_FIELDS,) if has_status and not is_status else (),
        )

    def _demand_namespace(self, request: Request, called: str) -> None:
        name = request.target.namespace
        if name:
            _demand_open(request, self.view.get(NAMESPACE, "", name), called)


def _demand_open(request: Request, namespace: JsonObject | None, called: str = "") -> None:
    """StatusError unless new objects may be created in this namespace. called: the new one."""
    name = request.target.namespace
    if namespace is None:
        raise not_found(NAMESPACE, name)
    if part(namespace, "status").get("phase") == "Terminating" or metadata(namespace).get(
        "deletionTimestamp"
    ):
        text = f"unable to create new content in namespace {name} because it is being terminated"
        error = forbidden(request.kind, called or request.target.name, text)
        details = {
            **(error.details or {}),
            "causes": [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {name} is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        }
        raise StatusError(error.reason, error.message, details=details)


def _demand_same(request: Request, new: JsonObject, old: JsonObject, kept: KeptObject) -> None:
    """StatusError if the writer means another object, or another version of it."""
    target = request.target
    version = metadata(new).get("resourceVersion")
    if version not in {None, "", str(kept.version)}:
        raise conflict(target.kind, target.name, MODIFIED)
    name = name_of(new)
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    is_whole = request.writing.is_whole
    if is_whole and uid_of(new) and uid_of(new) != uid_of(old):
        text = (
            f"Precondition failed: UID in precondition: {uid_of(new)}, "
            f"UID in object meta: {uid_of(old)}"
        )
        raise conflict(target.kind, target.name, text)


def _asked(
    request: Request, operation: str, new: JsonObject | None, old: JsonObject | None
) -> Asked:
    """As those are asked who have a say: about objects as they are kept, however written."""
    target = request.target
    return Asked(
        operation=operation,
        kind=target.kind.kept,
        subresource=target.subresource,
        name=target.name or name_of(new or {}),
        namespace=target.namespace,
        object=None if new is None else as_kept(target.kind, new),
        old=None if old is None else as_kept(target.kind, old),
        user=request.author.caller.user,
        groups=request.author.groups,
        dry_run=request.writing.dry_run,
    )


def _demand_small(body: str) -> None:
    """As much as etcd takes; what is read often must not be large."""
    if len(body) > MOST_OBJECT:
        text = f"Request entity too large: limit is {MOST_OBJECT}"
        raise StatusError(Reason.REQUEST_ENTITY_TOO_LARGE, text)


def _type_of(kind: Kind) -> JsonObject:
    return {"kind": kind.kind, "apiVersion": kind.api_version}


def _key(kind: Kind, namespace: str, name: str) -> ObjectKey:
    group, resource = kind.shelf
    return ObjectKey(group=group, resource=resource, namespace=namespace, name=name)


def _suffix() -> str:
    return "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(5))
