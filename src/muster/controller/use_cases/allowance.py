"""How much one user may have written for them: the disk is everybody's."""

from collections import OrderedDict

from muster.lifecycle.refusal import TooMuchOfUser
from muster.model.errors import RefusedError
from muster.model.value import DAY, Instant, UserName
from muster.model.words import exact_span

MIB = 1_024 * 1_024
MOST_USERS = 10_000


class Allowances:
    """What is left to each user of what they may submit in a day. It fills up as time passes.

    It is forgotten when the server ends: it bounds a flood, and is no account.
    """

    def __init__(self) -> None:
        self._used: OrderedDict[UserName, tuple[float, Instant]] = OrderedDict()

    def take(self, user: UserName, size: int, limit_mib: int | None, now: Instant) -> None:
        """So many bytes are about to be written. RefusedError: it is more than is left."""
        if limit_mib is None:
            return
        limit = limit_mib * MIB
        used, since = self._used.pop(user, (0.0, now))
        left_over = max(0.0, used - limit * max(0, now - since) / DAY)
        is_allowed = left_over + size <= limit
        self._used[user] = (left_over + size if is_allowed else left_over, now)
        if len(self._used) > MOST_USERS:
            self._used.popitem(last=False)
        if not is_allowed:
            raise RefusedError(
                TooMuchOfUser(user=user, limit_mib=limit_mib), _advice(left_over + size, limit)
            )


def _advice(wanted: float, limit: int) -> str:
    if wanted - limit > limit:
        return (
            f"This would take {int(wanted) // MIB} MiB; one user may submit {limit // MIB} MiB in "
            "a day. Keep what is large in files, or submit fewer jobs at once."
        )
    wait = type(DAY)(max(1_000, int((wanted - limit) / limit * DAY) // 1_000 * 1_000))
    return (
        f"One user may submit {limit // MIB} MiB in a day, and that is used up. "
        f"Submit again in {exact_span(wait)}, or keep what is large in files."
    )
