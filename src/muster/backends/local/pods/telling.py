"""When the status of a pod is written down: at once, but not many times a second."""

import msgspec

from muster.model.pod import PodStatus

_WRITES_EVERY_MS = 100
_COUNTS_EVERY_MS = 10_000


class Telling:
    """What was written of a pod last, and when more may be.

    Times are those of a clock that nobody sets: a status must not wait for an hour to come again.
    """

    def __init__(self) -> None:
        self._told: bytes = b""
        self._whole: bytes = b""
        self._may_write_ms = 0
        self._counts_ms = 0
        self._is_put_off = False

    def next_ms(self) -> int | None:
        """When to ask again: a look that came too early must not be the last one."""
        return self._may_write_ms if self._is_put_off else None

    def hurry(self) -> None:
        """There is no later."""
        self._may_write_ms = 0

    def is_due(self, status: PodStatus, now_ms: int) -> bool:
        """Must this be written now? If so, it counts as written."""
        self._is_put_off = now_ms < self._may_write_ms
        if self._is_put_off:
            return False
        kinds = [(each.container, each.reason, each.text) for each in status.notes]
        told = msgspec.json.encode((status.containers, kinds, status.over))
        whole = msgspec.json.encode(status)
        # That something happened once more is worth less than that it happened.
        has_counted = now_ms >= self._counts_ms and whole != self._whole
        if told == self._told and not has_counted:
            return False
        self._counts_ms = now_ms + _COUNTS_EVERY_MS
        self._may_write_ms = now_ms + _WRITES_EVERY_MS
        self._told, self._whole = told, whole
        return True
