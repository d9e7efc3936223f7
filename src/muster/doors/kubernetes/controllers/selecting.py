"""Label selectors as objects write them: matchLabels and matchExpressions."""

from collections.abc import Mapping

from muster.doors.kubernetes.objects.value import JsonObject, items, part


def selector_of(obj: JsonObject) -> JsonObject | None:
    """What an object selects with: a ReplicationController writes plain labels."""
    selector = part(obj, "spec").get("selector")
    if obj.get("kind") == "ReplicationController":
        return {"matchLabels": selector} if selector else None
    return selector


def selects(selector: JsonObject | None, labels: Mapping[str, str]) -> bool:
    """Does it select what has these labels? An empty selector selects everything, none nothing."""
    if selector is None:
        return False
    wanted = part(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(each, labels) for each in items(selector, "matchExpressions"))


def selects_all(labels_wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Has it all of these labels?"""
    return all(labels.get(key) == value for key, value in labels_wanted.items())


def is_empty(selector: JsonObject | None) -> bool:
    """Does it ask for nothing at all?"""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def shown_selector(selector: JsonObject | None) -> str:
    """As kubectl shows it: `app=web,tier in (a,b)`."""
    if is_empty(selector):
        return "<none>"
    labels = part(selector or {}, "matchLabels")
    parts = {f"{key}={value}": key for key, value in labels.items()}
    parts |= {_shown(each): each["key"] for each in items(selector or {}, "matchExpressions")}
    return ",".join(sorted(parts, key=lambda text: (parts[text], text)))


def _holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], items(expression, "values")
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def _shown(expression: JsonObject) -> str:
    key, values = expression["key"], ",".join(sorted(items(expression, "values")))
    match expression["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case _:
            return f"!{key}"
