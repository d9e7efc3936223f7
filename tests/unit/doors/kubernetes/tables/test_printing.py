from pathlib import Path

import pytest
import yaml

from muster.doors.kubernetes.objects.kinds import KINDS, kind_of
from muster.doors.kubernetes.objects.times import instant
from muster.doors.kubernetes.objects.value import JsonObject, Kind
from muster.doors.kubernetes.tables.cells import shown_at
from muster.doors.kubernetes.tables.printing import printing_of
from muster.model.value import Instant

GOLDEN = Path(__file__).parents[4] / "golden" / "kubernetes" / "tables"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_rows_are_those_of_kubectl_wide(path: Path) -> None:
    given, _, expected = path.read_text(encoding="utf-8").partition("--- expected\n")
    first, _, documents = given.partition("\n")
    now = instant(first.removeprefix("now: "))
    assert now is not None

    shown = table(list(yaml.safe_load_all(documents)), now)

    assert shown == expected.splitlines()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified_kind)
def test_every_kind_has_as_many_cells_as_columns(kind: Kind) -> None:
    bare: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}}

    printing = printing_of(kind)

    assert len(printing.cells(bare)) == len(printing.columns)


def table(objects: list[JsonObject], now: Instant) -> list[str]:
    """As kubectl prints a Table, wide: columns padded, three blanks between them."""
    kind = kind_of(objects[0])
    assert kind is not None
    printing = printing_of(kind)
    rows = [[column.name.upper() for column in printing.columns]]
    rows += [[shown(shown_at(cell, now)) for cell in printing.cells(each)] for each in objects]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["   ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def shown(cell: str | int | bool) -> str:
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
