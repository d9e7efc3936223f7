"""The API behind its wires: one request in, one answer out."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.doors.kubernetes.controllers.scale import scale_of
from muster.doors.kubernetes.foreign.definitions import TEXT, is_built_in
from muster.doors.kubernetes.foreign.kinds import foreign_kind, foreign_warnings
from muster.doors.kubernetes.objects import discovery, openapi, openapi_protobuf
from muster.doors.kubernetes.objects.errors import (
    DeniedError,
    Reason,
    StatusError,
    bad_request,
)
from muster.doors.kubernetes.objects.kept import warnings_about
from muster.doors.kubernetes.objects.kinds import (
    CRD,
    MEASURED,
    MUTATING_WEBHOOK,
    POD,
    POD_DISRUPTION_BUDGET,
    VALIDATING_WEBHOOK,
)
from muster.doors.kubernetes.objects.parsing import UnreadableError
from muster.doors.kubernetes.objects.rbac import Act
from muster.doors.kubernetes.objects.selectors import parse_labels
from muster.doors.kubernetes.objects.unread import unread_conditions, unread_rules
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    metadata,
    namespace_of,
    uid_of,
)
from muster.doors.kubernetes.serve.access import Access, Identity
from muster.doors.kubernetes.serve.binding import bind
from muster.doors.kubernetes.serve.body import Sent, document, expected, shaped
from muster.doors.kubernetes.serve.call import (
    Query,
    Target,
    Writing,
    flag,
    is_version,
    listing_of,
    path_of,
    target_of,
    text,
    verb_of,
    writing_of,
)
from muster.doors.kubernetes.serve.deleting import Deleter, Deletion, deletion_of
from muster.doors.kubernetes.serve.escalation import no_escalation
from muster.doors.kubernetes.serve.evicting import Evictor
from muster.doors.kubernetes.serve.form import (
    JSON,
    YAML,
    Form,
    Shape,
    form_of,
    in_form,
    no_table,
)
from muster.doors.kubernetes.serve.measured import Measured
from muster.doors.kubernetes.serve.patching import Patcher, patched_by
from muster.doors.kubernetes.serve.pod_logs import LogStream, PodLogs
from muster.doors.kubernetes.serve.pod_visits import VISITS, PlainError, PodVisits, Visitor
from muster.doors.kubernetes.serve.reading import Reader
from muster.doors.kubernetes.serve.reviews import Reviews
from muster.doors.kubernetes.serve.scaling import change_scale
from muster.doors.kubernetes.serve.served import ServedKinds
from muster.doors.kubernetes.serve.view import ObjectView
from muster.doors.kubernetes.serve.watching import Wanted, Watch
from muster.doors.kubernetes.serve.writing import Author, ObjectWriter, Request
from muster.model.value import Instant, Value, replace

OF_RUNNING = frozenset({"log", "ephemeralcontainers", *VISITS})
NO_SNIFFING = ("X-Content-Type-Options", "nosniff")
NO_SUCH = "the server could not find the requested resource"
"""As a server answers that has no ephemeral containers, which `kubectl debug` explains."""

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


@dataclass(frozen=True, kw_only=True)
class Api:
    """The parts that answer."""

    view: ObjectView
    kinds: ServedKinds
    access: Access
    reader: Reader
    writer: ObjectWriter
    reviews: Reviews
    logs: PodLogs
    visits: PodVisits
    measured: Measured
    clock: Callable[[], Instant]
    address: str


class Ask(Value):
    """One request, as it came."""

    method: str
    path: str
    query: Query
    headers: Mapping[bytes, bytes]
    body: bytes = b""
    is_upgraded: bool = False

    def header(self, name: bytes) -> str:
        """A header; empty where it is not given."""
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def is_for_people(self) -> bool:
        """Does a person read the answer as it is?"""
        agent = self.header(b"user-agent")
        return agent.startswith(("curl", "Wget", "Mozilla/"))


class Answer(Value):
    """What is sent back."""

    code: int
    body: bytes
    media: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


Found = Answer | Watch | LogStream | Visitor


def answer(api: Api, ask: Ask) -> Found:
    """Answer a request, whatever it is; it raises nothing that a client could cause."""
    try:
        return _Answering(api, ask).answer()
    except StatusError as error:
        return error_answer(error, ask)
    except RecursionError:
        return error_answer(bad_request("the object is nested too deeply"), ask)


def is_still_allowed(api: Api, ask: Ask) -> bool:
    """May who asked still ask it? Rights and tokens end while an answer goes on."""
    try:
        _Answering(api, ask).demanded()
    except StatusError:
        return False
    return True


def error_answer(error: StatusError, ask: Ask) -> Answer:
    """An error as clients read it."""
    if isinstance(error, (NoPageError, PlainError)):
        end = "\n" if isinstance(error, NoPageError) else ""
        body = f"{error.message}{end}".encode()
        return Answer(
            code=error.code, body=body, media="text/plain; charset=utf-8", headers=(NO_SNIFFING,)
        )
    is_indented = ask.is_for_people or error.reason is Reason.NOT_ACCEPTABLE
    is_yaml = ask.header(b"accept").startswith(YAML)
    form = Form(media=YAML if is_yaml else JSON)
    retry = (error.details or {}).get("retryAfterSeconds")
    headers = (("Retry-After", str(retry)),) if retry else ()
    if isinstance(error, DeniedError):
        headers = (*headers, NO_SNIFFING)
    return Answer(
        code=error.code,
        body=in_form(error.status(), form, indented=is_indented),
        media=form.media,
        headers=headers,
    )


class _Answering:
    """The answer to one request, while it is worked out."""

    def __init__(self, api: Api, ask: Ask) -> None:
        self._api = api
        self._ask = ask
        self._warnings: tuple[str, ...] = ()

    def answer(self) -> Found:
        identity, named = self.demanded()
        if named is None:
            return self._other(identity)
        verb, target = named
        _demand_verb(verb, target)
        return self._resource(verb, target, identity)

    def demanded(self) -> tuple[Identity, tuple[str, Target] | None]:
        """Who asks, and for what; None: it is no resource. StatusError unless they may."""
        access, ask = self._api.access, self._ask
        identity = access.impersonated(access.identity(ask.headers), ask.headers)
        path = path_of(ask.path)
        if path is None:
            return identity, None
        target = target_of(path, self._api.kinds.by_place())
        if target is None:
            access.demand(identity, Act(verb=ask.method.lower(), path=ask.path))
            known = discovery.versions(self._api.kinds.all(), path.group)
            raise no_resource() if path.version in known else no_page()
        verb = verb_of(ask.method, target, ask.query, is_watch=path.is_watch)
        access.demand(identity, act_of(verb, target))
        access.demand_owner(identity, act_of(verb, target))
        return identity, (verb, target)

    # What is no resource.

    def _other(self, identity: Identity) -> Answer:
        ask, path = self._ask, self._ask.path
        self._api.access.demand(identity, Act(verb=ask.method.lower(), path=path))
        if path.rstrip("/") in HEALTH or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return _health(path.strip("/"), verbose="verbose" in ask.query)
        if ask.method not in {"GET", "HEAD"}:
            raise not_allowed()
        found = self._document(path.rstrip("/") or "/")
        if found is None:
            raise no_page()
        return found

    def _document(self, path: str) -> Answer | None:
        kinds, parts = self._api.kinds.all(), path.strip("/").split("/")
        match parts:
            case [""]:
                return self._plain({"paths": _all_paths(kinds)}, indented=True)
            case ["version"]:
                return self._plain(discovery.VERSION, indented=True)
            case ["api"] | ["apis"]:
                return self._discovery(kinds, core=parts == ["api"])
            case ["api", version]:
                return self._resources(kinds, "", version)
            case ["apis", group]:
                is_known = group in discovery.groups(kinds)
                return self._plain(discovery.one_group(kinds, group)) if is_known else None
            case ["apis", group, version]:
                return self._resources(kinds, group, version)
            case ["openapi", "v2"]:
                return self._swagger(openapi.swagger(kinds, self._api.kinds.schema))
            case ["openapi", "v3"]:
                return self._tagged(self._api.kinds.openapi_index())
            case ["openapi", "v3", *rest] if "/".join(rest) in openapi.group_versions(kinds):
                return self._tagged(self._api.kinds.openapi_document("/".join(rest)))
            case _:
                return None

    def _discovery(self, kinds: tuple[Kind, ...], *, core: bool) -> Answer:
        form = form_of(self._ask.header(b"accept"), discovery=True)
        if form.shape is Shape.DISCOVERY:
            found = discovery.aggregated(kinds, core=core, version=form.version)
            media = f"application/json;g=apidiscovery.k8s.io;v={form.version};as={form.shape}"
            return self._tagged(found, media)
        address = self._api.address
        return self._plain(discovery.api_versions(address) if core else discovery.group_list(kinds))

    def _resources(self, kinds: tuple[Kind, ...], group: str, version: str) -> Answer | None:
        if version not in discovery.versions(kinds, group):
            return None
        return self._plain(discovery.resource_list(kinds, group, version))

    def _plain(self, found: JsonObject, *, indented: bool = False) -> Answer:
        is_indented = indented or self._ask.is_for_people
        return Answer(code=200, body=in_form(found, Form(), indented=is_indented))

    def _swagger(self, found: JsonObject) -> Answer:
        if openapi_protobuf.ASKED_AS in self._ask.header(b"accept"):
            return self._kept(openapi_protobuf.document(found), openapi_protobuf.MEDIA)
        return self._tagged(found)

    def _tagged(self, found: JsonObject, media: str = JSON) -> Answer:
        return self._kept(in_form(found, Form(), indented=False), media)

    def _kept(self, body: bytes, media: str) -> Answer:
        """A document that clients keep until it changes."""
        tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = (("Etag", tag), ("Vary", "Accept"), ("Cache-Control", "public"))
        if self._ask.header(b"if-none-match") == tag:
            return Answer(code=304, body=b"", media=media, headers=headers)
        return Answer(code=200, body=body, media=media, headers=headers)

    # Resources.

    def _resource(self, verb: str, target: Target, identity: Identity) -> Found:
        if target.kind == POD and target.subresource in OF_RUNNING:
            return self._of_running(verb, target, identity)
        if target.kind in MEASURED:
            wanted = parse_labels(listing_of(self._ask.query).labels)
            return self._plain(self._api.measured.answer(target, wanted))
        form = form_of(self._ask.header(b"accept"))
        match verb:
            case "get":
                return self._get(target, form)
            case "list":
                page = self._api.reader.page(target, listing_of(self._ask.query))
                include = text(self._ask.query, "includeObject")
                shown = self._api.reader.shown_list(page, target.kind, form, include)
                return self._given(200, shown, form)
            case "watch":
                return self._watch(target, form)
            case "create":
                return self._create(target, identity, form)
            case "update" | "patch":
                return self._change(verb, target, identity, form)
            case "delete":
                return self._delete(target, identity, form)
            case "deletecollection":
                return self._delete_all(target, identity, form)
            case _:
                raise not_allowed()

    def _of_running(self, verb: str, target: Target, identity: Identity) -> Found:
        """What there is of a pod because it runs."""
        if target.subresource == "log":
            return self._api.logs.stream(target, self._ask.query, identity)
        if target.subresource in VISITS:
            return self._visitor(target, identity)
        found = self._api.reader.get(target)
        if verb == "get":
            return self._object(200, found, target, form_of(self._ask.header(b"accept")))
        raise StatusError(Reason.NOT_FOUND, NO_SUCH, details={})

    def _visitor(self, target: Target, identity: Identity) -> Visitor:
        """The way into a pod. That it is asked for by GET gives nobody a right to it."""
        self._api.access.demand(identity, act_of("create", target))
        visitor = self._api.visits.visitor(target, self._ask.query, identity)
        if not self._ask.is_upgraded:
            raise bad_request("Upgrade request required")
        wanted = self._api.visits.shown(target, self._ask.query)
        self._api.writer.demand_connectable(self._request(target, Writing(), identity), wanted)
        return visitor

    def _get(self, target: Target, form: Form) -> Answer:
        version = text(self._ask.query, "resourceVersion")
        if is_version(version) and int(version):
            self._api.view.wait_for(int(version))
        found = self._api.reader.get(target)
        if target.subresource == "scale":
            return self._given(200, scale_of(found, self._api.kinds.scaling(target.kind)), form)
        return self._object(200, found, target, form)

    def _watch(self, target: Target, form: Form) -> Watch:
        query = {**self._ask.query, "watch": ["true"]}
        wanted = Wanted(
            target=target,
            listing=listing_of(query),
            form=form,
            include=text(query, "includeObject"),
        )
        return Watch(wanted, self._api.view, self._api.reader)

    def _create(self, target: Target, identity: Identity, form: Form) -> Answer:
        writing = writing_of(self._ask.query, "CreateOptions")
        if target.subresource == "token":
            given = self._body()
            return self._given(201, self._api.reviews.account_token(target, given, identity), form)
        if target.subresource == "eviction":
            return self._evict(target, writing, identity, form)
        if target.subresource == "binding":
            request = self._request(target, writing, identity)
            return self._given(201, bind(self._api.writer, request, self._body()), form)
        if target.name:
            raise not_allowed()
        self._api.access.demand_being(identity, target.kind, target.name)
        given = self._expected(target, writing)
        if not target.kind.is_stored:
            if form.shape is Shape.TABLE:
                raise no_table()
            found = self._api.reviews.answer(target, given, identity)
            return self._given(201, found, form)
        request = self._request(target, writing, identity)
        self._warnings += warnings_about(target.kind)
        result = self._api.writer.create(request, given)
        self._warn(target, result.object)
        return self._object(201, result.object, target, form)

    def _warn(self, target: Target, obj: JsonObject) -> None:
        """Of what an object says and has no effect."""
        if foreign_kind(target.kind.api_version, target.kind.kind) is not None:
            self._warnings += foreign_warnings(target.kind, obj)
        if target.kind == CRD and is_built_in(obj):
            self._warnings += (TEXT,)
        if target.kind == CRD:
            self._warnings += unread_rules(obj)
        if target.kind in (MUTATING_WEBHOOK, VALIDATING_WEBHOOK):
            self._warnings += unread_conditions(obj)

    def _change(self, verb: str, target: Target, identity: Identity, form: Form) -> Answer:
        options = "UpdateOptions" if verb == "update" else "PatchOptions"
        writing = replace(writing_of(self._ask.query, options), is_whole=verb == "update")
        self._api.access.demand_being(identity, target.kind, target.name)
        request = self._request(target, writing, identity)
        if target.subresource == "scale":
            return self._given(200, self._scaled(verb, request), form)
        if verb == "update":
            result = self._api.writer.update(request, self._expected(target, writing))
        else:
            patcher = Patcher(self._api.writer)
            media = self._ask.header(b"content-type")
            result = patcher.patch(request, self._ask.body, media)
            self._warnings += patcher.warnings
        if not target.subresource:
            self._warn(target, result.object)
        code = 201 if result.created else 200
        return self._object(code, result.object, target, form)

    def _scaled(self, verb: str, request: Request) -> JsonObject:
        scaling = self._api.kinds.scaling(request.kind)
        if verb == "update":
            given = self._body()
            return change_scale(self._api.writer, request, lambda _: given, scaling)
        media = self._ask.header(b"content-type").partition(";")[0].strip()
        patched = patched_by(media, self._ask.body, request.blueprint)
        return change_scale(self._api.writer, request, patched, scaling)

    def _evict(self, target: Target, writing: Writing, identity: Identity, form: Form) -> Answer:
        budgets = self._api.kinds.blueprint(POD_DISRUPTION_BUDGET)
        request = self._request(target, writing, identity)
        evictor = Evictor(self._api.writer, budgets)
        return self._given(201, evictor.evict(request, self._body(), self._api.clock()), form)

    def _delete(self, target: Target, identity: Identity, form: Form) -> Answer:
        deletion, writing = self._deletion()
        if target.kind == CRD and not writing.dry_run:
            self._empty(target, identity)
        request = self._request(target, writing, identity)
        deleter = Deleter(self._api.writer)
        result = deleter.delete(request, deletion, self._api.clock())
        if target.kind.is_shown_last or not result.gone:
            return self._object(200, result.object, target, form)
        return self._given(200, _done(target, result.object), form)

    def _delete_all(self, target: Target, identity: Identity, form: Form) -> Answer:
        deletion, writing = self._deletion()
        page = self._api.reader.page(target, listing_of(self._ask.query))
        deleter = Deleter(self._api.writer)
        for obj in self._api.reader.objects(page, target.kind):
            one = replace(target, name=metadata(obj)["name"], namespace=namespace_of(obj))
            try:
                deleter.delete(self._request(one, writing, identity), deletion, self._api.clock())
            except StatusError as error:
                if error.reason is not Reason.NOT_FOUND:
                    raise
        return self._given(200, self._api.reader.shown_list(page, target.kind, form, ""), form)

    def _empty(self, target: Target, identity: Identity) -> None:
        """A definition goes with all that is defined by it."""
        deleter = Deleter(self._api.writer)
        for place, custom in self._api.kinds.custom().items():
            if f"{place[2]}.{place[0]}" != target.name:
                continue
            for obj in self._api.view.objects(custom.kind):
                one = Target(
                    kind=custom.kind, namespace=namespace_of(obj), name=metadata(obj)["name"]
                )
                request = self._request(one, Writing(), identity)
                deleter.delete(request, Deletion(), self._api.clock())

    def _deletion(self) -> tuple[Deletion, Writing]:
        options = self._body() if self._ask.body.strip() else {}
        query = dict(self._ask.query)
        if options.get("dryRun"):
            query["dryRun"] = list(options["dryRun"])
        return deletion_of(options, query), writing_of(query, "DeleteOptions")

    def _request(self, target: Target, writing: Writing, identity: Identity) -> Request:
        agent = self._ask.header(b"user-agent").partition("/")[0]
        return Request(
            target=target,
            writing=writing,
            author=Author(caller=identity.caller, agent=agent, groups=identity.user.groups),
            blueprint=self._api.kinds.blueprint(target.kind),
            admit=no_escalation(target.kind, identity, self._api.access, self._api.view),
        )

    def _body(self) -> JsonObject:
        try:
            return document(self._ask.body, self._ask.header(b"content-type"))
        except UnreadableError as error:
            raise bad_request(str(error)) from None

    def _expected(self, target: Target, writing: Writing) -> JsonObject:
        """The object in the body, in its shape and in its place."""
        kind, schema = target.kind, self._api.kinds.schema(target.kind)
        body, media = self._ask.body, self._ask.header(b"content-type")
        sent = Sent(body=body, media=media, validation=writing.validation)
        result = shaped(expected(body, media, kind), kind, schema, sent)
        self._warnings += result.warnings
        given = namespace_of(result.object)
        if given and kind.namespaced and given != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        return result.object

    def _object(self, code: int, obj: JsonObject, target: Target, form: Form) -> Answer:
        include = text(self._ask.query, "includeObject")
        return self._given(code, self._api.reader.shown(obj, target.kind, form, include), form)

    def _given(self, code: int, found: JsonObject, form: Form) -> Answer:
        is_indented = self._ask.is_for_people or flag(self._ask.query, "pretty")
        warnings = tuple(("Warning", f"299 - {json.dumps(each)}") for each in self._warnings)
        return Answer(
            code=code,
            body=in_form(found, form, indented=is_indented),
            media=form.media,
            headers=warnings,
        )


def act_of(verb: str, target: Target) -> Act:
    """What rights a request needs."""
    kind = target.kind
    is_namespace = kind.kind == "Namespace" and not kind.group
    return Act(
        verb=verb,
        group=kind.group,
        resource=kind.plural,
        subresource=target.subresource,
        namespace=target.name if is_namespace else target.namespace,
        name=target.name,
    )


def _demand_verb(verb: str, target: Target) -> None:
    """StatusError unless this can be done with such objects at all."""
    sub = next((each for each in target.kind.subresources if each.name == target.subresource), None)
    verbs = target.kind.verbs if sub is None else sub.verbs
    is_misplaced = verb in {"update", "patch"} and not target.name
    if verb not in verbs or is_misplaced:
        raise not_allowed()


def not_allowed() -> StatusError:
    text_ = "the server does not allow this method on the requested resource"
    return StatusError(Reason.METHOD_NOT_ALLOWED, text_, details={})


class NoPageError(StatusError):
    """Nothing is served there; this one is answered in plain text."""


def no_resource() -> StatusError:
    """There is a group of such a version, and nothing of that name in it."""
    return StatusError(Reason.NOT_FOUND, NO_SUCH, details={})


def no_page() -> StatusError:
    return NoPageError(Reason.NOT_FOUND, "404 page not found")


def _done(target: Target, obj: JsonObject) -> JsonObject:
    kind = target.kind
    details: JsonObject = {"name": target.name}
    if kind.group:
        details["group"] = kind.group
    details.update(kind=kind.plural, uid=uid_of(obj))
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _health(check: str, *, verbose: bool) -> Answer:
    body = f"[+]ping ok\n[+]store ok\n{check} check passed\n" if verbose else "ok"
    return Answer(code=200, body=body.encode(), media="text/plain; charset=utf-8")


def _all_paths(kinds: tuple[Kind, ...]) -> list[str]:
    names = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3"]
    names += [f"/apis/{each}" for each in discovery.groups(kinds)]
    names += [f"/apis/{each.group}/{each.version}" for each in kinds if each.group]
    return sorted({*names, "/readyz", "/version"})
