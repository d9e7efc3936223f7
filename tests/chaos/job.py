"""What every job of the crash test runs: it leaves evidence, and notices when it is not alone.

Started as `python -I -S job.py FOLDER MANNER MILLISECONDS`; it needs the standard library only.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator

FAILS_WITH = 3
OUTLIVES_S = 60.0


def main() -> int:
    folder, manner, lasts_ms = sys.argv[1], sys.argv[2], int(sys.argv[3])
    job = os.environ["MUSTER_JOB_ID"]
    who = f"{os.environ['MUSTER_ATTEMPT']} {os.environ['RANK']}"
    evidence = os.open(f"{folder}/written/{job}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for name in _mine(job):
        if not _is_locked(f"{folder}/locks/{name}"):
            _tell(evidence, f"OVERLAP {who} {name}")
    _tell(evidence, f"start {who} {os.getpid()} {time.monotonic_ns()}")
    if manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if manner == "forking":
        _leave_a_child(evidence, who)
    time.sleep(lasts_ms / 1_000)
    code = FAILS_WITH if manner == "failing" else 0
    _tell(evidence, f"end {who} {code} {time.monotonic_ns()}")
    return code


def _mine(job: str) -> Iterator[str]:
    """What no other task may have while this one runs: its place in the job, and its devices."""
    yield f"job-{job}-{os.environ['RANK']}"
    for device in filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")):
        yield f"slot-{os.environ['MUSTER_NODE']}-{device}"


def _is_locked(path: str) -> bool:
    """Take the lock and keep it: it is held until every process that has the file open is gone."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    # A child holds it too, so that one that is left behind is noticed.
    os.set_inheritable(file, True)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _leave_a_child(evidence: int, who: str) -> None:
    """A daemon as it is in the book: forked twice, in a session of its own, without a parent."""
    if os.fork() != 0:
        return
    os.setsid()
    if os.fork() == 0:
        _tell(evidence, f"child {who} {os.getpid()} {time.monotonic_ns()}")
        time.sleep(OUTLIVES_S)
    os._exit(0)


def _tell(evidence: int, line: str) -> None:
    os.write(evidence, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
