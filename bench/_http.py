"""How a benchmark asks an API server: over TLS, with a token, on connections that stay open."""

import http.client
import json
import ssl
from typing import Any

from muster.model.value import Value


class Server(Value):
    """Where it listens, and what opens it."""

    host: str
    port: int
    token: str


class Connection:
    """One connection of one client."""

    def __init__(self, server: Server) -> None:
        self._open = http.client.HTTPSConnection(
            server.host, server.port, context=unchecked(), timeout=300
        )
        self._headers = {
            "Authorization": f"Bearer {server.token}",
            "Content-Type": "application/json",
        }

    def ask(self, method: str, path: str, body: Any = None, accept: str = "*/*") -> bytes:
        """What is answered; RuntimeError if it is refused."""
        sent = None if body is None else json.dumps(body)
        self._open.request(method, path, sent, {**self._headers, "Accept": accept})
        answer = self._open.getresponse()
        said = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {answer.status} {said[:500]!r}")
        return said

    def close(self) -> None:
        self._open.close()


def unchecked() -> ssl.SSLContext:
    """Whose server it is does not matter: it is ours, on loopback."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def is_ready(server: Server) -> bool:
    """Does it answer, and may we do everything?"""
    connection = Connection(server)
    try:
        connection.ask("GET", "/api/v1/namespaces/default")
    except (OSError, RuntimeError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
