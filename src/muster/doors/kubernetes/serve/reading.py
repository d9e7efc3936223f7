"""Answers that change nothing: one object, or a list of them, in the form that is wanted."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from muster.doors.kubernetes.catalogue import rules_of
from muster.doors.kubernetes.objects.errors import Reason, StatusError, bad_request, not_found
from muster.doors.kubernetes.objects.hidden import shown
from muster.doors.kubernetes.objects.rules import Printing
from muster.doors.kubernetes.objects.selectors import (
    METADATA_FIELDS,
    FieldReader,
    FieldSelector,
    LabelSelector,
    fields_select,
    parse_fields,
    parse_labels,
    selects,
)
from muster.doors.kubernetes.objects.tables import column_json, table_row
from muster.doors.kubernetes.objects.value import JsonObject, Kind, labels_of, metadata
from muster.doors.kubernetes.serve.call import Listing, Target
from muster.doors.kubernetes.serve.form import Form, Shape
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.kept_object import KeptObject
from muster.model.value import Instant, Value

META = "meta.k8s.io"


class Selection(Value):
    """Which objects of a kind are meant."""

    labels: LabelSelector
    fields: FieldSelector
    readers: Mapping[str, FieldReader]

    @property
    def is_everything(self) -> bool:
        return not (self.labels or self.fields)

    def holds(self, obj: JsonObject) -> bool:
        """Is this one of them?"""
        return selects(self.labels, labels_of(obj)) and fields_select(
            self.fields, obj, self.readers
        )


def selection_of(kind: Kind, listing: Listing) -> Selection:
    """The selectors of a request; StatusError says what is wrong with them."""
    readers = {**METADATA_FIELDS, **rules_of(kind).selectable}
    fields = parse_fields(listing.fields)
    for each in fields:
        if each.field not in readers:
            raise bad_request(f"field label not supported: {each.field}")
    return Selection(labels=parse_labels(listing.labels), fields=fields, readers=readers)


class Reader:
    """Reads from the view."""

    def __init__(
        self,
        view: ObjectView,
        clock: Callable[[], Instant],
        printing: Callable[[Kind], Printing],
    ) -> None:
        self._view = view
        self._clock = clock
        self._printing = printing

    def get(self, target: Target) -> JsonObject:
        """The object that the path names."""
        found = self._view.get(target.kind, target.namespace, target.name)
        if found is None:
            raise not_found(target.kind, target.name)
        return found

    def page(self, target: Target, listing: Listing) -> "Page":
        """The objects that the path and the selectors name."""
        selection = selection_of(target.kind, listing)
        if listing.version and int(listing.version):
            if listing.match == "Exact":
                self._view.demand_recent(int(listing.version))
            self._view.wait_for(int(listing.version))
        version, kept = self._view.kept(target.kind, target.namespace)
        if listing.token:
            version, start = self._token(listing)
            kept = [each for each in kept if (each.key.namespace, each.key.name) > start]
        return self._page(kept, selection, listing, version)

    def shown(self, obj: JsonObject, kind: Kind, form: Form, include: str) -> JsonObject:
        """One object in the form that is wanted."""
        match form.shape:
            case Shape.TABLE:
                return self.table([obj], kind, form, include)
            case Shape.METADATA:
                return partial(obj, form)
            case Shape.OBJECT | Shape.DISCOVERY:
                return shown(obj)

    def shown_list(self, page: "Page", kind: Kind, form: Form, include: str) -> JsonObject:
        """A list in the form that is wanted."""
        match form.shape:
            case Shape.TABLE:
                table = self.table(page.objects, kind, form, include)
                return {**table, "metadata": page.metadata}
            case Shape.METADATA:
                return {
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": f"{META}/{form.version}",
                    "metadata": page.metadata,
                    "items": [partial(each, form) for each in page.objects],
                }
            case Shape.OBJECT | Shape.DISCOVERY:
                return {
                    "kind": f"{kind.kind}List",
                    "apiVersion": kind.api_version,
                    "metadata": page.metadata,
                    "items": [_item(each, kind) for each in page.objects],
                }

    def table(
        self, objects: Iterable[JsonObject], kind: Kind, form: Form, include: str
    ) -> JsonObject:
        """Objects as rows. include: what each row carries of its object."""
        listed = list(objects)
        printing = self._printing(kind)
        now = self._clock()
        rows = [table_row(each, printing, now, carried(each, form, include)) for each in listed]
        version = metadata(listed[0]).get("resourceVersion") if len(listed) == 1 else None
        return {
            "kind": "Table",
            "apiVersion": f"{META}/{form.version}",
            "metadata": {} if version is None else {"resourceVersion": version},
            "columnDefinitions": [column_json(each) for each in printing.columns],
            "rows": rows,
        }

    def _token(self, listing: Listing) -> tuple[int, tuple[str, str]]:
        version, start = parse_token(listing.token)
        try:
            self._view.demand_recent(version)
        except StatusError:
            text = (
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
            raise StatusError(Reason.EXPIRED, text) from None
        return version, start

    def _page(
        self, kept: list[KeptObject], selection: Selection, listing: Listing, version: int
    ) -> "Page":
        found: list[JsonObject] = []
        limit = listing.limit or len(kept)
        for place, each in enumerate(kept):
            obj = self._view.read(each)
            if not selection.holds(obj):
                continue
            if len(found) == limit:
                last = metadata(found[-1])
                return Page(
                    version=version,
                    objects=tuple(found),
                    token=written_token(version, str(last.get("namespace", "")), last["name"]),
                    remaining=len(kept) - place if selection.is_everything else None,
                )
            found.append(obj)
        return Page(version=version, objects=tuple(found))


class Page(Value):
    """Some objects of a list. token: with which the next ones are asked for."""

    version: int
    objects: tuple[JsonObject, ...]
    token: str = ""
    remaining: int | None = None

    @property
    def metadata(self) -> JsonObject:
        """As the list carries it."""
        found: JsonObject = {"resourceVersion": str(self.version)}
        if self.token:
            found["continue"] = self.token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found


def partial(obj: JsonObject, form: Form) -> JsonObject:
    """The object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{META}/{form.version}",
        "metadata": metadata(shown(obj)),
    }


def carried(obj: JsonObject, form: Form, include: str) -> JsonObject | None:
    """What a row carries of its object: its metadata, all of it, or nothing."""
    match include:
        case "Object":
            return shown(obj)
        case "None":
            return None
        case _:
            return partial(obj, form)


def _item(obj: JsonObject, kind: Kind) -> JsonObject:
    """In lists of Kubernetes' own kinds the list says what its items are."""
    if kind.is_custom:
        return obj
    return {name: each for name, each in shown(obj).items() if name not in {"kind", "apiVersion"}}


def written_token(version: int, namespace: str, name: str) -> str:
    """Where the next page begins."""
    start = f"{namespace}/{name}\0" if namespace else f"{name}\0"
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_token(token: str) -> tuple[int, tuple[str, str]]:
    """Version and the last place of the page before; StatusError for what is no such token."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        found: Any = json.loads(raw)
        namespace, _, name = str(found["start"]).rstrip("\0").rpartition("/")
        return int(found["rv"]), (namespace, name)
    except (binascii.Error, ValueError, KeyError, TypeError):
        text = f"illegal base64 data at input byte {len(token) - len(token) % 4}"
        raise bad_request(f"invalid continue token: continue key is not valid: {text}") from None
