"""The engine that the example drives: it runs the tasks of an attempt in a folder of its own.

It is a program that stays with the tasks and obeys the file `orders`; the functions are its API.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from muster.model.job import EndReason
from muster.model.value import Duration, Instant, Value


class Orders(Value):
    """What the program must obey. saves, signal: where checkpoints are, and what asks for one."""

    limit: Duration | None
    grace: Duration
    saves: str = ""
    signal: int = 0
    ends_at: Instant | None = None
    suspended_at: Instant | None = None
    why: EndReason | None = None
    stopped_at: Instant = Instant(0)
    kills_at: Instant = Instant(0)
    asks: bool = False


def start(folder: Path, tasks: Sequence[dict[str, Any]], orders: Orders) -> None:
    folder.mkdir()
    (folder / "tasks").write_bytes(msgspec.json.encode(tasks))
    write(folder, orders)
    program = [sys.executable, __file__, folder]
    subprocess.run(program, check=True, start_new_session=True)  # noqa: S603 -- this file


def delete(folder: Path) -> None:
    send(folder, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def send(folder: Path, number: int) -> None:
    for pid in note(folder, "started")[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)


def note(folder: Path, name: str) -> tuple[int, ...]:
    """`started`: when, and the processes. `ended`: when, the exit code, the limit that ended it."""
    path = folder / name
    return tuple(msgspec.json.decode(path.read_bytes())) if path.exists() else ()


def orders_of(folder: Path) -> Orders:
    return msgspec.json.decode((folder / "orders").read_bytes(), type=Orders)


def write(folder: Path, orders: Orders) -> None:
    _put(folder / "orders", orders)


def main() -> None:
    folder = Path(sys.argv[1])
    if os.fork():
        os._exit(0)
    given: list[dict[str, Any]] = msgspec.json.decode((folder / "tasks").read_bytes())
    tasks = [subprocess.Popen(**each, start_new_session=True) for each in given]
    begun, sent, late = _now(), 0, 0
    _put(folder / "started", (begun, *(task.pid for task in tasks)))
    while None in [task.poll() for task in tasks]:
        time.sleep(0.01)
        orders = orders_of(folder)
        late = late or _late(begun, orders)
        due = _due(late, orders) if late or orders.why else 0
        for task in tasks if due != sent else ():
            if task.poll() is None:
                os.killpg(task.pid, due)
        sent = due
    code = max((task.wait() for task in tasks), key=abs)
    _put(folder / "ended", (_now(), code, late and late - begun))


def _late(begun: int, orders: Orders) -> int:
    """When it should have ended, if that is over and nothing else ends it."""
    ends_at = (begun + orders.limit) if orders.limit else (orders.ends_at or 0)
    is_over = 0 < ends_at <= _now() and orders.suspended_at is None and orders.why is None
    return ends_at if is_over else 0


def _due(late: int, orders: Orders) -> int:
    """For a checkpoint first, then SIGTERM, then SIGKILL."""
    kills_at = late + orders.grace if late else orders.kills_at
    if _now() >= kills_at:
        return signal.SIGKILL
    path = Path(orders.saves)
    is_saved = path.is_file() and path.stat().st_mtime_ns // 1_000_000 >= orders.stopped_at
    waits = orders.asks and not is_saved and _now() < kills_at - 1_000
    return orders.signal if waits else signal.SIGTERM


def _put(path: Path, content: object) -> None:
    fresh = path.with_name(f"{path.name}~")
    fresh.write_bytes(msgspec.json.encode(content))
    fresh.rename(path)


def _now() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
