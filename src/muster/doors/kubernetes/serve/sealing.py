"""How objects are written down: as JSON, and Secrets so that only who has the key reads them."""

import base64
import json
import secrets
from typing import Any

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.doors.kubernetes.objects.kinds import SECRET
from muster.doors.kubernetes.objects.value import JsonObject, metadata
from muster.model.kept_object import KeptObject, ObjectKey

SEALED = "sealed"
NONCE_BYTES = 12

SEALED_RESOURCES = frozenset({(SECRET.group, SECRET.plural)})


class Sealing:
    """Reads and writes the bodies of objects."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def closed(self, key: ObjectKey, obj: JsonObject) -> str:
        """The body of an object. Its version is no part of it: it comes with the write."""
        kept = {name: each for name, each in metadata(obj).items() if name != "resourceVersion"}
        text = json.dumps({**obj, "metadata": kept}, separators=(",", ":"), ensure_ascii=True)
        if (key.group, key.resource) not in SEALED_RESOURCES:
            return text
        nonce = secrets.token_bytes(NONCE_BYTES)
        secret = self._cipher.encrypt(nonce, text.encode(), _place(key))
        return json.dumps({SEALED: base64.b64encode(nonce + secret).decode()})

    def opened(self, kept: KeptObject) -> JsonObject:
        """The object with its version."""
        found: JsonObject = _parsed(kept.body)
        if SEALED in found and (kept.key.group, kept.key.resource) in SEALED_RESOURCES:
            found = _parsed(self._decrypted(kept.key, found[SEALED]))
        found["metadata"] = _versioned(metadata(found), str(kept.version))
        return found

    def _decrypted(self, key: ObjectKey, text: Any) -> bytes:
        raw = base64.b64decode(str(text))
        try:
            return self._cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _place(key))
        except InvalidTag:
            raise StatusError(
                Reason.INTERNAL_ERROR,
                f"secret {key.namespace}/{key.name} was written with another key than this "
                "process has; give it the key of the others (see docs/howto/kubernetes.md)",
            ) from None


def _parsed(body: str | bytes) -> JsonObject:
    """Lists read thousands of them; what this reader does not take, Python's own does."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        found: JsonObject = json.loads(body)
        return found


def _versioned(given: JsonObject, version: str) -> JsonObject:
    """With its version, where Kubernetes writes it: people read it, too."""
    at = list(given).index("uid") + 1 if "uid" in given else len(given)
    pairs = list(given.items())
    return dict([*pairs[:at], ("resourceVersion", version), *pairs[at:]])


def _place(key: ObjectKey) -> bytes:
    """A sealed body is good for its own object only."""
    return "/".join((key.group, key.resource, key.namespace, key.name)).encode()
