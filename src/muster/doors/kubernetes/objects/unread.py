"""Expressions in CEL: kept and never evaluated, of which whoever writes them is told. Pure."""

from collections.abc import Iterator
from typing import Any

from muster.doors.kubernetes.objects.value import JsonObject, is_list, is_map, items

RULES, CONDITIONS = "x-kubernetes-validations", "matchConditions"


def unread_rules(crd: JsonObject) -> tuple[str, ...]:
    """Of the schemas of a CustomResourceDefinition: what they demand in expressions."""
    found = [
        path
        for number, version in enumerate(items(crd, "spec", "versions"))
        for path in _rules_in(version, f"spec.versions[{number}]")
    ]
    if not found:
        return ()
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return (f"{found[0]}{more}: rules are kept, and not evaluated; a webhook can check objects",)


def unread_conditions(webhooks: JsonObject) -> tuple[str, ...]:
    """Of a configuration of webhooks: when they need not be asked."""
    return tuple(
        f"webhooks[{number}].{CONDITIONS} are kept, and not evaluated: it is asked about more"
        for number, each in enumerate(items(webhooks, "webhooks"))
        if items(each, CONDITIONS)
    )


def _rules_in(found: Any, path: str) -> Iterator[str]:
    if is_map(found):
        for name, value in found.items():
            at = f"{path}.{name}"
            if name == RULES and is_list(value) and value:
                yield at
            else:
                yield from _rules_in(value, at)
    elif is_list(found):
        for number, value in enumerate(found):
            yield from _rules_in(value, f"{path}[{number}]")
