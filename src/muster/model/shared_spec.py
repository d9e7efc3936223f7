"""What the parts of an array share of their spec, and what is each one's own.

Parts are made by `replace`, which copies no field: to compare two of them hardly takes time,
however large their spec is.
"""

from operator import attrgetter

from muster.model.job import ArrayPart, Dependency, JobSpec
from muster.model.value import Value, replace


class OwnSpec(Value, omit_defaults=True, gc=False):
    """What of a spec is one job's own: which part it is, and the conditions of that part alone."""

    array: ArrayPart | None = None
    after: tuple[Dependency, ...] = ()


def shared_spec(spec: JobSpec) -> JobSpec:
    """The spec without what is the job's own."""
    common, _ = _conditions(spec.after)
    return replace(spec, array=None, after=common)


def own_spec(spec: JobSpec) -> OwnSpec:
    _, own = _conditions(spec.after)
    return OwnSpec(array=spec.array, after=own)


def joined(shared: JobSpec, own: OwnSpec) -> JobSpec:
    """The spec again."""
    after = shared.after + own.after if own.after else shared.after
    return replace(shared, array=own.array, after=after)


def are_parts_of_one(one: JobSpec, other: JobSpec) -> bool:
    """Do they differ in nothing but what is each one's own?"""
    if _shared_fields(one) != _shared_fields(other):
        return False
    return one.after is other.after or _conditions(one.after)[0] == _conditions(other.after)[0]


_shared_fields = attrgetter(
    *[name for name in JobSpec.__struct_fields__ if name not in OwnSpec.__struct_fields__]
)


def _conditions(
    after: tuple[Dependency, ...],
) -> tuple[tuple[Dependency, ...], tuple[Dependency, ...]]:
    """Those of all parts, which stand first, and those from the first of one part alone on."""
    for place, each in enumerate(after):
        if each.part is not None:
            return after[:place], after[place:]
    return after, ()
