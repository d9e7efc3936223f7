"""The reference page of built-in kinds of other projects, made from the table of their fields."""

import sys

from muster.doors.kubernetes.foreign.fields import Known, table
from muster.doors.kubernetes.foreign.kinds import DEFINITIONS, Definition
from muster.doors.kubernetes.pods.support import Treatment

HEAD = """\
# Kinds of other projects that are built in

This page is made from the table that the door itself reads: `make reference`.

These kinds are served without somebody having to install their definitions.
A field of a spec is used, or has no effect and a warning says so, or is refused.
None is dropped silently. Templates of pods are pods: see [their page](kubernetes-pods.md).

"""


def page() -> str:
    """The whole page, as Markdown."""
    return HEAD + "\n".join(map(_section, DEFINITIONS))


def _section(definition: Definition) -> str:
    versions = ", ".join(f"`{definition.group}/{each}`" for each in definition.versions)
    title = f"## {definition.kind} ({definition.group})\n\n{versions}\n"
    parts = [(name, table()[name]) for name in _parts(definition.type)]
    used = [
        f"- **{name}**: {', '.join(f'`{each}`' for each in names)}"
        for name, fields in parts
        if (names := _of(fields, Treatment.USED))
    ]
    rows = [
        f"| {name} | `{each}` | {fields[each].treatment} | {fields[each].note} |"
        for name, fields in parts
        for each in sorted(fields)
        if fields[each].treatment is not Treatment.USED
    ]
    head = ["| part | field | what becomes of it | |", "|---|---|---|---|"] if rows else []
    return "\n".join([title, *head, *rows, *([""] if rows else []), "Used:", "", *used, ""])


def _of(fields: dict[str, Known], treatment: Treatment) -> list[str]:
    return sorted(name for name, each in fields.items() if each.treatment is treatment)


def _parts(name: str) -> list[str]:
    """A type and the types within it, each once."""
    found = [name]
    for each in table()[name].values():
        if each.of in table() and each.treatment is Treatment.USED:
            found += [inner for inner in _parts(each.of) if inner not in found]
    return found


if __name__ == "__main__":
    sys.stdout.write(page())
