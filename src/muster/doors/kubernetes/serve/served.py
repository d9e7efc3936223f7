"""The kinds that are served now: those of Kubernetes, and those that users defined."""

from collections.abc import Callable, Mapping
from functools import partial

from muster.doors.kubernetes.catalogue import FOREIGN, printed, rules_of
from muster.doors.kubernetes.controllers.scale import USUAL, Scaling
from muster.doors.kubernetes.foreign.kinds import foreign_kind, foreign_kinds, foreign_rules
from muster.doors.kubernetes.objects import openapi
from muster.doors.kubernetes.objects.conversion import renamed
from muster.doors.kubernetes.objects.custom import (
    CustomKind,
    custom_kinds,
    custom_rules,
    read_path,
    with_defaults,
)
from muster.doors.kubernetes.objects.faces import FACES, as_shown
from muster.doors.kubernetes.objects.kinds import CRD, KINDS
from muster.doors.kubernetes.objects.rules import NO_RULES, Cell, Column, Printing, Rules
from muster.doors.kubernetes.objects.schemas.types import Schema, schema_of
from muster.doors.kubernetes.objects.selectors import FieldReader
from muster.doors.kubernetes.objects.strategy import Blueprint
from muster.doors.kubernetes.objects.value import JsonObject, Kind, copied, name_of
from muster.doors.kubernetes.serve.view import ObjectView
from muster.doors.kubernetes.tables.cells import AGE, NAME, age, since

Place = tuple[str, str, str]
"""Group, version and plural."""


Convert = Callable[[JsonObject, JsonObject, str], JsonObject]
"""Has a webhook make an object one of another version."""


class ServedKinds:
    """Looked up by where they are served. Definitions are read again when one changed."""

    def __init__(self, view: ObjectView, convert: Convert) -> None:
        self._view = view
        self._convert = convert
        own = (*KINDS, *FACES)
        self._own = {(each.group, each.version, each.plural): each for each in own}
        self._index: tuple[tuple[Kind, ...], JsonObject] | None = None
        self._documents: dict[str, JsonObject] = {}
        self._defined: tuple[tuple[int, ...], dict[Place, CustomKind]] = ((), foreign_kinds())

    def all(self) -> tuple[Kind, ...]:
        """Every kind, in the order of discovery."""
        return tuple(self.by_place().values())

    def by_place(self) -> dict[Place, Kind]:
        """By group, version and plural."""
        return {**{place: each.kind for place, each in self.custom().items()}, **self._own}

    def of(self, obj: JsonObject) -> Kind:
        """The kind that an object says it is of; KeyError if it is served nowhere."""
        named = (str(obj.get("apiVersion")), str(obj.get("kind")))
        found = {(each.api_version, each.kind): each for each in self.all()}
        return found[named]

    def schema(self, kind: Kind) -> Schema | None:
        """What is known of the fields of a kind."""
        custom = self._custom_of(kind)
        return schema_of(kind) if custom is None else custom.schema

    def blueprint(self, kind: Kind) -> Blueprint:
        """All that is known of a kind where its objects are made."""
        rules, schema = self._rules(kind), self.schema(kind)
        if not kind.is_custom and kind.kept_as is None:
            return Blueprint(kind=kind, rules=rules, schema=schema)
        read = partial(self.in_version, kind)
        return Blueprint(kind=kind, rules=rules, schema=schema, read=read)

    def _rules(self, kind: Kind) -> Rules:
        custom = self._custom_of(kind)
        if custom is None:
            return rules_of(kind)
        if foreign_kind(kind.api_version, kind.kind) is not None:
            return foreign_rules(custom, FOREIGN.get(kind, NO_RULES))
        return custom_rules(custom)

    def filled(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """An object as its definition has it now: defaults may have come after it."""
        custom = self._custom_of(kind)
        obj = self.in_version(kind, obj)
        if custom is None or not custom.has_defaults:
            return obj
        found: JsonObject = with_defaults(copied(obj), custom.schema)
        return found

    def in_version(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """An object in this version of its kind, whichever it was written in."""
        custom = self._custom_of(kind)
        if custom is None or obj.get("apiVersion") == kind.api_version:
            return as_shown(kind, obj)
        if custom.converter is None:
            return renamed(obj, kind.api_version)
        return self._convert(custom.converter, obj, kind.api_version)

    def is_asked_for(self, kind: Kind) -> bool:
        """Does a webhook say how objects are in other versions? It may take its time."""
        custom = self._custom_of(kind)
        return custom is not None and custom.converter is not None

    def selectable(self, kind: Kind) -> Mapping[str, FieldReader]:
        """Fields beyond those of all kinds that selectors may name."""
        return self._rules(kind).selectable

    def printing(self, kind: Kind) -> Printing:
        """How objects of a kind are shown as a Table."""
        custom = self._custom_of(kind)
        return printed(kind) if custom is None else _printing(custom)

    def scaling(self, kind: Kind) -> Scaling:
        """Where objects of a kind keep how many there are to be."""
        custom = self._custom_of(kind)
        if custom is None:
            return USUAL
        return Scaling(
            wanted=custom.replicas, found=custom.status_replicas, selector=custom.selector
        )

    def custom(self) -> dict[Place, CustomKind]:
        """Those that users defined, and built-in ones of other projects, by where they are."""
        _, kept = self._view.kept(CRD)
        versions = tuple(each.version for each in kept)
        if versions != self._defined[0]:
            found = [kind for each in kept for kind in custom_kinds(self._view.read(each))]
            places = {
                (each.kind.group, each.kind.version, each.kind.plural): each for each in found
            }
            # Built-in ones stay as they are when their definition is installed too.
            self._defined = (versions, {**places, **foreign_kinds()})
        return self._defined[1]

    def openapi_index(self) -> JsonObject:
        """Where the OpenAPI documents are; made again when a definition changed."""
        kinds = self.all()
        if self._index is None or self._index[0] != kinds:
            self._index = (kinds, openapi.index(kinds, self.schema))
            self._documents.clear()
        return self._index[1]

    def openapi_document(self, name: str) -> JsonObject:
        """One of them."""
        self.openapi_index()
        if name not in self._documents:
            self._documents[name] = openapi.document(self.all(), name, self.schema)
        return self._documents[name]

    def _custom_of(self, kind: Kind) -> CustomKind | None:
        if not kind.is_custom:
            return None
        return self.custom().get((kind.group, kind.version, kind.plural))


def _printing(custom: CustomKind) -> Printing:
    """The columns that the definition names, after the name; the age where it names none."""
    given = custom.columns or ((AGE, ".metadata.creationTimestamp"),)
    columns = (NAME, *(column for column, _ in given))

    def cells(obj: JsonObject) -> list[Cell]:
        return [name_of(obj), *(_cell(obj, column, path) for column, path in given)]

    return Printing(columns=columns, cells=cells)


def _cell(obj: JsonObject, column: Column, path: str) -> Cell:
    if path == ".metadata.creationTimestamp":
        return age(obj)
    found = read_path(obj, path)
    if found is None:
        return ""
    if column.type == "date":
        return since(str(found))
    return found if isinstance(found, (str, int, bool)) else str(found)
