"""Tokens that this door itself gives out: to people for a while, and to service accounts."""

import uuid
from typing import Any

import jwt

from muster.controller.messages import Caller
from muster.doors.kubernetes.objects.kinds import NODE, POD, SECRET, SERVICE_ACCOUNT
from muster.doors.kubernetes.objects.rbac import ACCOUNT_PREFIX, User
from muster.doors.kubernetes.objects.value import (
    JsonObject,
    Kind,
    is_list,
    is_map,
    name_of,
    part,
    uid_of,
)
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.site import Role, Token
from muster.model.value import Duration, Instant, QueuePath, UserName, Value

ISSUER = "https://kubernetes.default.svc"
ALGORITHM = "ES256"
FOR_PEOPLE = "muster"
"""Whom tokens of people are meant for; those of service accounts are meant for the issuer."""

_ABOUT = "authentication.kubernetes.io"

BINDING = (POD, SECRET)
"""With what tokens can end."""

LEAST_S, MOST_S, USUAL_S = 600, 24 * 3_600, 3_600

PERSON_LASTS = Duration(3_600_000)
"""kubectl asks for another one when it ends."""


MOST_KNOWN = 2_000
"""So many tokens are known to be signed by us without looking again."""


class BadTokenError(Exception):
    """A token that opens nothing."""


class Bound(Value):
    """An object with which a token ends: a pod, or a secret."""

    kind: Kind
    name: str
    uid: str


class Account(Value):
    """A service account, as a token names it. bound: what the token ends with.

    made_with: the token of Muster with which somebody asked for it; it ends with that one, too.
    """

    namespace: str
    name: str
    uid: str
    token_id: str
    bound: Bound | None = None
    made_with: str | None = None


class AccountToken(Value, kw_only=True):
    """What a new token of a service account is for, and how long. See `Account`."""

    audiences: tuple[str, ...]
    seconds: int
    bound: Bound | None = None
    made_with: Token | None = None


class Person(Value):
    """A user of Muster, as a token names them. token: the one of Muster that it was made with."""

    user: UserName
    root: bool = False
    role: Role | None = None
    queue: QueuePath | None = None
    token: str | None = None


class Signer:
    """Makes and reads tokens with the key of this installation."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._public = jwt.get_algorithm_by_name(ALGORITHM).prepare_key(key).public_key()
        # A signature stays good; whether its token still opens anything is looked at each time.
        self._known: dict[str, JsonObject] = {}

    def for_person(self, caller: Caller, now: Instant) -> tuple[str, Instant]:
        """A token with the caller's own rights, and when it ends."""
        ends = Instant(now + PERSON_LASTS)
        token = caller.token
        if token is not None:
            ends = min(ends, token.expires_at)
        claims: JsonObject = {
            "aud": [FOR_PEOPLE],
            "sub": caller.user,
            "root": caller.root,
            "role": None if token is None else str(token.role),
            "queue": None if token is None else token.queue,
            "token": None if token is None else token.id,
        }
        return self._signed(claims, now, ends), ends

    def for_account(
        self, account: JsonObject, wish: AccountToken, now: Instant
    ) -> tuple[str, Instant]:
        """A token of a service account, and when it ends at the latest."""
        made_with = wish.made_with
        ends = Instant(now + wish.seconds * 1_000)
        if made_with is not None:
            ends = min(ends, made_with.expires_at)
        given = account["metadata"]
        claims: JsonObject = {
            "aud": list(wish.audiences),
            "token": None if made_with is None else made_with.id,
            "sub": f"{ACCOUNT_PREFIX}{given['namespace']}:{given['name']}",
            "kubernetes.io": {
                "namespace": given["namespace"],
                "serviceaccount": {"name": given["name"], "uid": given["uid"]},
                **_binding(wish.bound),
            },
        }
        return self._signed(claims, now, ends), ends

    def read(self, token: str, now: Instant) -> Person | Account:
        """Whom a token is of; BadTokenError if it is none of ours, or has ended."""
        claims = self._known.get(token)
        if claims is None:
            claims = self._known[token] = self._claims(token)
            while len(self._known) > MOST_KNOWN:
                self._known.pop(next(iter(self._known)), None)
        if not int(claims.get("nbf", 0)) <= now / 1_000 < int(claims.get("exp", 0)):
            raise BadTokenError("it has ended")
        audiences = claims.get("aud")
        if not is_list(audiences):
            raise BadTokenError("it is meant for nobody")
        found = claims.get("kubernetes.io")
        if audiences == [FOR_PEOPLE] and found is None:
            return _person(claims)
        if ISSUER not in audiences or not is_map(found):
            raise BadTokenError("it is meant for somebody else")
        account = found["serviceaccount"]
        return Account(
            namespace=found["namespace"],
            name=account["name"],
            uid=account["uid"],
            token_id=str(claims.get("jti", "")),
            made_with=claims.get("token"),
            bound=next((_bound(found, each) for each in BINDING if each.singular in found), None),
        )

    def _signed(self, claims: JsonObject, now: Instant, ends: Instant) -> str:
        whole = {
            **claims,
            "iss": ISSUER,
            "iat": now // 1_000,
            "nbf": now // 1_000,
            "exp": ends // 1_000,
            "jti": str(uuid.uuid4()),
        }
        return jwt.encode(whole, self._key, algorithm=ALGORITHM)

    def _claims(self, token: str) -> JsonObject:
        # Times are looked at by our own clock, and audiences by what the token is for.
        options: Any = {
            "verify_exp": False,
            "verify_nbf": False,
            "verify_aud": False,
            "verify_iat": False,
        }
        try:
            return jwt.decode(
                token, self._public, algorithms=[ALGORITHM], issuer=ISSUER, options=options
            )
        except jwt.PyJWTError as error:
            raise BadTokenError(str(error)) from None


