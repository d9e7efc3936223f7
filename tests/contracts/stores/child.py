"""A process of its own that uses a store until somebody kills it: `child.py lead|append URL`."""

import sys
from itertools import count

from contracts.stores.given import allocation, ended, job, over, submitted
from muster.model.value import JobId
from muster.stores.base import Batch
from muster.stores.opening import WholeStore, open_store

EVENTS_EACH = 3


def lead(store: WholeStore) -> None:
    say(store.lead())
    sys.stdin.read()


def append(store: WholeStore) -> None:
    """Each version: three events, a new job with an allocation, and the end of the one before."""
    for version in count(store.load().version + 1):
        before = version - 1
        store.append(
            Batch(
                version=version,
                next_job=JobId(version + 1),
                events=(submitted(version), over(before), submitted(version)),
                jobs=(job(version),),
                allocations=(allocation(version),),
                freed=(JobId(before),),
                ended=(ended(before, at=version),) if before else (),
            )
        )
        say(version)


def say(value: object) -> None:
    sys.stdout.write(f"{value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    {"lead": lead, "append": append}[sys.argv[1]](open_store(sys.argv[2]))
