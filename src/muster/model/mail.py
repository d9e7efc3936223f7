"""Mail about a job: on which occasions it is sent, and to whom."""

import re
from enum import StrEnum

from muster.model.value import Value


class Occasion(StrEnum):
    """What mail is sent about, in the order in which lists name them.

    END: it completed, or a user cancelled it. FAIL: it ended in any other way.
    INVALID_DEPEND: what it waits for can never happen.
    TIME_LIMIT_50: half of its time is over; TIME_LIMIT: all of it, and it was ended for that.
    MISSES_DEADLINE: it waits, and is expected to start too late for its deadline.
    STAGE_OUT: files were moved away after its end, which only other systems do.
    """

    INVALID_DEPEND = "invalid_depend"
    BEGIN = "begin"
    END = "end"
    FAIL = "fail"
    REQUEUE = "requeue"
    STAGE_OUT = "stage_out"
    TIME_LIMIT_50 = "time_limit_50"
    TIME_LIMIT_80 = "time_limit_80"
    TIME_LIMIT_90 = "time_limit_90"
    TIME_LIMIT = "time_limit"
    MISSES_DEADLINE = "misses_deadline"


class Mail(Value, omit_defaults=True):
    """When to write to whom: to the job's user if no address is given.

    each_part: about every part of an array by itself, in place of the array as a whole.
    """

    on: tuple[Occasion, ...] = ()
    to: str | None = None
    each_part: bool = False


NO_MAIL = Mail()

LONGEST_ADDRESS = 1_024

_ADDRESS = re.compile(r"\w[\w.+=%&'-]*(?:@[\w\[][\w.:\[\]-]*)?")


def is_address(text: str) -> bool:
    """Addresses or names of users, with commas between them.

    Mail programs take some words for options, files or commands: `-f`, `/etc/x`, `|reboot`.
    """
    words = text.split(",")
    return len(text) <= LONGEST_ADDRESS and all(_ADDRESS.fullmatch(word) for word in words)
