"""Asking admission webhooks: programs of others that change or refuse objects before they are."""

import base64
import binascii
import http.client
import json
import socket
import ssl
import time
import uuid
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import urlsplit

from muster.doors.kubernetes.objects.admission_review import (
    Asked,
    BadAnswerError,
    Verdict,
    Webhook,
    patched,
    review_of,
    verdict_of,
    webhooks_for,
)
from muster.doors.kubernetes.objects.conversion import (
    ConversionError,
    conversion_review,
    converted,
)
from muster.doors.kubernetes.objects.errors import Reason, StatusError
from muster.doors.kubernetes.objects.kinds import (
    ENDPOINT_SLICE,
    MUTATING_WEBHOOK,
    NAMESPACE,
    SERVICE,
    VALIDATING_WEBHOOK,
)
from muster.doors.kubernetes.objects.value import JsonObject, Kind, items, labels_of, part
from muster.doors.kubernetes.serve.view import Lookup
from muster.model.value import Value, replace

SERVICE_NAME = "kubernetes.io/service-name"
CONVERSION_S = 30
_MOST_BYTES = 8 * 1_024 * 1_024
_OK = range(200, 300)


class Place(Value, kw_only=True):
    """Where a program listens. name: what its certificate says. url: as messages show it."""

    host: str
    port: int
    name: str
    path: str
    url: str


class Unreachable(Exception):  # noqa: N818 -- it is what happened, in the words for the client
    """Nobody answered, or not in time."""


class Webhooks:
    """Asks the webhooks that are configured here."""

    def __init__(self, view: Lookup) -> None:
        self._view = view

    def changed(self, asked: Asked) -> JsonObject | None:
        """The object as mutating webhooks want it; None if they leave it as it is."""
        now = asked
        for webhook in self._meant(MUTATING_WEBHOOK, asked):
            verdict = self._verdict(webhook, now)
            if verdict is None or not verdict.patch or now.object is None:
                continue
            try:
                now = replace(now, object=patched(now.object, verdict))
            except BadAnswerError as error:
                if webhook.must_answer:
                    raise _failed(webhook, str(error)) from error
        return None if now is asked else now.object

    def demand_allowed(self, asked: Asked) -> None:
        """StatusError if a validating webhook refuses it."""
        for webhook in self._meant(VALIDATING_WEBHOOK, asked):
            self._verdict(webhook, asked)

    def converted(self, hook: JsonObject, obj: JsonObject, api_version: str) -> JsonObject:
        """An object of another version of its kind; StatusError where the webhook makes none."""
        uid = str(uuid.uuid4())
        webhook = Webhook(spec={**hook, "timeoutSeconds": CONVERSION_S})
        review = conversion_review(obj, api_version, uid)
        try:
            body = _posted(self._place(webhook.spec), review, webhook)
            return converted(obj, api_version, body, uid)
        except (Unreachable, ConversionError) as error:
            named = f"{obj.get('apiVersion')}, Kind={obj.get('kind')}"
            text = f"conversion webhook for {named} failed: {error}"
            raise StatusError(Reason.INTERNAL_ERROR, text) from error

    def _meant(self, kind: Kind, asked: Asked) -> Iterator[Webhook]:
        configurations = self._view.objects(kind)
        if not configurations:
            return iter(())
        namespace = self._view.get(NAMESPACE, "", asked.namespace) if asked.namespace else None
        return webhooks_for(configurations, asked, namespace)

    def _verdict(self, webhook: Webhook, asked: Asked) -> Verdict | None:
        """What it says; StatusError if it refuses. None: it did not answer, and need not."""
        uid = str(uuid.uuid4())
        try:
            place = self._place(webhook.spec)
            body = _posted(place, review_of(asked, uid), webhook)
            verdict = verdict_of(webhook.name, body, uid)
        except (Unreachable, BadAnswerError) as error:
            if webhook.must_answer:
                raise _failed(webhook, str(error)) from error
            return None
        if verdict.refusal is not None:
            raise verdict.refusal
        return verdict

    def _place(self, spec: JsonObject) -> Place:
        config = part(spec, "clientConfig")
        timeout = f"timeout={spec.get('timeoutSeconds', 10)}s"
        if config.get("url"):
            parts = urlsplit(str(config["url"]))
            host = parts.hostname or ""
            path = f"{parts.path or '/'}?{timeout}"
            return Place(
                host=host, port=parts.port or 443, name=host, path=path, url=str(config["url"])
            )
        service = part(config, "service")
        space, name = str(service.get("namespace")), str(service.get("name"))
        port = int(service.get("port", 443))
        path = f"/{str(service.get('path') or '').lstrip('/')}?{timeout}"
        url = f"https://{name}.{space}.svc:{port}{path}"
        host, number = self._endpoint(space, name, port)
        return Place(host=host, port=number, name=f"{name}.{space}.svc", path=path, url=url)

    def _endpoint(self, space: str, name: str, port: int) -> tuple[str, int]:
        """An address behind a Service: there is none of the Service itself."""
        service = self._view.get(SERVICE, space, name)
        if service is None:
            raise Unreachable(f'service "{name}" not found')
        named = next(
            (
                str(each.get("name") or "")
                for each in items(service, "spec", "ports")
                if each.get("port") == port
            ),
            None,
        )
        for each in self._view.objects(ENDPOINT_SLICE, space):
            if named is None or labels_of(each).get(SERVICE_NAME) != name:
                continue
            numbers = [
                int(found["port"])
                for found in items(each, "ports")
                if str(found.get("name") or "") == named and found.get("port")
            ]
            for endpoint in items(each, "endpoints"):
                addresses = items(endpoint, "addresses")
                is_ready = part(endpoint, "conditions").get("ready") is not False
                if numbers and addresses and is_ready:
                    return str(addresses[0]), numbers[0]
        raise Unreachable(f'no endpoints available for service "{name}"')


