"""Job files: a job in YAML, with the keys of the table of requests."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from muster.api.requests import GroupDocument, JobFile
from muster.doors import units
from muster.doors.config.faults import Findings, SiteFault, TextPosition
from muster.doors.config.faults import Path as KeyPath
from muster.doors.config.kinds import INTEGER, TRUTH, ValueType, one_of
from muster.doors.config.read import Reader
from muster.doors.config.shapes import Key, Many, Pairs, Section, Shape, ValueList
from muster.doors.config.tree import tree_of
from muster.doors.request.options import words
from muster.doors.request.table import Field, FieldType, fields_of
from muster.doors.units import BadTextError
from muster.model.errors import MusterError
from muster.model.value import Instant, Value


class BadJobFileError(MusterError):
    """The user: the file cannot be used as it is; the text says all that is wrong, and where."""


class ReadFile(Value):
    """A job file that was read, and where each of its values stands."""

    source: str
    job: JobFile
    positions: Mapping[KeyPath, TextPosition]

    def place(self, where: str) -> str:
        """`job.yaml:3`: where a field stands that the server names, such as `groups[1].gpus`."""
        keys = _keys(where)
        while keys and keys not in self.positions:
            keys = keys[:-1]
        found = self.positions.get(keys)
        return self.source if found is None else f"{self.source}:{found.line}"


def read_job_file(path: str | Path) -> JobFile:
    """The job that a file describes; BadJobFileError says all that is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadJobFileError(f"{path} cannot be read: {wrong}") from wrong
    return job_file_from(text, str(path)).job


def job_file_from(text: str, source: str) -> ReadFile:
    """The same for a text. source: what errors call it."""
    findings = Findings()
    tree = tree_of(text, findings)
    if tree is None and not findings.faults:
        findings.wrong(TextPosition(line=1, column=1), (), "the file is empty; write `command:`")
    job = None if tree is None else Reader(findings).value(JOB, tree, ())
    if findings.faults or not isinstance(job, JobFile):
        lines = sorted(findings.faults, key=lambda fault: (fault.line, fault.column, fault.text))
        raise BadJobFileError("\n".join(_line(fault, source) for fault in lines))
    return ReadFile(source=source, job=job, positions=findings.spots)


def _line(fault: SiteFault, source: str) -> str:
    way = f"{fault.keys}: " if fault.keys else ""
    return f"{source}:{fault.line}: {way}{fault.text}"


def _keys(where: str) -> KeyPath:
    """`groups[1].gpus` as `("groups", 1, "gpus")`."""
    parts = where.replace("[", ".").replace("]", "").split(".")
    return tuple(int(part) if part.isdecimal() else part for part in parts if part)


def _section(document: type[Value], title: str, noun: str) -> Section:
    fields = fields_of(document).values()
    return Section(
        title=title,
        noun=noun,
        makes=(document,),
        blank=document(),
        keys=tuple(map(_key, fields)),
    )


def _key(field: Field) -> Key:
    return Key(
        name=field.name,
        shape=_shape(field),
        meaning=_meaning(field),
        example=_example(field),
        optional=field.optional,
        other_names=tuple(
            name.strip("-").replace("-", "_") for name in field.options if len(name) > 2
        ),
    )


def _meaning(field: Field) -> str:
    """Of a flag that is true by default, the help says what its option does: the opposite."""
    text = field.row.help.replace("|", "\\|")
    return f"`false`: {text}" if field.type is FieldType.FLAG and field.default else text


def _example(field: Field) -> str:
    text = field.row.example
    match field.type:
        case FieldType.TEXTS if text:
            return f"[{', '.join(text.split(','))}]"
        case FieldType.PAIRS if text:
            name, _, value = text.partition("=")
            return f"{{{name}: {value}}}"
        case _:
            return text


def _shape(field: Field) -> Shape:
    match field.type:
        case FieldType.FLAG:
            return TRUTH
        case FieldType.INTEGER:
            return _OCTAL if field.row.reads == "octal" else _WHOLE
        case FieldType.NUMBER:
            return _NUMBER
        case FieldType.TEXT:
            if field.row.choices:
                return one_of(list(field.row.choices))
            return _TEXTS.get(field.row.reads, _TEXT)
        case FieldType.TEXTS:
            return Many(each=_TEXT, split=_command if field.name == "command" else _words)
        case FieldType.PAIRS:
            return Pairs(each=_TEXT, optional=field.name == "env")
        case FieldType.GROUPS:
            return ValueList(section=GROUP)


def _command(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


def _words(text: str) -> tuple[str, ...]:
    return words((text,))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadTextError(text, "a number such as `4` or `0.5`") from None


def _octal(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError:
        raise BadTextError(text, "octal digits such as `027`") from None


def _checked(called: str, read: Callable[[str], Any]) -> ValueType:
    """Text that the server reads; what it could not read is known here, with its line."""

    def checked(text: str) -> str:
        read(text)
        return text

    return ValueType(called=called, read=checked, is_name=True)


_TEXT = ValueType(called="text", read=str, is_name=True)
_WHOLE = ValueType(called="a whole number", read=INTEGER.read)
_NUMBER = ValueType(called="a number", read=_number)
_OCTAL = ValueType(called="octal digits", read=_octal, write=lambda mask: f"{mask:03o}")
_TEXTS = {
    "memory": _checked("memory", units.memory_mib),
    "time": _checked("a time", units.duration),
    "instant": _checked("an instant", lambda text: units.instant(text, Instant(0))),
    "slice": _checked("a slice", units.slice_of),
    "signal": _checked("a signal", units.signal_number),
}

GROUP = _section(GroupDocument, "A group of tasks: `groups[]`", "group of tasks")
JOB = _section(JobFile, "The job", "job")
