"""What is wrong with probes and with what is run when a container starts or stops."""

from collections.abc import Iterator

from muster.doors.kubernetes.objects.errors import (
    Cause,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.value import JsonObject, items, part
from muster.doors.kubernetes.pods.checks import names

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SECONDS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_MOST_PORT = 65_535
_PORT = "must be between 1 and 65535, inclusive"
_NOT_BELOW_ZERO = "must be greater than or equal to 0"


def container_probe_causes(container: JsonObject, path: str, *, init: bool) -> Iterator[Cause]:
    """Of one container. init: it ends before others begin, and so is not looked at."""
    if init:
        for name in ("lifecycle", *PROBES):
            if name in container:
                yield forbidden_field(
                    f"{path}.{name}",
                    "may not be set for init containers without restartPolicy=Always",
                )
        return
    for name in ("postStart", "preStop"):
        action = part(container, "lifecycle", name)
        if action:
            yield from handler_causes(action, f"{path}.lifecycle.{name}")
    for name in PROBES:
        if name in container:
            yield from _probe_causes(part(container, name), f"{path}.{name}", name)


def _probe_causes(probe: JsonObject, path: str, name: str) -> Iterator[Cause]:
    yield from handler_causes(probe, path)
    for field in _SECONDS:
        number = probe.get(field, 0)
        if number < 0:
            yield invalid(f"{path}.{field}", number, _NOT_BELOW_ZERO)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and name == "readinessProbe":
        yield invalid(
            f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes"
        )
    elif grace is not None and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def handler_causes(action: JsonObject, path: str) -> Iterator[Cause]:
    """Exactly one way, and that one right."""
    found = [name for name in _HANDLERS if name in action]
    for extra in found[1:]:
        yield forbidden_field(f"{path}.{extra}", "may not specify more than 1 handler type")
    if not found:
        yield required(path, "must specify a handler type")
        return
    first = part(action, found[0])
    if found[0] == "exec" and not items(first, "command"):
        yield required(f"{path}.exec.command")
    if found[0] in ("httpGet", "tcpSocket", "grpc"):
        yield from _port_causes(first, f"{path}.{found[0]}.port")
    if found[0] == "httpGet":
        yield from _http_causes(first, f"{path}.httpGet")


def _http_causes(action: JsonObject, path: str) -> Iterator[Cause]:
    if not action.get("path"):
        yield required(f"{path}.path")
    scheme = action.get("scheme", "HTTP")
    if scheme not in ("HTTP", "HTTPS"):
        yield not_supported(f"{path}.scheme", scheme, ("HTTP", "HTTPS"))


def _port_causes(action: JsonObject, field: str) -> Iterator[Cause]:
    port = action.get("port", 0)
    if isinstance(port, str):
        yield from (invalid(field, port, problem) for problem in names.port_name(port))
    elif not 1 <= port <= _MOST_PORT:
        yield invalid(field, port, _PORT)
