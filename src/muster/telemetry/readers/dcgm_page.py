"""The page of a dcgm-exporter, read as what Prometheus would answer (pure)."""

import math
import re
from collections.abc import Iterator, Mapping

from muster.model.value import NodeId
from muster.telemetry.readers.dcgm_queries import BLANK, SIGNALS, Row

_LINE = re.compile(r"(?P<name>DCGM_FI_\w+)\{(?P<labels>[^\n]*)\}\s+(?P<value>\S+)(?:\s+\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_NAMES = frozenset(name for signal in SIGNALS for name in signal.names)
_ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\"}

Page = Mapping[str, tuple[Row, ...]]


def rows_by_name(text: str, node: NodeId) -> Page:
    """What is said of the node's devices; lines that are none, and blank values, are left out.

    The name that the exporter gives its host does not count: it may be that of its pod.
    """
    found: dict[str, list[Row]] = {}
    for name, row in _rows(text, node):
        found.setdefault(name, []).append(row)
    return {name: tuple(told) for name, told in found.items()}


def _rows(text: str, node: NodeId) -> Iterator[tuple[str, Row]]:
    for line in text.splitlines():
        read = _LINE.fullmatch(line)
        if read is None or read["name"] not in _NAMES:
            continue
        try:
            value = float(read["value"])
        except ValueError:
            continue
        if math.isfinite(value) and abs(value) < BLANK:
            yield read["name"], (_labels(read["labels"], node), value)


def _labels(text: str, node: NodeId) -> Mapping[str, str]:
    named = {name: _plain(value) for name, value in _LABEL.findall(text)}
    return {**named, "Hostname": node}


def _plain(value: str) -> str:
    if "\\" not in value:
        return value
    return re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), value)
