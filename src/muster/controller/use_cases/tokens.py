"""Tokens: secrets that are shown once, and hashes that are kept.

A token can do what its user can, or less. It is never more than what it was made with: not in its
role, not in its queue, not in its time, and it ends when that is revoked.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from muster.controller.messages import Caller
from muster.controller.rights import demand, has_role
from muster.controller.use_cases.audit import audit
from muster.controller.world.transaction import Transaction
from muster.lifecycle.refusal import TooManyTokens
from muster.model.errors import ForbiddenError, RefusedError, UnknownError
from muster.model.forbidden import BadToken, MakesForAnother, TokenFault, TokenIsLess
from muster.model.site import Role, Site, Token
from muster.model.value import DAY, Duration, Instant, QueuePath, UserName, Value, replace

PREFIX = "mst"

MOST_TOKENS = 100
"""So many tokens of one user can be good at the same time."""

MOST_IN_A_DAY = 1_000
"""So many can be made: those that are revoked or over are still known."""


class TokenRequest(Value):
    """A token that somebody asks for."""

    user: UserName
    role: Role
    queue: QueuePath | None
    lifetime: Duration


class NewToken(Value):
    """A new token and its secret, which is shown this once."""

    token: Token
    secret: str


def make_token(caller: Caller, request: TokenRequest, transaction: Transaction) -> NewToken:
    """The command: a token for oneself; one for others only by the machine's administrator."""
    site = transaction.site
    if request.user != caller.user and not caller.root:
        # Who has a token of somebody is that somebody: no role in a queue gives that right.
        raise ForbiddenError(MakesForAnother(user=caller.user, other=request.user))
    to = f"give away the role {request.role}"
    demand(caller, site, request.role, request.queue, to=to)
    good = _good_tokens(request.user, transaction)
    if len(good) >= MOST_TOKENS:
        raise RefusedError(
            TooManyTokens(user=request.user, limit=MOST_TOKENS),
            f"{request.user} has {len(good)} tokens, which is as many as one user can have. "
            "Revoke those that are not used: muster tokens revoke ID.",
        )
    if _made_lately(request.user, transaction) >= MOST_IN_A_DAY:
        raise RefusedError(
            TooManyTokens(user=request.user, limit=MOST_IN_A_DAY),
            f"{request.user} was given {MOST_IN_A_DAY} tokens in a day. "
            "Use one for longer: muster tokens create --lifetime 30d.",
        )
    new = new_token(request, transaction.now, caller)
    transaction.tokens[new.token.id] = new.token
    audit(transaction, caller, "make token", f"token {new.token.id}", f"for {request.user}")
    return new


def revoke_token(caller: Caller, name: str, transaction: Transaction) -> Token:
    """The command: the token, and what was made with it, opens nothing any more."""
    known = transaction.record.tokens.get(name)
    if known is None:
        raise UnknownError(f"there is no token {name}; list them with: muster tokens")
    if known.user != caller.user:
        demand(caller, transaction.site, Role.ADMIN, to=f"revoke a token of {known.user}")
    elif caller.token is not None and not _reaches(caller, known, transaction.site):
        raise ForbiddenError(TokenIsLess(token=caller.token.id, other=name))
    transaction.tokens[name] = replace(known, revoked=True)
    audit(transaction, caller, "revoke token", f"token {name}")
    return transaction.tokens[name]


def _reaches(caller: Caller, other: Token, site: Site) -> bool:
    """May the caller's token end this one: is it the same, or one that is no more than it is?"""
    own = caller.token
    if own is None or own.id == other.id:
        return True
    return own.role is not Role.VIEWER and has_role(caller, site, other.role, other.queue)


def _good_tokens(user: UserName, transaction: Transaction) -> list[str]:
    tokens = {**transaction.record.tokens, **transaction.tokens}
    return [
        name
        for name, token in tokens.items()
        if token.user == user and fault_of(token, tokens, transaction.now) is None
    ]


def _made_lately(user: UserName, transaction: Transaction) -> int:
    since = transaction.now - DAY
    tokens = {**transaction.record.tokens, **transaction.tokens}.values()
    return sum(token.user == user and token.made_at > since for token in tokens)


def new_token(request: TokenRequest, now: Instant, caller: Caller) -> NewToken:
    """A new token. Its secret is long and random, so that a plain hash keeps it safe."""
    name, key = secrets.token_hex(4), secrets.token_urlsafe(32)
    end, made_with = Instant(now + request.lifetime), caller.token
    secret = f"{PREFIX}_{name}_{key}"
    token = Token(
        id=name,
        user=request.user,
        hashed=_hashed(secret),
        role=request.role,
        queue=request.queue,
        made_at=now,
        expires_at=end if made_with is None else min(end, made_with.expires_at),
        made_by=caller.user,
        made_with=None if made_with is None else made_with.id,
    )
    return NewToken(token=token, secret=secret)


def token_of(secret: str, tokens: Mapping[str, Token], now: Instant) -> Token:
    """The token that this is the secret of, if it is good."""
    name = secret.split("_")[1] if secret.count("_") >= 2 else ""
    token = tokens.get(name)
    if token is None or not hmac.compare_digest(token.hashed, _hashed(secret)):
        raise ForbiddenError(BadToken(token=None, fault=TokenFault.UNKNOWN))
    if (fault := fault_of(token, tokens, now)) is not None:
        raise ForbiddenError(BadToken(token=token.id, fault=fault))
    return token


def fault_of(token: Token, tokens: Mapping[str, Token], now: Instant) -> TokenFault | None:
    """What is wrong with a token, or with one that it was made with."""
    each: Token | None = token
    # Tokens are made with older ones, so that this ends.
    while each is not None:
        if each.revoked:
            return TokenFault.REVOKED
        if each.expires_at <= now:
            return TokenFault.EXPIRED
        if each.made_with is None:
            return None
        each = tokens.get(each.made_with)
    return TokenFault.REVOKED


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
