"""Where the server is: a unix socket on this machine, or a host and port."""

import os
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from muster.client.errors import ClientError
from muster.model.value import Value

SOCKET_NAME = "muster.sock"
SHARED_HOME = Path("/var/lib/muster")


class Address(Value):
    """One of two: a unix socket, or a TCP port, where ca is a file of certificates to trust.

    secret: a bearer token; a unix socket needs none, because it knows who connects.
    """

    socket: str | None = None
    host: str = "localhost"
    port: int = 0
    secure: bool = False
    ca: str | None = None
    secret: str | None = None

    @classmethod
    def of(cls, url: str, *, token: str | None = None, ca: str | None = None) -> Self:
        """`https://host:port`, `http://localhost:port`, `unix:/path/to/muster.sock`."""
        parts = urlsplit(url)
        if parts.scheme == "unix" and parts.path:
            return cls(socket=parts.path, secret=token)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            text = f"`{url}` is no address; write `https://host:port` or `unix:/path/muster.sock`"
            raise ClientError(text)
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        return cls(host=parts.hostname, port=port, secure=secure, ca=ca, secret=token)

    @classmethod
    def found(cls) -> Self:
        """As MUSTER_URL, MUSTER_TOKEN and MUSTER_CA say; else the socket on this machine."""
        token = os.environ.get("MUSTER_TOKEN")
        if url := os.environ.get("MUSTER_URL"):
            return cls.of(url, token=token, ca=os.environ.get("MUSTER_CA"))
        return cls(socket=str(home() / SOCKET_NAME), secret=token)

    @property
    def text(self) -> str:
        """The address as `of` reads it."""
        if self.socket is not None:
            return f"unix:{self.socket}"
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}"


def home() -> Path:
    """The state folder of this machine's Muster, as this user finds it.

    A user has a Muster of their own, or else uses the one that root runs for all users.
    """
    own = own_home()
    if os.environ.get("MUSTER_HOME") or (own / SOCKET_NAME).exists():
        return own
    return SHARED_HOME if (SHARED_HOME / SOCKET_NAME).exists() else own


def own_home() -> Path:
    """The state folder of a Muster that this user starts."""
    if given := os.environ.get("MUSTER_HOME"):
        return Path(given)
    if os.getuid() == 0:
        return SHARED_HOME
    return Path.home() / ".local" / "state" / "muster"
