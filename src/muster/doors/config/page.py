"""The reference page of the configuration file, from the table of keys."""

from muster.doors.config.kinds import ValueType
from muster.doors.config.of_site import SECTIONS
from muster.doors.config.shapes import (
    Aside,
    Branches,
    Inside,
    Key,
    Many,
    Metered,
    NamedMapping,
    Pairs,
    Section,
    ValueList,
)
from muster.doors.config.show import kind_of, kind_text, value_of

INTRODUCTION = """\
# The configuration file

`muster apply -f cluster.yaml` makes the rules in a file hold, all of them at once.
The file describes the whole installation: what is not in it is removed.
An empty file is refused.
`muster apply -f cluster.yaml --dry-run` says what would change.
`muster site` prints the file that gives what holds now.
A commented example is in [examples/cluster.yaml](../../examples/cluster.yaml).

This page is written by the code that reads the file: run `make reference`.

How things are written:

| what | examples |
|---|---|
| a time | `90s`, `45m`, `1h30m`, `7d`, `1-12:00:00`, `12:30` (minutes); digits alone are seconds |
| memory | `512M`, `16G`, `1.5T`; `G`, `GB` and `GiB` are the same; digits alone are MiB |
| an amount of quota | GPUs or cores `8`, `0.5`; memory `512G`; or `50%` of all the line counts |
| an instant | `2026-12-01T08:00:00Z`, always with its zone |
| true and false | `true` and `false`, nothing else |
| no value | `none`, where the default column or the meaning says so |

YAML anchors, aliases and `<<` may be used. A key that is written twice is an error.
All problems are reported at once, each with its line and column.
"""


def page() -> str:
    """The page as it belongs in docs/reference/cluster-yaml.md."""
    return INTRODUCTION + "".join(_section(section) for section in SECTIONS)


def _section(section: Section) -> str:
    rows = "".join(_row(key, section) for key in section.keys)
    head = "| key | what | default | example | meaning |\n|---|---|---|---|---|\n"
    return f"\n## {section.title}\n\n{head}{rows}"


def _row(key: Key, section: Section) -> str:
    example = f"`{key.name}: {key.example}`" if key.example else ""
    cells = (f"`{key.name}`", called(key), _default(key, section), example, key.meaning)
    return f"| {' | '.join(cells)} |\n"


def called(key: Key) -> str:
    """What stands behind the key."""
    match key.shape:
        case ValueType(called=called):
            return called
        case Many(each=kind):
            return f"a list, each {kind.called}"
        case Pairs(each=kind):
            return f"names, each with {kind.called}"
        case Metered():
            return "an amount"
        case Inside() | Aside():
            return "keys, below"
        case ValueList():
            return "a list, below"
        case NamedMapping() | Branches():
            return "names, below"


def _default(key: Key, section: Section) -> str:
    match key.shape:
        case ValueType() if key.required:
            return "must be given"
        case ValueType() | Metered() as shape if section.blank is not None:
            return (
                f"`{kind_text(kind_of(shape, section.blank), value_of(section.blank, key.target))}`"
            )
        case Branches() | Many() | Pairs() | ValueList():
            return "empty"
        case ValueType() | Metered() | Inside() | Aside() | NamedMapping():
            return ""


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 -- printing the page is what it is run for
