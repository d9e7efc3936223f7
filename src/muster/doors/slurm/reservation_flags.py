"""The flags of a reservation in Slurm's words, and what they say in ours."""

from muster.model.cluster import Every, Reservation
from muster.model.value import replace

COMING_BACK = {each.name: each for each in Every}
FLEX = "FLEX"
MAGNETIC = "MAGNETIC"
KNOWN_FLAGS = frozenset(
    {"MAINT", "IGNORE_JOBS", "OVERLAP", "SPEC_NODES", FLEX, MAGNETIC, *COMING_BACK}
)
IGNORED_FLAGS = frozenset(
    """
    ANY_NODES FIRST_CORES NO_HOLD_JOBS NO_HOLD_JOBS_AFTER NO_HOLD_JOBS_AFTER_END PART_NODES
    PURGE_COMP STATIC STATIC_ALLOC USER_DELETE
    """.split()
)
REFUSED_FLAGS = frozenset("LICENSE_ONLY REPLACE REPLACE_DOWN TIME_FLOAT".split())
"""They would make another reservation of it, and we cannot."""


def flags_of(each: Reservation) -> tuple[str, ...]:
    """All flags of a reservation in Slurm's words, but that its nodes were named."""
    found = [*each.flags]
    if not each.by_name and (each.for_queue is not None or each.for_users):
        found.append(MAGNETIC)
    if each.flexible:
        found.append(FLEX)
    if each.every is not None:
        found.append(each.every.name)
    return tuple(found)


def flagged(each: Reservation, flags: frozenset[str], zone: str) -> Reservation:
    """The reservation with these flags and no others."""
    every = every_of(flags)
    told = flags - {"SPEC_NODES", FLEX, MAGNETIC} - COMING_BACK.keys()
    return replace(
        each,
        by_name=MAGNETIC not in flags,
        flexible=FLEX in flags,
        every=every,
        zone=each.zone if every is each.every or every is None else zone,
        flags=tuple(sorted(told)),
    )


def every_of(flags: frozenset[str]) -> Every | None:
    """How often a reservation with these flags comes back."""
    return next((COMING_BACK[name] for name in COMING_BACK if name in flags), None)
