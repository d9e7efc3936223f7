"""Tokens: secrets that are shown once, and hashes that are kept."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from muster.model.errors import ForbiddenError
from muster.model.forbidden import BadToken, TokenFault
from muster.model.site import Role, Token
from muster.model.value import Duration, Instant, QueuePath, UserName, Value

PREFIX = "mst"


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


def new_token(request: TokenRequest, now: Instant) -> NewToken:
    """A new token. Its secret is long and random, so that a plain hash keeps it safe."""
    name, key = secrets.token_hex(4), secrets.token_urlsafe(32)
    secret = f"{PREFIX}_{name}_{key}"
    token = Token(
        id=name,
        user=request.user,
        hashed=_hashed(secret),
        role=request.role,
        queue=request.queue,
        made_at=now,
        expires_at=Instant(now + request.lifetime),
    )
    return NewToken(token=token, secret=secret)


def token_of(secret: str, tokens: Mapping[str, Token], now: Instant) -> Token:
    """The token that this is the secret of, if it is good."""
    name = secret.split("_")[1] if secret.count("_") >= 2 else ""
    token = tokens.get(name)
    if token is None or not hmac.compare_digest(token.hashed, _hashed(secret)):
        raise ForbiddenError(BadToken(token=None, fault=TokenFault.UNKNOWN))
    if token.revoked:
        raise ForbiddenError(BadToken(token=token.id, fault=TokenFault.REVOKED))
    if token.expires_at <= now:
        raise ForbiddenError(BadToken(token=token.id, fault=TokenFault.EXPIRED))
    return token


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
