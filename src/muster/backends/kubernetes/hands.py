"""Several things are asked of an API server at a time."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

HANDS = 16
"""So many at a time, with whoever asks; connections are kept for all of them."""

T = TypeVar("T")


class Hands:
    """Threads that stay. What they are given may give them more: whoever waits works too."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(HANDS, thread_name_prefix="kubernetes")

    def at_once(self, calls: Sequence[Callable[[], T]]) -> Sequence[T | Exception]:
        """What each of them gave, or how it failed, in their order."""
        found: dict[int, T | Exception] = {}
        left = deque(enumerate(calls))

        def work() -> None:
            while left:
                try:
                    place, call = left.popleft()
                except IndexError:
                    return
                found[place] = _tried(call)

        helpers = [self._pool.submit(work) for _ in range(min(HANDS, len(calls)) - 1)]
        work()
        for each in helpers:
            # One that has not begun by now would find nothing to do.
            if not each.cancel():
                each.result()
        return [found[place] for place in range(len(calls))]

    def close(self) -> None:
        """Finish what is under way."""
        self._pool.shutdown()


def _tried(call: Callable[[], T]) -> T | Exception:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 -- whoever asked for it judges it
        return error
