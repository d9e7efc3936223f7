"""A token's secret is shown once; what is kept opens nothing by itself."""

import pytest

from muster.controller.messages import Caller
from muster.controller.use_cases.tokens import TokenRequest, new_token, token_of
from muster.model.errors import ForbiddenError
from muster.model.site import Role
from muster.model.value import Duration, Instant, QueuePath, UserName, replace

NOW = Instant(1_000)
ADA = Caller(user=UserName("ada"), door="test")
WISH = TokenRequest(
    user=UserName("ada"), role=Role.USER, queue=QueuePath("a"), lifetime=Duration(60_000)
)


def test_a_secret_opens_what_was_wished_for() -> None:
    new = new_token(WISH, NOW, ADA)

    found = token_of(new.secret, {new.token.id: new.token}, NOW)

    assert found == new.token
    assert (found.user, found.role, found.queue) == ("ada", "user", "a")
    assert found.expires_at == 61_000


def test_what_is_kept_does_not_tell_the_secret() -> None:
    new = new_token(WISH, NOW, ADA)
    key = new.secret.removeprefix(f"mst_{new.token.id}_")

    assert key not in repr(new.token)
    assert len(key) >= 40


def test_no_two_tokens_are_alike() -> None:
    secrets = {new_token(WISH, NOW, ADA).secret for _ in range(50)}

    assert len(secrets) == 50


def test_a_token_opens_nothing_from_the_moment_it_expires() -> None:
    new = new_token(WISH, NOW, ADA)
    tokens = {new.token.id: new.token}

    assert token_of(new.secret, tokens, Instant(60_999))
    with pytest.raises(ForbiddenError, match="has expired"):
        token_of(new.secret, tokens, Instant(61_000))


def test_a_revoked_token_opens_nothing() -> None:
    new = new_token(WISH, NOW, ADA)
    revoked = replace(new.token, revoked=True)

    with pytest.raises(ForbiddenError, match="was revoked"):
        token_of(new.secret, {revoked.id: revoked}, NOW)


@pytest.mark.parametrize(
    "wrong",
    ["{secret}x", "x{secret}", "{secret}=", "mst_{id}_", "mst_{id}_key", "mst_0000_key", "{id}"],
)
def test_what_is_not_the_secret_opens_nothing(wrong: str) -> None:
    new = new_token(WISH, NOW, ADA)
    given = wrong.format(secret=new.secret, id=new.token.id)

    with pytest.raises(ForbiddenError, match="not known"):
        token_of(given, {new.token.id: new.token}, NOW)


@pytest.mark.parametrize("nothing", ["", "_", "__", "___", "mst", "mst_"])
def test_nothing_opens_nothing(nothing: str) -> None:
    new = new_token(WISH, NOW, ADA)

    with pytest.raises(ForbiddenError, match="not known"):
        token_of(nothing, {new.token.id: new.token}, NOW)


def test_the_secret_of_another_token_opens_nothing() -> None:
    one, other = new_token(WISH, NOW, ADA), new_token(WISH, NOW, ADA)
    mixed = f"mst_{one.token.id}_{other.secret.split('_', 2)[2]}"

    with pytest.raises(ForbiddenError, match="not known"):
        token_of(mixed, {one.token.id: one.token, other.token.id: other.token}, NOW)
