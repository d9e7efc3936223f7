"""How much of the planner one user may ask for at once, so that others are answered too."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from muster.model.errors import BusyError
from muster.model.value import UserName

MOST_OF_ONE_USER = 2
"""So many explanations and rehearsals of one user are answered at once."""


class Questions:
    """Counts the questions that are being answered."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked = Counter[UserName]()

    @contextmanager
    def asked_by(self, user: UserName) -> Generator[None]:
        """While a question of this user is answered. BusyError: they have enough of them."""
        with self._lock:
            if self._asked[user] >= MOST_OF_ONE_USER:
                raise BusyError(
                    f"{MOST_OF_ONE_USER} explanations or rehearsals for {user} are being made; "
                    "ask again when they are answered"
                )
            self._asked[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked[user] -= 1
                if not self._asked[user]:
                    del self._asked[user]
