"""Answers that change nothing: one object, or a list of them, in the form that is wanted."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, Protocol

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
from muster.doors.kubernetes.objects.tables import column_json
from muster.doors.kubernetes.objects.value import JsonObject, Kind, labels_of, metadata
from muster.doors.kubernetes.serve.call import Listing, Target
from muster.doors.kubernetes.serve.form import Form, Shape
from muster.doors.kubernetes.serve.rows import META, Rows, partial, table_row
from muster.doors.kubernetes.serve.view import ObjectView
from muster.model.kept_object import KeptObject
from muster.model.value import MINUTE, Instant, Value, replace

GOES_ON_FOR = 5 * MINUTE
"""So long a list that is read in pages goes on as one: what changes meanwhile shows in it."""

LATEST = -1
"""The version in the token of a list that goes on with whatever there is."""


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


def selection_of(selectable: Mapping[str, FieldReader], listing: Listing) -> Selection:
    """The selectors of a request; StatusError says what is wrong with them.

    selectable: fields of the kind that they may name, beyond those of all kinds.
    """
    readers = {**METADATA_FIELDS, **selectable}
    fields = parse_fields(listing.fields)
    for each in fields:
        if each.field not in readers:
            raise bad_request(_unknown_field(each.field, has_own=bool(selectable)))
    return Selection(labels=parse_labels(listing.labels), fields=fields, readers=readers)


def _unknown_field(field: str, *, has_own: bool) -> str:
    """Kinds with fields of their own are called otherwise than those that have none."""
    if has_own:
        return f"field label not supported: {field}"
    usual = '"metadata.name", "metadata.namespace"'
    return f'"{field}" is not a known field selector: only {usual}'


class KnownKinds(Protocol):
    """What is known of kinds where their objects are shown."""

    def printing(self, kind: Kind) -> Printing:
        """How objects of a kind are shown as a Table."""
        ...

    def filled(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """An object in this version of its kind, with defaults that came after it."""
        ...

    def selectable(self, kind: Kind) -> Mapping[str, FieldReader]:
        """Fields beyond those of all kinds that selectors may name."""
        ...

    def is_asked_for(self, kind: Kind) -> bool:
        """Does a webhook say how objects are in other versions?"""
        ...


class Reader:
    """Reads from the view."""

    def __init__(self, view: ObjectView, clock: Callable[[], Instant], kinds: KnownKinds) -> None:
        self._view = view
        self._clock = clock
        self._kinds = kinds
        self._rows = Rows(view)

    def get(self, target: Target) -> JsonObject:
        """The object that the path names."""
        found = self._view.get(target.kind, target.namespace, target.name)
        if found is None:
            raise not_found(target.kind, target.name)
        return self._kinds.filled(target.kind, found)

    def page(self, target: Target, listing: Listing) -> "Page":
        """The objects that the path and the selectors name."""
        selection = self.selection(target.kind, listing)
        if listing.version and int(listing.version):
            if listing.match == "Exact":
                self._view.demand_recent(int(listing.version))
            self._view.wait_for(int(listing.version))
        version, kept = self._view.kept(target.kind, target.namespace)
        token = Token(version=version, began_at=self._clock())
        if listing.token:
            given = self._given(listing)
            token = token if given.version == LATEST else given
            kept = [each for each in kept if (each.key.namespace, each.key.name) > given.start]

        def is_meant(each: KeptObject) -> bool:
            return selection.holds(self.filled(each, target.kind))

        return self._page(kept, None if selection.is_everything else is_meant, listing, token)

    def selection(self, kind: Kind, listing: Listing) -> Selection:
        """Which objects of a kind a request means."""
        return selection_of(self._kinds.selectable(kind), listing)

    def takes_time(self, kind: Kind) -> bool:
        """Does a webhook say how objects of this kind are?"""
        return self._kinds.is_asked_for(kind)

    def seen(self, obj: JsonObject, kind: Kind) -> JsonObject:
        """The same of one that was read."""
        return self._kinds.filled(kind, obj)

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
                return self._table_of(page, kind, form, include)
            case Shape.METADATA:
                return {
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": f"{META}/{form.version}",
                    "metadata": page.metadata,
                    "items": [partial(each, form) for each in self.objects(page, kind)],
                }
            case Shape.OBJECT | Shape.DISCOVERY:
                return {
                    "kind": f"{kind.kind}List",
                    "apiVersion": kind.api_version,
                    "metadata": page.metadata,
                    "items": [_item(each, kind) for each in self.objects(page, kind)],
                }

    def table(
        self, objects: Iterable[JsonObject], kind: Kind, form: Form, include: str
    ) -> JsonObject:
        """Objects as rows. include: what each row carries of its object."""
        listed = list(objects)
        printing = self._kinds.printing(kind)
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

    def objects(self, page: "Page", kind: Kind) -> list[JsonObject]:
        """What the list is of."""
        return [self.filled(each, kind) for each in page.kept]

    def filled(self, kept: KeptObject, kind: Kind) -> JsonObject:
        """An object as it is shown."""
        return self.seen(self._view.read(kept), kind)

    def _table_of(self, page: "Page", kind: Kind, form: Form, include: str) -> JsonObject:
        if include in {"Object", "None"}:
            table = self.table(self.objects(page, kind), kind, form, include)
        else:
            printing, now = self._kinds.printing(kind), self._clock()
            rows = self._rows.of(page.kept, kind, printing, form, now)
            table = {**self.table((), kind, form, include), "rows": rows}
        return {**table, "metadata": page.metadata}

    def _given(self, listing: Listing) -> "Token":
        """StatusError: it is too old, with another one by which the list goes on from there."""
        given = parse_token(listing.token)
        if given.version == LATEST:
            return given
        try:
            self._view.demand_recent(given.version)
        except StatusError:
            raise _expired(given) from None
        if self._clock() - given.began_at > GOES_ON_FOR:
            raise _expired(given)
        return given

    def _page(
        self,
        kept: list[KeptObject],
        is_meant: Callable[[KeptObject], bool] | None,
        listing: Listing,
        token: "Token",
    ) -> "Page":
        """is_meant: None where all of them are. token: of which version the list is."""
        found: list[KeptObject] = []
        limit = listing.limit or len(kept)
        for place, each in enumerate(kept):
            if is_meant is not None and not is_meant(each):
                continue
            if len(found) == limit:
                last = found[-1].key
                return Page(
                    version=token.version,
                    kept=tuple(found),
                    token=written_token(replace(token, start=(last.namespace, last.name))),
                    remaining=len(kept) - place if is_meant is None else None,
                )
            found.append(each)
        return Page(version=token.version, kept=tuple(found))


class Page(Value):
    """Some objects of a list. token: with which the next ones are asked for."""

    version: int
    kept: tuple[KeptObject, ...]
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


class Token(Value):
    """Where the next page of a list begins. began_at: when its first one was asked for."""

    version: int
    began_at: Instant
    start: tuple[str, str] = ("", "")


def written_token(token: Token) -> str:
    """As clients carry it."""
    namespace, name = token.start
    start = f"{namespace}/{name}\0" if namespace else f"{name}\0"
    fields = {"v": "meta.k8s.io/v1", "rv": token.version, "at": token.began_at, "start": start}
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def parse_token(token: str) -> Token:
    """What a client carried; StatusError for what is no such token."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except ValueError:
        # Also for what is no ASCII.
        _bad_token(f"illegal base64 data at input byte {len(token) - len(token) % 4}")
    try:
        found: Any = json.loads(raw)
        namespace, _, name = str(found["start"]).rstrip("\0").rpartition("/")
        version, began_at = int(found["rv"]), Instant(int(found["at"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        _bad_token(f"invalid character '{_called(raw[:1])}' looking for beginning of value")
    return Token(version=version, began_at=began_at, start=(namespace, name))


def _expired(token: Token) -> StatusError:
    text = (
        "The provided continue parameter is too old to display a consistent list result. "
        "You can start a new list without the continue parameter, or use the continue token in "
        "this response to retrieve the remainder of the results. Continuing with the provided "
        "token results in an inconsistent list - objects that were created, modified, or deleted "
        "between the time the first chunk was returned and now may show up in the list."
    )
    later = written_token(replace(token, version=LATEST))
    return StatusError(Reason.EXPIRED, text, token=later)


def _bad_token(why: str) -> NoReturn:
    raise bad_request(f"invalid continue token: continue key is not valid: {why}")


def _called(byte: bytes) -> str:
    """A byte as Go names a character that it did not expect."""
    found = byte.decode("latin-1")
    return found if found.isprintable() else "".join(f"\\u{ord(each):04x}" for each in found)
