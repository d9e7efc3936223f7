"""Messages that no client would send, the same ones on every run."""

import copy
import json
import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any, cast

from local.asker import WISH

# What has broken parsers before: numbers without end, bytes that are no text, paths that lead out.
STRANGE: Sequence[Any] = (
    None,
    True,
    -1,
    0,
    1 << 70,
    -(1 << 70),
    "",
    "\0",
    "\ud800",
    "../../../etc/passwd",
    "%s%n" * 20,
    "A" * 5_000,
    [],
    {},
    [0] * 50,
    {"a": {"a": {"a": {}}}},
)
RAW = ("1e400", "-1e400", "NaN", "Infinity", "1.5", "[" * 600 + "]" * 600, "9" * 4_400)

WANT: dict[str, Any] = {
    "kind": "want",
    "wish": WISH,
    "name": "step",
    "command": "a step",
    "limit_ms": None,
}
LAUNCH: dict[str, Any] = {
    "kind": "launch",
    "argvs": [["/bin/true"]],
    "streams": [[0, 0, 0]],
    "env": {"A": "b"},
    "cwd": "/",
    "umask": 0o022,
    "label": False,
    "pty": False,
    "bind": {"kind": "map_cpu", "values": [0], "verbose": False},
}
POLITE: Sequence[dict[str, Any]] = (
    WANT,
    LAUNCH,
    {"kind": "signal", "signal": 10},
    {"kind": "hold"},
    {"kind": "release", "keep": False, "code": 0, "signal": 0},
    WANT | {"beside": [WANT]},
)


VISITS: Sequence[dict[str, Any]] = (
    {"kind": "exec", "container": "main", "argv": ["/bin/true"], "stdin": False},
    {"kind": "exec", "container": "main", "argv": [], "stdin": True},
    {"kind": "attach", "container": "main"},
    {"kind": "connect", "port": 1},
    {"kind": "resize", "rows": 24, "columns": 80},
)
"""What the controller asks of a pod for those who visit it."""


def documents(chance: random.Random, polite: Sequence[dict[str, Any]] = POLITE) -> Iterator[bytes]:
    """JSON that is nearly right, and bytes that are not."""
    while True:
        kind = chance.random()
        if kind < 0.1:
            yield chance.randbytes(chance.randrange(200))
            continue
        message = json.loads(json.dumps(chance.choice(polite)))
        for _ in range(chance.randrange(1, 3)):
            change(message, chance)
        text = json.dumps(message)
        if kind < 0.3:
            text = text.replace('"@"', chance.choice(RAW))
        yield damaged(text.encode(), chance) if kind > 0.8 else text.encode()


def change(document: Any, chance: random.Random) -> None:
    """Replace, remove or add something, somewhere in it."""
    while document:
        is_mapping = isinstance(document, dict)
        place = chance.choice(list(document) if is_mapping else range(len(document)))
        inner = document[place]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.5:
            document = cast("Any", inner)
            continue
        match chance.randrange(4):
            case 0:
                del document[place]
            case 1:
                document[place] = "@"
            case 2 if is_mapping:
                document[chance.choice(("more", "kind", "", "__class__"))] = inner
            case _:
                # A copy: it may be changed in its turn.
                document[place] = copy.deepcopy(chance.choice(STRANGE))
        return


def damaged(text: bytes, chance: random.Random) -> bytes:
    """Some bytes are others, or missing."""
    found = bytearray(text)
    for _ in range(chance.randrange(1, 6)):
        found[chance.randrange(len(found))] = chance.randrange(256)
    return bytes(found[: chance.randrange(1, len(found) + 1)])


def framed(text: bytes, chance: random.Random) -> bytes:
    """Behind its length, and now and then behind another."""
    length = len(text) if chance.random() < 0.9 else chance.randrange(1 << 32)
    return struct.pack("!I", length) + text


def frames(chance: random.Random) -> Iterator[bytes]:
    """A terminal's frames: nearly right, and not at all."""
    while True:
        content = chance.randbytes(chance.randrange(64))
        length = len(content) if chance.random() < 0.8 else chance.randrange(1 << 32)
        kind = chance.choice((b"D", b"R", b"E", b"D", bytes([chance.randrange(256)])))
        yield struct.pack("!cI", kind, length) + content


def words(chance: random.Random, heads: Sequence[bytes], never: Sequence[bytes]) -> Iterator[bytes]:
    """Short messages that begin as real ones do; never what would rightly end the receiver."""
    while True:
        head = chance.choice(heads)
        tail = chance.choice(
            (
                chance.randbytes(chance.randrange(300)),
                b"../../etc",
                b"9" * 250 + b".1",
                b"1.1" + chance.randbytes(3),
                b"\xd9\xa1.1",
                b"1.1/../2.1",
                b"0.0",
            )
        )
        message = head + tail
        if message not in never:
            yield message
