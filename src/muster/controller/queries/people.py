"""Who asks, and what they may do."""

from muster.controller.messages import Caller
from muster.controller.rights import demand_anywhere, grants_of, has_role
from muster.controller.use_cases.tokens import fault_of, token_of
from muster.controller.world.journal import Clock
from muster.controller.world.record import Record
from muster.model.site import Grant, Role, Token


class PeopleQueries:
    """Callers, their grants and tokens."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock

    def grants(self, caller: Caller) -> tuple[Grant, ...]:
        """What the caller may do, before a token makes less of it."""
        return grants_of(caller, self._record.site)

    def caller_of(self, secret: str, door: str) -> Caller:
        """The user who has this token's secret."""
        token = token_of(secret, self._record.tokens, self._clock())
        return Caller(user=token.user, door=door, token=token)

    def demand_anywhere(self, caller: Caller, role: Role) -> None:
        """Raise ForbiddenError unless the caller has the role in some queue, or everywhere."""
        demand_anywhere(caller, self._record.site, role)

    def is_good(self, token: Token) -> bool:
        """Does the token still open anything?"""
        known = self._record.tokens.get(token.id)
        return known is not None and fault_of(known, self._record.tokens, self._clock()) is None

    def token(self, name: str) -> Token | None:
        """The token of this id, good or not."""
        return self._record.tokens.get(name)

    def tokens(self, caller: Caller) -> tuple[Token, ...]:
        """The caller's own tokens; administrators see all."""
        is_admin = has_role(caller, self._record.site, Role.ADMIN)
        return tuple(
            token
            for _, token in sorted(self._record.tokens.items())
            if is_admin or token.user == caller.user
        )
