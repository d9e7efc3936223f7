"""The configurations for programs that gather logs can be read, and name what our log has."""

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.app.log import LOG_NAME, JsonLine
from muster.client.address import SHARED_HOME
from shape.source import ROOT

FOLDER = ROOT / "examples" / "logs"
LOG = str(SHARED_HOME / "logs" / LOG_NAME)

NAMED = {
    "fluent-bit.yaml": r"time_key: (\w+)|\$(\w+)",
    "fluentd.conf": r'^ +time_key (\w+)|record\["(\w+)"\]',
    "logstash.conf": r'match => \["(\w+)"|^ +"(\w+)" =>',
    "datadog.yaml": r"`(\w+)` as",
    "new-relic.yml": r"`(\w+)`",
}
"""How each file names a field of a line."""

SET_THERE = frozenset({"service"})


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def fields_of_a_line() -> set[str]:
    try:
        raise ValueError
    except ValueError:
        failed = sys.exc_info()
    record = logging.LogRecord("muster", logging.ERROR, "f", 1, "x", (), failed)
    return set(json.loads(JsonLine().format(record)))


def test_every_file_is_looked_at() -> None:
    assert {each.name for each in FOLDER.iterdir()} == {*NAMED, "README.md"}


@pytest.mark.parametrize("name", NAMED)
def test_they_name_fields_that_lines_have(name: str) -> None:
    named = re.finditer(NAMED[name], read(name), re.MULTILINE)
    found = {each[each.lastindex or 0] for each in named}

    assert "ts" in found
    assert found - SET_THERE <= fields_of_a_line()
    assert found & {"msg", "level", "logger"}


@pytest.mark.parametrize("name", NAMED)
def test_they_read_the_log_of_root(name: str) -> None:
    assert LOG in read(name)


def test_fluent_bit_uses_the_parser_that_it_defines() -> None:
    found = yaml.safe_load(read("fluent-bit.yaml"))
    pipeline = found["pipeline"]
    (source,) = pipeline["inputs"]

    assert source["parser"] in {each["name"] for each in found["parsers"]}
    assert {each["match"] for each in (*pipeline["filters"], *pipeline["outputs"])} == {
        source["tag"]
    }


@pytest.mark.parametrize("name", ["datadog.yaml", "new-relic.yml"])
def test_agents_find_one_file(name: str) -> None:
    (entry,) = yaml.safe_load(read(name))["logs"]

    assert LOG in {entry.get("path"), entry.get("file")}


def test_datadog_masks_our_tokens() -> None:
    (entry,) = yaml.safe_load(read("datadog.yaml"))["logs"]
    (rule,) = entry["log_processing_rules"]
    # Of the form that tokens have: see use_cases/tokens.py.
    own = "mst_0a1b2c3d_" + "Zm9v-YmFy_" * 4

    assert re.sub(rule["pattern"], rule["replace_placeholder"], f"a {own} b") == "a mst_... b"


def test_fluentd_closes_what_it_opens() -> None:
    opened: list[str] = []
    seen: list[tuple[str, str]] = []
    for line in read("fluentd.conf").splitlines():
        text = line.split("#")[0].strip() if line.lstrip().startswith("#") else line.strip()
        if not text:
            continue
        if end := re.fullmatch(r"</(\w+)>", text):
            assert opened.pop() == end[1]
        elif begin := re.fullmatch(r"<(\w+)(?: ([\w.*]+))?>", text):
            opened.append(begin[1])
            seen.append((begin[1], begin[2] or ""))
        else:
            assert re.match(r"@?\w+ \S", text), text

    assert opened == []
    assert [each for each in seen if each[1]] == [("filter", "muster"), ("match", "muster")]


def test_logstash_is_a_tree_of_plugins() -> None:
    words = re.findall(
        r'"[^"]*"|=>|[{}\[\]]|[\w.:/-]+', re.sub(r"(?m)^#.*$", "", read("logstash.conf"))
    )
    opened: list[str] = []
    for word in words:
        if word in "{[":
            opened.append(word)
        elif word in "}]":
            assert opened.pop() == {"}": "{", "]": "["}[word]

    assert opened == []
    assert [word for word in words if word in {"input", "filter", "output"}] == [
        "input",
        "filter",
        "output",
    ]


def test_the_page_names_every_file() -> None:
    page = read("README.md")

    assert [name for name in NAMED if f"]({name})" not in page] == []
    block = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    sinks: dict[str, Any] = {} if block is None else yaml.safe_load(block[1])
    assert Path(sinks["telemetry"]["sinks"]["newrelic"]["headers_file"]).is_absolute()
