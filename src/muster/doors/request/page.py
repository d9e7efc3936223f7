"""The reference page of job files, and their schema, from the table of requests."""

import sys

import msgspec

from muster.api.requests import GroupDocument, JobFile
from muster.doors.config.page import called
from muster.doors.config.shapes import Section
from muster.doors.request.job_file import GROUP, JOB
from muster.doors.request.table import Field, FieldType, fields_of

INTRODUCTION = """\
# Everything a job can ask for

One table for all doors. A row is
a key of a [job file](../howto/job-files.md),
a keyword of [`Client.submit`](../howto/python.md) in Python,
a field of `POST /v1/jobs` in the [REST API](../howto/rest.md),
an option of `muster submit` and of `#MUSTER` lines in scripts (the second column),
and what `sbatch --muster=...` takes for what [Slurm](../howto/slurm.md) has no word for.

This page is made from that table, `src/muster/api/requests.py`, by `make reference`.
Editors that know JSON Schema can check job files with [job-file.schema.json](job-file.schema.json).

| what | examples |
|---|---|
| a time | `90s`, `45m`, `1h30m`, `7d`, `1-12:00:00`, `12:30` (minutes); digits alone are seconds |
| memory | `512M`, `16G`, `1.5T`; digits alone are MiB |
| an instant | `2026-12-01T08:00:00Z`, `2026-12-01T08:00` (your clock), `now+2h` |
| a list | `[a, b]`, or one text with commas; on the command line several times, or with commas |
| a label rule | `value`, `a\\|b` (one of them), `*` (any value); with `!` before it the opposite |
"""


HEAD = """
| key | option | what | default | example | meaning |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The page as it belongs in docs/reference/requests.md."""
    fields = fields_of(JobFile).values()
    titles = dict.fromkeys(field.row.section for field in fields)
    parts = [
        f"\n## {title}\n{HEAD}"
        + "".join(_row(field, JOB) for field in fields if field.row.section == title)
        for title in titles
    ]
    groups = "".join(_row(field, GROUP) for field in fields_of(GroupDocument).values())
    return f"{INTRODUCTION}{''.join(parts)}\n## {GROUP.title}\n{HEAD}{groups}"


def schema() -> str:
    """The JSON Schema of a job file."""
    found = msgspec.json.schema(JobFile)
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def _row(field: Field, section: Section) -> str:
    key = section.key(field.name)
    if key is None:
        return ""
    cells = (
        f"`{field.name}`",
        " ".join(f"`{option}`" for option in field.options) if section is JOB else "",
        called(key),
        _default(field),
        f"`{key.name}: {key.example}`" if key.example else "",
        key.meaning,
    )
    return f"| {' | '.join(cells)} |\n"


def _default(field: Field) -> str:
    """What is asked for when nothing is said; nothing where that is nothing."""
    if field.default is None or field.default in ((), {}, "", 0):
        return "`false`" if field.default is False else ""
    text = str(field.default).lower() if field.type is FieldType.FLAG else str(field.default)
    return f"`{text}`"


if __name__ == "__main__":
    sys.stdout.write(schema() if sys.argv[1:] == ["schema"] else page())
