"""How a benchmark tells what it measured: a table on the screen, and a file for later."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

Cell = int | float | str
Row = Mapping[str, Cell]


def report(
    name: str,
    figures: Mapping[str, Cell],
    table: Sequence[Row],
    *,
    results: Path = RESULTS,
    list_as: str = "table",
) -> Path:
    """Print the table and the figures; keep both, with machine, load and date, as a JSON file.

    list_as: what the file calls the table.
    """
    found, load = machine(), _load_average()
    print(f"{name}: {found['cpu']}, {found['cores']} cores, {found['python']}; load {load}")
    print(f"\n{aligned(table)}")
    if figures:
        print(f"\n{aligned([{'figure': key, 'value': figures[key]} for key in figures])}")
    measured = {
        "name": name,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": found,
        "load_average": load,
        **figures,
        list_as: [dict(row) for row in table],
    }
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{name}.json"
    path.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, Cell]:
    """What a reader needs to judge the figures; nothing that names the machine or its owner."""
    return {
        "cpu": _cpu_model(),
        "cores": _usable_cores(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
    }


def aligned(table: Sequence[Row]) -> str:
    """The rows under the headings of the first one: words to the left, numbers to the right."""
    if not table:
        return "(no rows)"
    headings = list(table[0])
    cells = [[_shown(row[heading]) for heading in headings] for row in table]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    is_number = [not isinstance(table[0][heading], str) for heading in headings]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in [headings, rule, *cells]
    )


def _shown(cell: Cell) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.3f}"
    return cell


def _cpu_model() -> str:
    """Linux says it in /proc; elsewhere Python's own guess has to do."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def _load_average() -> float:
    """How many wanted a core in the last five minutes, this benchmark among them."""
    return round(os.getloadavg()[1], 2)


def _usable_cores() -> int:
    """The cores this process may use, which a container often makes fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
