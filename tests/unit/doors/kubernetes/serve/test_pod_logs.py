"""Which parts of a log are shown."""

from muster.doors.kubernetes.serve.pod_logs import LogStream, LogWish
from muster.model.running import Output

AT = b"2026-11-19T12:00:00.000000000Z stdout F "


def test_a_line_that_returns_to_its_beginning_is_one_line() -> None:
    kept = AT + b"10%\r20%\r30%\n" + AT + b"done\n"

    def read(offset: int, limit: int) -> Output:
        start = max(0, len(kept) + offset) if offset < 0 else offset
        content = kept[start : start + limit]
        return Output(content=content, next=start + len(content))

    whole = LogStream(read, LogWish(container="main"), lambda: True)
    last = LogStream(read, LogWish(container="main", tail=2), lambda: True)

    assert whole.first() == b"10%\r20%\r30%\ndone\n"
    assert last.first() == b"10%\r20%\r30%\ndone\n"
