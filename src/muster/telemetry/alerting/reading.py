"""Reads rules in Prometheus' YAML: all of a file, or everything that is wrong with it."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import yaml

from muster.model.errors import MusterError
from muster.model.value import Value
from muster.telemetry.alerting.rules import AlertRule, Recording, Rule, RuleGroup
from muster.telemetry.alerting.template import Template, template
from muster.telemetry.promql.bad import BadExpressionError
from muster.telemetry.promql.durations import milliseconds
from muster.telemetry.promql.parser import parsed
from muster.telemetry.promql.syntax import Expression, Number

T = TypeVar("T")

MOST_CHARACTERS: Final = 2_000_000
MOST_NODES: Final = 200_000
DEEPEST: Final = 20

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class RuleFault(Value):
    """One thing that is wrong. rule: its name, or its group's, or nothing."""

    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        where = f"line {self.line}: "
        return f"{where}{self.rule}: {self.text}" if self.rule else where + self.text


class BadRulesError(MusterError):
    """The user: the file cannot be used as it is."""

    def __init__(self, faults: tuple[RuleFault, ...]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


def rule_groups(text: str) -> tuple[RuleGroup, ...]:
    """All groups of a file; BadRulesError with everything that is wrong with it."""
    faults: list[RuleFault] = []
    root = _root(text)
    found = tuple(_Reader(faults).groups(root))
    if faults:
        raise BadRulesError(tuple(sorted(faults, key=lambda fault: (fault.line, fault.text))))
    return found


_GROUPS = re.compile(r"^groups[ \t]*:", re.MULTILINE)
_OTHER_KEY = re.compile(r"^(?!groups[ \t]*:)[A-Za-z_][\w-]*[ \t]*:", re.MULTILINE)


def is_rules(text: str) -> bool:
    """Is this a file of rules, and no other? Its one key is `groups`."""
    return _GROUPS.search(text) is not None and _OTHER_KEY.search(text) is None


def _root(text: str) -> yaml.Node:
    if len(text) > MOST_CHARACTERS:
        raise _fault(1, "the file is too long to be a file of rules")
    try:
        _demand_shallow(text)
        root = _composed(text)
    except yaml.MarkedYAMLError as bad:
        line = 1 if bad.problem_mark is None else bad.problem_mark.line + 1
        raise _fault(line, f"this is not YAML: {bad.problem or bad.context}") from bad
    except (yaml.YAMLError, ValueError, RecursionError) as bad:
        raise _fault(1, f"this is not YAML: {bad}") from bad
    if root is None:
        raise _fault(1, "the file is empty; write `groups:`")
    return root


def _demand_shallow(text: str) -> None:
    """Neither so deep nor so often repeated that reading it would be an attack."""
    depth = nodes = 0
    loader: Any = _LOADER(text)  # the stubs say nothing about events
    try:
        while loader.check_event():
            event = loader.get_event()
            nodes += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            line: int = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                raise _fault(line, "aliases (`*name`) are not read here; write the rule out")
            if depth > DEEPEST or nodes > MOST_NODES:
                raise _fault(line, "this is nested too deeply, or too long")
    finally:
        loader.dispose()


def _composed(text: str) -> yaml.Node | None:
    loader = _LOADER(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _fault(line: int, text: str) -> BadRulesError:
    return BadRulesError((RuleFault(line=line, rule="", text=text),))


Fields = Mapping[str, yaml.Node]


class _Reader:
    """Reads on after a fault, so that all of them are told at once."""

    def __init__(self, faults: list[RuleFault]) -> None:
        self._faults = faults
        self._rule = ""

    def groups(self, root: yaml.Node) -> Iterator[RuleGroup]:
        fields = self._fields(root, frozenset({"groups"}))
        if "groups" not in fields:
            self._wrong(root, "there is no `groups:`")
            return
        names: set[str] = set()
        for node in self._items(fields["groups"]):
            self._rule = ""
            group = self._group(node)
            if group.name in names:
                self._wrong(node, f"there are two groups {group.name!r}")
            names.add(group.name)
            yield group

    def _group(self, node: yaml.Node) -> RuleGroup:
        known = frozenset(
            "name interval limit labels rules query_offset partial_response_strategy".split()
        )
        fields = self._fields(node, known)
        for word in ("query_offset", "partial_response_strategy"):
            if word in fields:
                self._wrong(fields[word], f"`{word}` is not evaluated; run this in a Prometheus")
        name = self._text(fields.get("name"))
        if not name:
            self._wrong(node, "a group needs a `name`")
        common = self._labels(fields.get("labels"))
        rules = self._items(fields["rules"]) if "rules" in fields else ()
        return RuleGroup(
            name=name,
            rules=tuple(each for rule in rules if (each := self._one(rule, common)) is not None),
            interval_ms=self._span(fields.get("interval")),
            limit=self._whole(fields.get("limit")),
        )

    def _one(self, node: yaml.Node, common: Mapping[str, yaml.Node]) -> Rule | None:
        known = frozenset("alert record expr for keep_firing_for labels annotations".split())
        fields = self._fields(node, known)
        name = self._text(fields.get("alert")) or self._text(fields.get("record"))
        self._rule = name
        if ("alert" in fields) is ("record" in fields) or not name:
            self._wrong(node, "a rule has either `alert` or `record`, and a name there")
            return None
        expression = self._expression(node, fields.get("expr"))
        labels = {**common, **self._labels(fields.get("labels"))}
        if "record" in fields:
            return self._recording(fields, expression, labels)
        return AlertRule(
            name=name,
            of=expression,
            for_ms=self._span(fields.get("for")),
            keep_ms=self._span(fields.get("keep_firing_for")),
            labels=self._templates(labels),
            annotations=self._templates(self._labels(fields.get("annotations"))),
        )

    def _recording(self, fields: Fields, of: Expression, labels: Fields) -> Recording:
        name = self._text(fields["record"])
        if not _METRIC.fullmatch(name):
            self._wrong(fields["record"], f"{name!r} is not the name of a metric")
        for word in ("for", "keep_firing_for", "annotations"):
            if word in fields:
                self._wrong(fields[word], f"`{word}` is for alerts")
        texts = tuple(sorted((label, self._text(node)) for label, node in labels.items()))
        return Recording(name=name, of=of, labels=texts)

    def _expression(self, rule: yaml.Node, node: yaml.Node | None) -> Expression:
        if node is None:
            self._wrong(rule, "there is no `expr`")
            return Number(value=0)
        return self._read(node, parsed) or Number(value=0)

    def _templates(self, nodes: Mapping[str, yaml.Node]) -> tuple[tuple[str, Template], ...]:
        found = ((name, self._read(node, template)) for name, node in sorted(nodes.items()))
        return tuple((name, each) for name, each in found if each is not None)

    def _read(self, node: yaml.Node, reader: Callable[[str], T]) -> T | None:
        text = self._text(node)
        try:
            return reader(text)
        except BadExpressionError as bad:
            # The text of a block begins in the line below its sign.
            begins = node.start_mark.line + 1 + (getattr(node, "style", None) in {"|", ">"})
            self._wrong_at(begins + text.count("\n", 0, bad.at), str(bad))
            return None

    def _labels(self, node: yaml.Node | None) -> dict[str, yaml.Node]:
        if node is None or _is_nothing(node):
            return {}
        fields = self._fields(node, None)
        for name, value in fields.items():
            if not _LABEL.fullmatch(name) or name == "__name__":
                self._wrong(value, f"{name!r} is not the name of a label")
        return dict(fields)

    def _fields(self, node: yaml.Node, known: frozenset[str] | None) -> Fields:
        if not isinstance(node, yaml.MappingNode):
            self._wrong(node, "a mapping was expected")
            return {}
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            word = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if known is not None and word not in known:
                self._wrong(key, f"`{word}` is not known here")
            elif word in found:
                self._wrong(key, f"`{word}` is here twice")
            found[word] = value
        return found

    def _items(self, node: yaml.Node) -> tuple[yaml.Node, ...]:
        if isinstance(node, yaml.SequenceNode):
            return tuple(node.value)
        if not _is_nothing(node):
            self._wrong(node, "a list was expected")
        return ()

    def _text(self, node: yaml.Node | None) -> str:
        if node is None:
            return ""
        if not isinstance(node, yaml.ScalarNode):
            self._wrong(node, "a text was expected")
            return ""
        return str(node.value)

    def _span(self, node: yaml.Node | None) -> int:
        text = self._text(node)
        span = milliseconds(text) if text else 0
        if span is None and node is not None and text != "0":
            self._wrong(node, f"{text!r} is no time; write it such as `5m`")
        return span or 0

    def _whole(self, node: yaml.Node | None) -> int:
        text = self._text(node)
        if node is not None and not text.isdecimal():
            self._wrong(node, f"{text!r} is not a whole number")
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    def _wrong(self, node: yaml.Node, text: str) -> None:
        self._wrong_at(node.start_mark.line + 1, text)

    def _wrong_at(self, line: int, text: str) -> None:
        self._faults.append(RuleFault(line=line, rule=self._rule, text=text))


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value in {"", "~", "null"}
