"""Admission webhooks without their wires: which of them are asked, and what is said. Pure."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.doors.kubernetes.objects.kinds import ADMISSION
from muster.doors.kubernetes.objects.parsing import UnreadableError, demand_shallow, parse_json
from muster.doors.kubernetes.objects.patches import PatchError, json_patched
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    is_list,
    is_map,
    items,
    labels_of,
    name_of,
    namespace_of,
    part,
)
from muster.model.value import Value

REVIEW = "admission.k8s.io/v1"
CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"
_LOWEST_ERROR = 400


class Asked(Value, kw_only=True):
    """One request that webhooks are asked about.

    object: as it is to be; None when it is deleted. old: as it is; None when it is created.
    groups: those of the user.
    """

    operation: str
    kind: Kind
    subresource: str = ""
    name: str
    namespace: str
    object: JsonObject | None
    old: JsonObject | None
    user: str
    groups: tuple[str, ...] = ()
    dry_run: bool = False


class Webhook(Value, kw_only=True):
    """One webhook of one configuration."""

    spec: JsonObject

    @property
    def name(self) -> str:
        return str(self.spec.get("name"))

    @property
    def must_answer(self) -> bool:
        """Is a request refused while nobody answers?"""
        return self.spec.get("failurePolicy", "Fail") == "Fail"

    @property
    def timeout_s(self) -> int:
        return int(self.spec.get("timeoutSeconds", 10))


def webhooks_for(
    configurations: Iterable[JsonObject], asked: Asked, namespace: JsonObject | None
) -> Iterator[Webhook]:
    """Those that want to be asked, in the order in which they are.

    namespace: the one that the object is in, if it is in one.
    """
    if asked.kind.group == ADMISSION:
        # Nobody may lock themselves out: a webhook has no say about webhooks.
        return
    for configuration in sorted(configurations, key=name_of):
        for spec in items(configuration, "webhooks"):
            if _is_meant(spec, asked, namespace):
                yield Webhook(spec=spec)


def _is_meant(spec: JsonObject, asked: Asked, namespace: JsonObject | None) -> bool:
    if not any(_rule_meets(rule, asked) for rule in items(spec, "rules")):
        return False
    if asked.kind.kind == "Namespace" and not asked.kind.group:
        around = asked.object or asked.old
    else:
        around = namespace
    if around is not None and not selects(part(spec, "namespaceSelector"), labels_of(around)):
        return False
    found = [each for each in (asked.object, asked.old) if each is not None]
    selector = part(spec, "objectSelector")
    return not found or any(selects(selector, labels_of(each)) for each in found)


def _rule_meets(rule: JsonObject, asked: Asked) -> bool:
    kind, scope = asked.kind, rule.get("scope", "*")
    is_in_scope = scope == "*" or (scope == "Namespaced") == kind.namespaced
    return (
        is_in_scope
        and _has(items(rule, "operations"), asked.operation)
        and _has(items(rule, "apiGroups"), kind.group)
        and _has(items(rule, "apiVersions"), kind.version)
        and any(_resource_meets(str(each), asked) for each in items(rule, "resources"))
    )


def _has(listed: list[Any], wanted: str) -> bool:
    return "*" in listed or wanted in listed


def _resource_meets(written: str, asked: Asked) -> bool:
    plural, _, subresource = written.partition("/")
    return plural in ("*", asked.kind.plural) and (
        subresource == asked.subresource
        or (subresource == "*" and bool(asked.subresource))
        or written == "*/*"
    )


def selects(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """Does a label selector select what has these labels? An empty one selects everything."""
    if any(labels.get(key) != value for key, value in part(selector, "matchLabels").items()):
        return False
    return all(_holds(each, labels) for each in items(selector, "matchExpressions"))


def _holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    key, values = str(expression.get("key")), items(expression, "values")
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def review_of(asked: Asked, uid: str) -> JsonObject:
    """What a webhook is sent."""
    kind = asked.kind
    named = {"group": kind.group, "version": kind.version}
    # Who connects sends no object of the kind, but what they want.
    sent = str((asked.object or {}).get("kind")) if asked.operation == CONNECT else kind.kind
    shown_kind, resource = {**named, "kind": sent}, {**named, "resource": kind.plural}
    request: JsonObject = {
        "uid": uid,
        "kind": shown_kind,
        "resource": resource,
        "requestKind": shown_kind,
        "requestResource": resource,
        "name": asked.name,
        "operation": asked.operation,
        "userInfo": {"username": asked.user, "groups": list(asked.groups)},
        "object": asked.object,
        "oldObject": asked.old,
        "dryRun": asked.dry_run,
        "options": None,
    }
    if asked.namespace:
        request["namespace"] = asked.namespace
    if asked.subresource:
        request |= {"subResource": asked.subresource, "requestSubResource": asked.subresource}
    return {"kind": "AdmissionReview", "apiVersion": REVIEW, "request": request}


class BadAnswerError(Exception):
    """A webhook answered something that is no answer."""


class Verdict(Value, kw_only=True):
    """What a webhook says. refusal: why not. patch: what it changes. warnings: for the client."""

    refusal: StatusError | None = None
    patch: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()


def verdict_of(name: str, body: bytes, uid: str) -> Verdict:
    """What a webhook's answer means; BadAnswerError where it means nothing."""
    answer = _read(body, "the answer is no JSON")
    response = part(answer, "response") if is_map(answer) else {}
    if response.get("uid") != uid:
        raise BadAnswerError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    warnings = tuple(map(str, items(response, "warnings")))
    if not response.get("allowed"):
        return Verdict(refusal=_refusal(name, part(response, "status")), warnings=warnings)
    return Verdict(patch=_patch(response), warnings=warnings)


def _refusal(name: str, status: JsonObject) -> StatusError:
    words = status.get("message") or status.get("reason") or ""
    text = f'admission webhook "{name}" denied the request'
    text += f": {words}" if words else " without explanation"
    given = status.get("code")
    code = max(given if isinstance(given, int) else 0, _LOWEST_ERROR)
    reason = next(
        (each for each in Reason if each.code == code or each.word == status.get("reason")),
        Reason.BAD_REQUEST,
    )
    return StatusError(reason, text, details=part(status, "details") or None)


def _patch(response: JsonObject) -> tuple[Any, ...]:
    if not response.get("patch"):
        return ()
    try:
        written = base64.b64decode(str(response["patch"]))
    except (binascii.Error, ValueError) as error:
        raise BadAnswerError(f"the patch cannot be read: {error}") from error
    found = _read(written, "the patch cannot be read")
    if not is_list(found):
        raise BadAnswerError("the patch is no list")
    return tuple(found)


def _read(body: bytes, otherwise: str) -> Any:
    try:
        return parse_json(body)
    except UnreadableError as error:
        raise BadAnswerError(f"{otherwise}: {error}") from None


def patched(obj: JsonObject, verdict: Verdict) -> JsonObject:
    """The object as the webhook wants it; BadAnswerError where that cannot be."""
    try:
        found: Any = json_patched(obj, list(verdict.patch))
        demand_shallow(found)
    except (PatchError, UnreadableError) as error:
        raise BadAnswerError(f"the patch does not fit: {error}") from error
    if not is_map(found) or name_of(found) != name_of(obj):
        raise BadAnswerError("the patch makes another object of it")
    if namespace_of(found) != namespace_of(obj):
        raise BadAnswerError("the patch moves the object elsewhere")
    return found
