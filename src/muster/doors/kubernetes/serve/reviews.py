"""Questions about rights and tokens: answered when they are created, and not kept."""

from collections.abc import Callable

from muster.doors.kubernetes.objects import kinds
from muster.doors.kubernetes.objects.errors import (
    StatusError,
    bad_request,
    conflict,
    invalid,
    invalid_object,
    not_found,
    not_supported,
)
from muster.doors.kubernetes.objects.kinds import AUTHENTICATION, SERVICE_ACCOUNT
from muster.doors.kubernetes.objects.rbac import Act, User
from muster.doors.kubernetes.objects.times import stamp
from muster.doors.kubernetes.objects.value import JsonObject, Kind, items, metadata, part, uid_of
from muster.doors.kubernetes.serve.access import Access, Identity
from muster.doors.kubernetes.serve.call import Target
from muster.doors.kubernetes.serve.tokens import (
    BINDING,
    ISSUER,
    LEAST_S,
    MOST_S,
    USUAL_S,
    AccountToken,
    Bound,
    Signer,
)
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.value import Instant

TOKEN_REQUEST = Kind(
    group=AUTHENTICATION,
    version="v1",
    kind="TokenRequest",
    plural="tokenrequests",
    singular="tokenrequest",
    verbs=("create",),
)


class Reviews:
    """Answers them for whoever asks."""

    def __init__(
        self, access: Access, view: ObjectView, signer: Signer, clock: Callable[[], Instant]
    ) -> None:
        self._access = access
        self._view = view
        self._signer = signer
        self._clock = clock

    def answer(self, target: Target, given: JsonObject, identity: Identity) -> JsonObject:
        """The review with its status."""
        match target.kind:
            case kinds.SELF_SUBJECT_REVIEW:
                return self._who(given, identity)
            case kinds.TOKEN_REVIEW:
                return self._token(given)
            case kinds.SELF_SUBJECT_ACCESS_REVIEW:
                return {**given, "status": self._may(identity, part(given, "spec"))}
            case kinds.LOCAL_SUBJECT_ACCESS_REVIEW:
                _demand_local(target, part(given, "spec"))
                return {**given, "status": self._may(self._named(given), part(given, "spec"))}
            case kinds.SUBJECT_ACCESS_REVIEW:
                return {**given, "status": self._may(self._named(given), part(given, "spec"))}
            case kinds.SELF_SUBJECT_RULES_REVIEW:
                return self._rules(given, identity)
            case _:
                raise not_found(target.kind, "")

    def account_token(self, target: Target, given: JsonObject, identity: Identity) -> JsonObject:
        """A token for a service account; it outlives no token with which somebody asks for it."""
        account = self._view.get(SERVICE_ACCOUNT, target.namespace, target.name)
        if account is None:
            raise not_found(SERVICE_ACCOUNT, target.name)
        spec = part(given, "spec")
        seconds = spec.get("expirationSeconds") or USUAL_S
        if not isinstance(seconds, int):
            raise bad_request("spec.expirationSeconds: it must be a whole number of seconds")
        if seconds < LEAST_S:
            text = "may not specify a duration less than 10 minutes"
            cause = invalid("spec.expirationSeconds", seconds, text)
            raise invalid_object(TOKEN_REQUEST, "", [cause])
        now = self._clock()
        seconds = min(seconds, MOST_S)
        audiences = [str(each) for each in items(spec, "audiences")] or [ISSUER]
        wish = AccountToken(
            audiences=tuple(audiences),
            seconds=seconds,
            bound=self._bound(target.namespace, part(spec, "boundObjectRef")),
            made_with=(identity.by or identity).caller.token,
        )
        token, ends = self._signer.for_account(account, wish, now)
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{AUTHENTICATION}/v1",
            "metadata": {
                "name": target.name,
                "namespace": target.namespace,
                "creationTimestamp": stamp(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": stamp(ends)},
        }

    def _bound(self, namespace: str, given: JsonObject) -> Bound | None:
        """What the token is to end with; StatusError where that is not there."""
        if not given:
            return None
        named, name = str(given.get("kind")), str(given.get("name") or "")
        kind = next((each for each in BINDING if each.kind == named), None)
        if kind is None:
            told = [each.kind for each in BINDING]
            cause = not_supported("spec.boundObjectRef.kind", named, told)
            raise invalid_object(TOKEN_REQUEST, "", [cause])
        found = self._view.get(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        if given.get("uid") not in {None, "", uid_of(found)}:
            text = f"the UID in the bound object reference ({given['uid']}) does not match"
            raise conflict(kind, name, f"{text} the UID in record")
        return Bound(kind=kind, name=name, uid=uid_of(found))

    def _who(self, given: JsonObject, identity: Identity) -> JsonObject:
        own = {**metadata(given), "creationTimestamp": stamp(self._clock())}
        return {**given, "metadata": own, "status": {"userInfo": _shown(identity.user)}}

    def _token(self, given: JsonObject) -> JsonObject:
        spec = part(given, "spec")
        try:
            identity = self._access.of_token(str(spec.get("token", "")))
        except StatusError:
            text = "[invalid bearer token, token lookup failed]"
            return {**given, "status": {"user": {}, "error": text}}
        audiences = items(spec, "audiences") or [ISSUER]
        user = _shown(identity.user)
        return {**given, "status": {"authenticated": True, "user": user, "audiences": audiences}}

    def _may(self, identity: Identity, spec: JsonObject) -> JsonObject:
        found = self._access.allowed(identity, act_of(spec))
        if found is None:
            return {"allowed": False}
        return {"allowed": True, "reason": found.why} if found.why else {"allowed": True}

    def _named(self, given: JsonObject) -> Identity:
        spec = part(given, "spec")
        name = str(spec.get("user", ""))
        user = User(name=name, groups=tuple(map(str, items(spec, "groups"))))
        return Identity(user=user, caller=self._access.caller_named(name))

    def _rules(self, given: JsonObject, identity: Identity) -> JsonObject:
        namespace = str(part(given, "spec").get("namespace", ""))
        rules = self._access.rules_for(identity, namespace)
        status = {
            "resourceRules": [
                {
                    name: each[name]
                    for name in ("verbs", "apiGroups", "resources", "resourceNames")
                    if each.get(name)
                }
                for each in rules
                if each.get("resources")
            ],
            "nonResourceRules": [
                {"verbs": each["verbs"], "nonResourceURLs": each["nonResourceURLs"]}
                for each in rules
                if each.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        return {**given, "status": status}


def _demand_local(target: Target, spec: JsonObject) -> None:
    """StatusError unless the question is about the namespace in which it is asked."""
    asked = part(spec, "resourceAttributes").get("namespace")
    if part(spec, "nonResourceAttributes") or asked not in {None, "", target.namespace}:
        place = "spec.resourceAttributes.namespace"
        raise bad_request(f"{place} must match namespace: {target.namespace}")


def _shown(user: User) -> JsonObject:
    shown: JsonObject = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    shown["groups"] = list(user.groups)
    return {**shown, "extra": dict(user.extra)} if user.extra else shown


def act_of(spec: JsonObject) -> Act:
    """What an access review asks about."""
    other = part(spec, "nonResourceAttributes")
    if other:
        return Act(verb=str(other.get("verb", "")), path=str(other.get("path", "")))
    given = part(spec, "resourceAttributes")

    def text(name: str) -> str:
        return str(given.get(name) or "")

    return Act(
        verb=text("verb"),
        group=text("group"),
        resource=text("resource"),
        subresource=text("subresource"),
        namespace=text("namespace"),
        name=text("name"),
    )