def _posted(place: Place, review: JsonObject, webhook: Webhook) -> bytes:
    """The body of the answer; Unreachable if there is none, or none in time."""
    try:
        context = _trusting(part(webhook.spec, "clientConfig").get("caBundle"))
        connection = _Connection(place, webhook.timeout_s, context)
        try:
            sent = json.dumps(review).encode()
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request("POST", place.path, body=sent, headers=headers)
            answer = connection.getresponse()
            body = answer.read(_MOST_BYTES + 1)
        finally:
            connection.close()
    except TimeoutError as error:
        raise Unreachable(f'Post "{place.url}": context deadline exceeded') from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unreachable(f'Post "{place.url}": {error}') from error
    if len(body) > _MOST_BYTES:
        raise Unreachable(f"the answer has more than {_MOST_BYTES} bytes")
    if answer.status not in _OK:
        raise Unreachable(f"the server answered {answer.status}")
    return body


def _trusting(bundle: object) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if bundle:
        try:
            context = ssl.create_default_context(cadata=base64.b64decode(str(bundle)).decode())
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(f"unable to load root certificates: {error}") from error
    return context


class _Connection(http.client.HTTPSConnection):
    """To an address, with somebody whose certificate has another name."""

    def __init__(self, place: Place, timeout_s: int, context: ssl.SSLContext) -> None:
        super().__init__(place.name, place.port, timeout=timeout_s, context=context)
        self._address = (place.host, place.port)
        self._called = place.name
        self._trust = context
        self._until = time.monotonic() + timeout_s

    def connect(self) -> None:
        plain = socket.create_connection(self._address, self.timeout)
        secure = _Punctual.wrapped(plain, self._trust, self._called, self._until)
        self.sock = secure


class _Punctual(ssl.SSLSocket):
    """Gives up at an instant, however little comes before each time-out of its own."""

    until = 0.0

    @classmethod
    def wrapped(
        cls, plain: socket.socket, context: ssl.SSLContext, name: str, until: float
    ) -> "_Punctual":
        context.sslsocket_class = cls
        made = cast("_Punctual", context.wrap_socket(plain, server_hostname=name))
        made.until = until
        return made

    def recv_into(self, *args: Any, **named: Any) -> int:
        self._wait_no_longer()
        return super().recv_into(*args, **named)

    def send(self, *args: Any, **named: Any) -> int:
        self._wait_no_longer()
        return super().send(*args, **named)

    def _wait_no_longer(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)


def _failed(webhook: Webhook, why: str) -> StatusError:
    text = f'failed calling webhook "{webhook.name}": failed to call webhook: {why}'
    details: JsonObject = {"causes": [{"message": text.removeprefix("Internal error occurred: ")}]}
    return StatusError(Reason.INTERNAL_ERROR, f"Internal error occurred: {text}", details=details)
