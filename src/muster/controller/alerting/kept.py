"""Silences and administrators' rules among what is kept: objects that no other door reads."""

from collections.abc import Iterable

import msgspec

from muster.controller.world.record import Record
from muster.model.alerting import Silence
from muster.model.kept_object import KeptObject, ObjectKey

GROUP = "alerting.muster"
RULES_KEY = ObjectKey(group=GROUP, resource="rules", namespace="", name="applied")
SILENCES = (GROUP, "silences", "")


class _KeptRules(msgspec.Struct, frozen=True):
    """The file as it was applied."""

    text: str


_RULES = msgspec.json.Decoder(_KeptRules)
_SILENCES = msgspec.json.Decoder(Silence)


def silence_key(silence_id: str) -> ObjectKey:
    return ObjectKey(group=GROUP, resource="silences", namespace="", name=silence_id)


def silence_body(silence: Silence) -> str:
    return msgspec.json.encode(silence).decode()


def silences_of(objects: Iterable[KeptObject]) -> tuple[Silence, ...]:
    """The earliest to end first."""
    found = (_SILENCES.decode(each.body) for each in objects if each.key.shelf == SILENCES)
    return tuple(sorted(found, key=lambda each: (each.ends_at, each.id)))


def silences_in(record: Record) -> tuple[Silence, ...]:
    """All that are kept, active or not."""
    with record.lock:
        kept = [each for key, each in record.objects.items() if key.shelf == SILENCES]
    return silences_of(kept)


def rules_body(text: str) -> str:
    return msgspec.json.encode(_KeptRules(text=text)).decode()


def rules_text(kept: KeptObject | None) -> str:
    """The administrators' file of rules; empty where none was applied."""
    return "" if kept is None else _RULES.decode(kept.body).text
