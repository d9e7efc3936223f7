"""What is wrong with a configuration of admission webhooks, in Kubernetes' words."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from muster.doors.kubernetes.objects.errors import Cause, invalid, required
from muster.doors.kubernetes.objects.value import JsonObject, items, part

LEAST_S, MOST_S = 1, 30
_FORMAT = "desired format: https://host[/path]"


def webhook_causes(obj: JsonObject, _: JsonObject | None) -> list[Cause]:
    """All that is wrong."""
    return [
        cause
        for number, webhook in enumerate(items(obj, "webhooks"))
        for cause in _causes(webhook, f"webhooks[{number}]")
    ]


def _causes(webhook: JsonObject, at: str) -> Iterator[Cause]:
    if not webhook.get("name"):
        yield required(f"{at}.name")
    timeout_s = webhook.get("timeoutSeconds", LEAST_S)
    if not LEAST_S <= timeout_s <= MOST_S:
        text = f"the timeout value must be between {LEAST_S} and {MOST_S} seconds"
        yield invalid(f"{at}.timeoutSeconds", timeout_s, text)
    config, where = part(webhook, "clientConfig"), f"{at}.clientConfig"
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(where, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_causes(str(url), f"{where}.url")
    else:
        for name in ("name", "namespace"):
            if not part(config, "service").get(name):
                yield required(f"{where}.service.{name}", f"service {name} is required")


def _url_causes(url: str, at: str) -> Iterator[Cause]:
    try:
        parts = urlsplit(url)
        host, scheme, _ = parts.hostname, parts.scheme, parts.port
    except ValueError as error:
        yield invalid(at, url, f"url must be a valid URL: {error}; {_FORMAT}")
        return
    if scheme != "https":
        text = f"'https' is the only allowed URL scheme; {_FORMAT}"
        yield invalid(at, url, text)
    if not host:
        yield invalid(at, url, f"host must be specified; {_FORMAT}")
