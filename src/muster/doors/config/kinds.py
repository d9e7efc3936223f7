"""The kinds of word that a configuration file is made of: how each is read, written and named."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muster.doors import units
from muster.doors.config.faults import suggestion
from muster.doors.units import BadTextError
from muster.model.queue import Meter
from muster.model.site import Grant, Role
from muster.model.value import MINUTE, SECOND, Instant, QueuePath, Value
from muster.model.words import thousandths


class ValueType(Value):
    """One kind of word. `read` raises BadTextError; what `write` gives is read as the same value.

    is_name: written in quotes where YAML could take it for something else than text.
    """

    called: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str
    is_name: bool = False


def choice(options: type[StrEnum]) -> ValueType:
    """One of a few words."""
    words = one_of([str(option) for option in options])
    return ValueType(called=words.called, read=lambda text: options(words.read(text)))


def one_of(values: list[str]) -> ValueType:
    """One of these words."""

    def read(text: str) -> str:
        if text in values:
            return text
        raise BadTextError(text, _one_of(values) + suggestion(text, values).partition(" known")[0])

    return ValueType(called=_one_of(values), read=read)


def amount_kind(meter: Meter) -> ValueType:
    """How much of what this meter counts."""
    return ValueType(
        called=AMOUNTS[meter],
        read=lambda text: units.amount(text, meter),
        write=lambda given: units.amount_text(given, meter),
    )


def _one_of(values: list[str]) -> str:
    named = [f"`{value}`" for value in values]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"


def _truth(text: str) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise BadTextError(text, "`true` or `false`")


def _integer(text: str) -> int:
    if _SIGNED.fullmatch(text):
        return int(text)
    raise BadTextError(text, "a whole number such as `100` or `-5`")


def _positive(text: str) -> int:
    number = units.whole(text)
    if number:
        return number
    raise BadTextError(text, "a whole number, 1 or more")


def _span_above_zero(text: str) -> int:
    span = units.duration(text)
    if span:
        return span
    raise BadTextError(text, "a time longer than nothing, such as `12h`")


def _url(text: str) -> str:
    if _URL.fullmatch(text):
        return text
    raise BadTextError(text, "an address such as `http://prometheus:9090`")


def _node_url(text: str) -> str:
    if "{node}" in text and _URL.fullmatch(text.replace("{node}", "n1")):
        return text
    raise BadTextError(text, "an address with `{node}` in it, such as `http://{node}:9400/metrics`")


def _endpoint(text: str) -> str:
    if _URL.fullmatch(text) or _UDP.fullmatch(text):
        return text
    raise BadTextError(text, "an address such as `http://loki:3100` or `udp://127.0.0.1:8125`")


def _selector(text: str) -> str:
    if _SELECTOR.fullmatch(text):
        return text
    raise BadTextError(text, 'a selector of Prometheus such as `{cluster="a"}`')


def _path(text: str) -> str:
    if text.startswith("/") and text.isprintable():
        return text
    raise BadTextError(text, "the whole path of a file, such as `/etc/muster/token`")


def _interval(text: str) -> int:
    span = units.duration(text)
    if 5 * SECOND <= span <= MINUTE:
        return span
    raise BadTextError(text, "a time from `5s` to `60s`")


def _name(text: str) -> str:
    if _NAME.fullmatch(text) and _named(text):
        return text
    raise BadTextError(
        text, "a name: letters, digits and `. _ - + @`, beginning with a letter or digit"
    )


def _user(text: str) -> str:
    if _USER.fullmatch(text) and _named(text):
        return text
    raise BadTextError(text, "a user's name, without spaces, commas, colons and slashes")


def _label(text: str) -> str:
    if text == text.strip() and 0 < len(text) <= 100 and text.isprintable() and _named(text):
        return text
    raise BadTextError(text, "a name in one line")


def _named(text: str) -> bool:
    return text.lower() not in ("none", "null", "~")


def _queue(text: str) -> QueuePath:
    for part in text.split("/"):
        if not _NAME.fullmatch(part):
            raise BadTextError(text, "the path of a queue such as `acme/nlp`")
    return QueuePath(_name(text) if "/" not in text else text)


def _grant(text: str) -> Grant:
    role, colon, queue = text.partition(":")
    if role not in list(Role):
        wanted = f"a role ({_one_of([*Role])}), or one in a queue such as `queue_admin:acme/nlp`"
        raise BadTextError(text, wanted)
    return Grant(role=Role(role), queue=_queue(queue) if colon else None)


def _grant_text(grant: Grant) -> str:
    return f"{grant.role}:{grant.queue}" if grant.queue else str(grant.role)


def _profile(text: str) -> str:
    try:
        part = units.slice_of(f"mig:{text}")
    except BadTextError:
        raise BadTextError(text, "a MIG profile such as `1g.5gb`") from None
    return units.slice_text(part).removeprefix("mig:")


def _plain(text: str) -> str:
    if text and text.isprintable() and len(text) <= 1_000:
        return text
    raise BadTextError(text, "one line of text")


def _instant(text: str) -> Instant:
    """With its zone: the file may be applied elsewhere than it was written, and again later."""
    if not _WITH_ZONE.search(text):
        raise BadTextError(text, "an instant with its zone, such as `2026-12-01T08:00:00Z`")
    return units.instant(text, Instant(0))


def _zone(text: str) -> str:
    try:
        return ZoneInfo(text).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadTextError(text, "a time zone such as `Europe/Berlin`") from None


AMOUNTS = {
    Meter.GPU: "GPUs (`8`, `0.5`) or a percentage (`50%`)",
    Meter.CPU: "cores (`64`, `0.5`) or a percentage (`50%`)",
    Meter.MEMORY: "memory (`512G`) or a percentage (`50%`)",
    Meter.MIG: "a number of instances (`4`) or a percentage (`50%`)",
}

_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")
_UDP = re.compile(r"udp://(?:\[[0-9a-fA-F:]+\]|[^\s/?#@:]+):[0-9]{1,5}")
_SELECTOR = re.compile(
    r'\{\s*\w+\s*(?:=|!=|=~|!~)\s*"(?:[^"\\\n]|\\.)*"'
    r'(?:\s*,\s*\w+\s*(?:=|!=|=~|!~)\s*"(?:[^"\\\n]|\\.)*")*\s*,?\s*\}'
)
_SIGNED = re.compile(r"-?[0-9]{1,9}")
_USER = re.compile(r"[\w][\w.@+$\\-]{0,99}")
_NAME = re.compile(r"\w[\w.@+-]{0,99}")
_WITH_ZONE = re.compile(r"\d[Tt ]\d.*(?:[Zz]|[+-]\d\d:\d\d)$")

NAME = ValueType(called="a name", read=_name, is_name=True)
TEXT = ValueType(called="a text", read=_plain, is_name=True)
USER = ValueType(called="a user", read=_user, is_name=True)
LABEL = ValueType(called="a name", read=_label, is_name=True)
QUEUE_PATH = ValueType(called="a queue's path", read=_queue, is_name=True)
ROLES = ValueType(called="a role", read=_grant, write=_grant_text, is_name=True)
PROFILE = ValueType(called="a MIG profile", read=_profile, is_name=True)
WHOLE = ValueType(called="a whole number", read=units.whole)
POSITIVE = ValueType(called="a whole number, 1 or more", read=_positive)
INTEGER = ValueType(called="a whole number, also negative", read=_integer)
TRUTH = ValueType(called="`true` or `false`", read=_truth, write=lambda given: str(given).lower())
SPAN = ValueType(called="a time", read=units.duration, write=units.duration_text)
SPAN_ABOVE_ZERO = ValueType(called="a time", read=_span_above_zero, write=units.duration_text)
URL = ValueType(called="an address", read=_url, is_name=True)
ENDPOINT = ValueType(called="an address", read=_endpoint, is_name=True)
NODE_URL = ValueType(called="an address with `{node}` in it", read=_node_url, is_name=True)
SELECTOR = ValueType(called="a selector of Prometheus", read=_selector, is_name=True)
FILE_PATH = ValueType(called="the path of a file", read=_path, is_name=True)
INTERVAL = ValueType(called="a time from `5s` to `60s`", read=_interval, write=units.duration_text)
INSTANT = ValueType(called="an instant with zone", read=_instant, write=units.rfc3339)
ZONE = ValueType(called="a time zone", read=_zone)
MONEY = ValueType(called="a price", read=units.micros, write=units.micros_text)
GPUS = ValueType(called="GPUs", read=lambda text: units.milli(text, "GPUs"), write=thousandths)
CPUS = ValueType(called="cores", read=lambda text: units.milli(text, "cores"), write=thousandths)
MEMORY = ValueType(called="memory", read=units.memory_mib, write=units.memory_text)
