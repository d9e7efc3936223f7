"""Selectors: which objects a list, a watch or a controller means."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from muster.doors.kubernetes.objects.errors import bad_request
from muster.doors.kubernetes.objects.names import key_faults, label_value_faults
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.model.value import Value


class Operator(StrEnum):
    """How a requirement looks at a label."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    MISSING = "!"
    GREATER = "gt"
    LESS = "lt"


class Requirement(Value):
    """What one label must be like."""

    key: str
    test: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Do these labels meet it?"""
        value = labels.get(self.key)
        match self.test:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.MISSING:
                return value is None
            case Operator.GREATER:
                return _number(value) is not None and _is_greater(value, self.values[0])
            case Operator.LESS:
                return _number(value) is not None and _is_greater(self.values[0], value)


LabelSelector = tuple[Requirement, ...]

EVERYTHING: LabelSelector = ()


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Do the labels meet all requirements?"""
    return all(each.holds(labels) for each in selector)


def selector_of(obj: JsonObject) -> LabelSelector:
    """The `LabelSelector` of a spec, with matchLabels and matchExpressions."""
    equal = [
        Requirement(key=key, test=Operator.IN, values=(str(value),))
        for key, value in sorted(part(obj, "matchLabels").items())
    ]
    return (*equal, *(_expression(each) for each in items(obj, "matchExpressions")))


_TESTS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.MISSING,
    "Gt": Operator.GREATER,
    "Lt": Operator.LESS,
}


def _expression(found: JsonObject) -> Requirement:
    values = tuple(map(str, found.get("values") or ()))
    return Requirement(key=found["key"], test=_TESTS[found["operator"]], values=values)


_TOKEN = re.compile(r"\s*(!=|==|=|!|\(|\)|,|>|<|[^\s!=(),<>]+)")


def parse_labels(text: str) -> LabelSelector:
    """A selector as it is typed: `a=b,c!=d,e in (f,g),!h`; StatusError says what is wrong."""
    words = [each for each in _TOKEN.findall(text) if each]
    found: list[Requirement] = []
    while words:
        found.append(_requirement(words))
        if words and words.pop(0) != ",":
            raise bad_request("unable to parse requirement: expected: ',' or 'end of string'")
    return tuple(found)


def _requirement(words: list[str]) -> Requirement:
    """Takes the words of one requirement from the front."""
    if words[0] == "!":
        words.pop(0)
        return Requirement(key=_key(_one(words)), test=Operator.MISSING)
    key = _key(words.pop(0))
    match words[0] if words else ",":
        case ",":
            return Requirement(key=key, test=Operator.EXISTS)
        case "=" | "==":
            words.pop(0)
            return Requirement(key=key, test=Operator.IN, values=(_value(key, _one(words)),))
        case "!=":
            words.pop(0)
            return Requirement(key=key, test=Operator.NOT_IN, values=(_value(key, _one(words)),))
        case ">" | "<":
            test = Operator.GREATER if words.pop(0) == ">" else Operator.LESS
            return Requirement(key=key, test=test, values=(_one(words),))
        case "in" | "notin":
            test = Operator.IN if words.pop(0) == "in" else Operator.NOT_IN
            return Requirement(key=key, test=test, values=_several(key, words))
        case found:
            expected = "expected: in, notin, =, ==, !=, gt, lt"
            raise bad_request(f"unable to parse requirement: found '{found}', {expected}")


_SIGNS = frozenset({"=", "==", "!=", "(", ")", "!"})


def _one(words: list[str]) -> str:
    """A value; `a=` means an empty one."""
    if words and words[0] in _SIGNS:
        raise bad_request(f"unable to parse requirement: found '{words[0]}', expected: identifier")
    return words.pop(0) if words and words[0] != "," else ""


def _several(key: str, words: list[str]) -> tuple[str, ...]:
    opening = words.pop(0) if words else ""
    if opening != "(":
        raise bad_request(f"unable to parse requirement: found '{opening}' expected: '('")
    if ")" not in words:
        raise bad_request("unable to parse requirement: found '', expected: ',' or ')'")
    end = words.index(")")
    values = {_value(key, each) for each in words[:end] if each != ","}
    del words[: end + 1]
    return tuple(sorted(values))


def _key(key: str) -> str:
    faults = key_faults(key)
    if faults:
        shown = f'key: Invalid value: "{key}": ' + "; ".join(faults)
        raise bad_request(f"unable to parse requirement: {shown}")
    return key


def _value(key: str, value: str) -> str:
    faults = label_value_faults(value)
    if faults:
        shown = f'values[0][{key}]: Invalid value: "{value}": ' + "; ".join(faults)
        raise bad_request(f"unable to parse requirement: {shown}")
    return value


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def _is_greater(one: str | None, other: str | None) -> bool:
    first, second = _number(one), _number(other)
    return first is not None and second is not None and first > second


class FieldTest(Value):
    """One field must, or must not, have this value."""

    field: str
    value: str
    equal: bool = True


FieldSelector = tuple[FieldTest, ...]
FieldReader = Callable[[JsonObject], str]


def parse_fields(text: str) -> FieldSelector:
    """A field selector as it is typed: `metadata.name=a,status.phase!=Failed`."""
    return tuple(_field_test(each, text) for each in _field_terms(text))


_TERMS = re.compile(r"(?:[^,\\]|\\.)+")
_FIELD = re.compile(r"([^=!]*?)(!=|==|=)(.*)", re.DOTALL)


def _field_terms(text: str) -> list[str]:
    return [each for each in _TERMS.findall(text) if each]


def _field_test(term: str, text: str) -> FieldTest:
    found = _FIELD.fullmatch(term)
    if found is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    value = re.sub(r"\\([\\,=])", r"\1", found[3])
    return FieldTest(field=found[1], value=value, equal=found[2] != "!=")


def fields_select(
    selector: FieldSelector, obj: JsonObject, readers: Mapping[str, FieldReader]
) -> bool:
    """Does the object have these fields? All of them must be known to `readers`."""
    return all((readers[each.field](obj) == each.value) is each.equal for each in selector)


def text_at(*names: str) -> FieldReader:
    """Reads the field at this path, as text; nothing there reads as an empty text."""

    def read(obj: JsonObject) -> str:
        found: Any = part(obj, *names[:-1]).get(names[-1])
        if isinstance(found, bool):
            return str(found).lower()
        return "" if found is None else str(found)

    return read


METADATA_FIELDS: Mapping[str, FieldReader] = {
    "metadata.name": text_at("metadata", "name"),
    "metadata.namespace": text_at("metadata", "namespace"),
}
"""What every kind can be selected by."""
