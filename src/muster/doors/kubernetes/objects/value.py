"""What an object of Kubernetes is to this door: plain JSON, of a kind, at a place.

An object is a `JsonObject` as it stands on the wire, complete with apiVersion, kind and metadata.
Functions that take one leave it as it is, and return another one if something changes,
unless they say otherwise.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeGuard, cast

from muster.model.value import Value

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object: of Kubernetes, or a part of one."""


class Subresource(Value):
    """A part of a resource with a path of its own, such as `status`, `scale` or `log`.

    kind: what it answers with; its group and version where they are not those of the resource.
    """

    name: str
    verbs: tuple[str, ...]
    kind: str
    group: str | None = None
    version: str | None = None


class Kind(Value):
    """A kind of object, and the resource under which it is served.

    plural: the resource's name in paths. verbs: sorted, as discovery names them.
    is_stored: its objects are kept; reviews, for example, are only answered.
    is_custom: defined by a CustomResourceDefinition.
    is_shown_last: who deletes an object is shown it, and not told of a success.
    kept_as: the kind as which its objects are kept; None where it is this one.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    verbs: tuple[str, ...]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    is_stored: bool = True
    is_custom: bool = False
    is_shown_last: bool = False
    kept_as: "Kind | None" = None

    @property
    def kept(self) -> "Kind":
        """The kind as which its objects are kept."""
        return self.kept_as or self

    @property
    def shelf(self) -> tuple[str, str]:
        """Where they are kept: group and plural."""
        return self.kept.group, self.kept.plural

    @property
    def api_version(self) -> str:
        """As objects carry it: `v1`, or `batch/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As messages name it: `pods`, or `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """As messages name it: `Pod`, or `Job.batch`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def metadata(obj: Mapping[str, Any]) -> JsonObject:
    """The object's metadata; an empty one where it has none."""
    return part(obj, "metadata")


def part(obj: Mapping[str, Any], *names: str) -> JsonObject:
    """The JSON object below these names; an empty one where there is none."""
    found: Any = obj
    for name in names:
        found = cast("JsonObject", found).get(name) if isinstance(found, dict) else None
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def items(obj: Mapping[str, Any], *names: str) -> list[Any]:
    """The list below these names; an empty one where there is none."""
    found = part(obj, *names[:-1]).get(names[-1])
    return cast("list[Any]", found) if isinstance(found, list) else []


def name_of(obj: Mapping[str, Any]) -> str:
    """Its name; empty before the server has chosen one."""
    return str(metadata(obj).get("name") or "")


def namespace_of(obj: Mapping[str, Any]) -> str:
    """Its namespace; empty for what has none."""
    return str(metadata(obj).get("namespace") or "")


def uid_of(obj: Mapping[str, Any]) -> str:
    """Its uid; empty before the server has chosen one."""
    return str(metadata(obj).get("uid") or "")


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Its labels."""
    return part(obj, "metadata", "labels")


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Its annotations."""
    return part(obj, "metadata", "annotations")


def copied(obj: JsonObject) -> JsonObject:
    """A copy of which any part may be changed."""
    return {name: copied_value(each) for name, each in obj.items()}


def copied_value(value: Any) -> Any:
    """The same for any JSON value."""
    if is_map(value):
        return copied(value)
    if is_list(value):
        return [copied_value(each) for each in value]
    return value


def is_map(value: object) -> TypeGuard[JsonObject]:
    """Is it a JSON object?"""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Is it a JSON list?"""
    return isinstance(value, list)