def _person(claims: JsonObject) -> Person:
    role, queue = claims.get("role"), claims.get("queue")
    return Person(
        user=UserName(str(claims["sub"])),
        root=bool(claims.get("root")),
        role=None if role is None else Role(role),
        queue=None if queue is None else QueuePath(queue),
        token=claims.get("token"),
    )


def _binding(bound: Bound | None) -> JsonObject:
    return {} if bound is None else {bound.kind.singular: {"name": bound.name, "uid": bound.uid}}


def _bound(claims: JsonObject, kind: Kind) -> Bound:
    given = claims[kind.singular]
    return Bound(kind=kind, name=given["name"], uid=given["uid"])


def user_of(account: Account, view: ObjectView) -> User:
    """Who asks with this token, as Kubernetes names it where rights are asked for.

    BadTokenError: the account, or what its token is bound to, is gone, or has a namesake.
    """
    found = view.get(SERVICE_ACCOUNT, account.namespace, account.name)
    if found is None or uid_of(found) != account.uid:
        raise BadTokenError("its service account is gone")
    return User(
        name=f"{ACCOUNT_PREFIX}{account.namespace}:{account.name}",
        uid=account.uid,
        groups=(
            "system:serviceaccounts",
            f"system:serviceaccounts:{account.namespace}",
            "system:authenticated",
        ),
        extra={f"{_ABOUT}/credential-id": [f"JTI={account.token_id}"], **_where(account, view)},
    )


def _where(account: Account, view: ObjectView) -> dict[str, list[str]]:
    """The pod that the token was made for, and the node that the pod is on."""
    bound = account.bound
    if bound is None:
        return {}
    with_it = view.get(bound.kind, account.namespace, bound.name)
    if with_it is None or uid_of(with_it) != bound.uid:
        raise BadTokenError(f"the {bound.kind.singular} that it was made for is gone")
    if bound.kind != POD:
        return {}
    pod = {f"{_ABOUT}/pod-name": [bound.name], f"{_ABOUT}/pod-uid": [bound.uid]}
    node = view.get(NODE, "", str(part(with_it, "spec").get("nodeName") or ""))
    if node is None:
        return pod
    return {**pod, f"{_ABOUT}/node-name": [name_of(node)], f"{_ABOUT}/node-uid": [uid_of(node)]}
