"""Questions to containers that are asked from outside: is there a server, what does it answer?

Each is asked by a process of its own, so that the supervisor never waits.
"""

import contextlib
import http.client
import os
import signal
import socket
import ssl
from collections.abc import Callable

from muster.backends.local.pods.grpc_health import NoHealthError, demand_serving
from muster.model.pod import GrpcHealth, HttpGet, TcpConnect

LONGEST_TEXT = 1_024
_GOOD = range(200, 400)
HERE = "127.0.0.1"


def asked(action: HttpGet | TcpConnect | GrpcHealth, timeout_s: int, tells: int) -> int:
    """The number of the process that asks; it ends with 0 for yes, and writes why not."""
    match action:
        case HttpGet():
            return _apart(lambda: _http(action, timeout_s), tells)
        case TcpConnect():
            return _apart(lambda: _tcp(action, timeout_s), tells)
        case GrpcHealth():
            return _apart(lambda: _grpc(action, timeout_s), tells)


def slept(seconds: int) -> int:
    """The number of a process that waits."""
    reads, tells = os.pipe()
    os.close(reads)
    try:
        return _apart(lambda: _wait(seconds), tells)
    finally:
        os.close(tells)


def _wait(seconds: int) -> None:
    signal.sigtimedwait([], seconds)


def _apart(question: Callable[[], str | None], tells: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        answer = question()
        if answer is None:
            code = 0
        else:
            os.write(tells, answer.encode()[:LONGEST_TEXT])
    except Exception as error:  # noqa: BLE001 -- whatever went wrong is the answer
        with contextlib.suppress(OSError):
            os.write(tells, str(error).encode()[:LONGEST_TEXT])
    finally:
        os._exit(code)


def _tcp(action: TcpConnect, timeout_s: int) -> str | None:
    try:
        socket.create_connection((action.host or HERE, action.port), timeout_s).close()
    except OSError as error:
        where = f"{action.host or HERE}:{action.port}"
        return f"dial tcp {where}: {_words(error)}"
    return None


def _http(action: HttpGet, timeout_s: int) -> str | None:
    host = action.host or HERE
    # As kubelets do: a probe asks whether it answers, not who it is.
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    connection = (
        http.client.HTTPSConnection(
            host,
            action.port,
            timeout=timeout_s,
            context=anybody,
        )
        if action.secure
        else http.client.HTTPConnection(host, action.port, timeout=timeout_s)
    )
    scheme = "https" if action.secure else "http"
    try:
        connection.request("GET", action.path, headers=dict(action.headers))
        status = connection.getresponse().status
    except OSError as error:
        where = f"{scheme}://{host}:{action.port}{action.path}"
        return f'Get "{where}": dial tcp {host}:{action.port}: {_words(error)}'
    if status in _GOOD:
        return None
    return f"HTTP probe failed with statuscode: {status}"


def _grpc(action: GrpcHealth, timeout_s: int) -> str | None:
    try:
        demand_serving(HERE, action.port, action.service, timeout_s)
    except NoHealthError as error:
        return str(error)
    except OSError:
        where = f"{HERE}:{action.port}"
        return f'timeout: failed to connect service "{where}" within {timeout_s}s'
    return None


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "i/o timeout"
    return f"connect: {(error.strerror or str(error)).lower()}"
