"""The server: on a unix socket, and on a TCP port where that is wanted."""

import asyncio
import ipaddress
import os
import socket
import threading
from pathlib import Path
from typing import Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from muster.doors.rest.connections import Connections
from muster.doors.rest.peers import CONNECTIONS, UPGRADES, PeerHttp, PeerWebSocket
from muster.model.errors import MusterError
from muster.model.value import Value

GRACE_S = 3
"""How long answers that are under way may take when the server ends."""

KEEP_ALIVE_S = 75
PONG_S = 120
"""So long a WebSocket may not answer; one that waits for a slow reader hears nothing meanwhile."""

MOST_MESSAGE = 1 << 20
"""In bytes: one message of a WebSocket, in however many fragments."""

START_PATIENCE_S = 30.0
BACKLOG = 4_096


class CannotServeError(MusterError):
    """The administrator: another address, or another certificate."""


class Tcp(Value):
    """A port for other machines. certificate, key: files in PEM."""

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None


class Application(Protocol):
    """What is served, and how it ends."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def end_streams(self) -> None:
        """Let everybody go who listens; called on the loop."""
        ...

    def close(self) -> None:
        """Let go of everything; called when no client is served any more."""
        ...


class Beside(Value):
    """Another application on a port of its own, which is open already.

    upgrades: what else than WebSocket it speaks, in small letters.
    """

    app: Application
    tcp: Tcp
    listening: socket.socket
    upgrades: frozenset[bytes] = frozenset()


class Serving:
    """A server that runs in a thread of its own until it is closed."""

    def __init__(
        self, apps: "tuple[Application, ...]", servers: "list[_Server]", path: Path
    ) -> None:
        self._apps = apps
        self._servers = servers
        self._path = path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="rest", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Returns when it answers; raises what kept it from that."""
        self._thread.start()
        self._ready.wait(START_PATIENCE_S)
        if self._failure is not None:
            raise CannotServeError(f"The server did not start ({self._failure}).")

    def close(self) -> None:
        """Stop taking requests, finish those under way, and let endless answers end."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Does it still answer?"""
        return self._thread.is_alive()

    @property
    def port(self) -> int | None:
        """Where it answers over TCP, also when any free port was asked for."""
        return self._servers[1].port if len(self._servers) > 1 else None

    def _end(self) -> None:
        self._path.unlink(missing_ok=True)
        for app in self._apps:
            app.end_streams()
        for server in self._servers:
            server.should_exit = True

    def _run(self) -> None:
        factory = self._servers[0].config.get_loop_factory() or asyncio.new_event_loop
        try:
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 -- reported to the thread that started it
            self._failure = error
        finally:
            for app in self._apps:
                app.close()
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(each.serve([each.socket])) for each in self._servers]
        while not all(server.started for server in self._servers):
            await asyncio.sleep(0.005)
            if any(task.done() for task in tasks):
                break
        self._ready.set()
        await asyncio.gather(*tasks)


def serve(
    app: Application, *, path: Path, tcp: Tcp | None = None, beside: tuple[Beside, ...] = ()
) -> Serving:
    """Answer on the unix socket, and on ports; the result is closed to end it."""
    connections = Connections()
    servers = [_Server(_config(app), unix_socket(path), connections)]
    if tcp is not None:
        try:
            listening = tcp_socket(tcp)
        except MusterError:
            servers[0].socket.close()
            raise
        servers.append(_Server(_config(app, tcp), listening, connections))
    servers += [
        _Server(_config(each.app, each.tcp), each.listening, connections, each.upgrades)
        for each in beside
    ]
    serving = Serving((app, *(each.app for each in beside)), servers, path)
    serving.start()
    return serving


def unix_socket(path: Path) -> socket.socket:
    """Bound, for everybody on this machine when root serves, else for the user alone."""
    _clear(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
        # No client can connect before it listens, so that none does with the wrong mode.
        path.chmod(0o666 if os.getuid() == 0 else 0o600)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise CannotServeError(f"Cannot listen on {path}: {error}.") from error
    return made


def tcp_socket(tcp: Tcp) -> socket.socket:
    """Bound; without TLS only where no other machine can listen."""
    if not (tcp.certificate and tcp.key) and not _is_loopback(tcp.host):
        raise CannotServeError(
            f"{tcp.host} can be reached from elsewhere, where tokens must not go unencrypted. "
            "Give a certificate and its key, or listen on localhost."
        )
    try:
        family, kind, number, _, where = socket.getaddrinfo(
            tcp.host, tcp.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, number)
    except OSError as error:
        raise CannotServeError(f"Cannot listen on {tcp.host}: {error}.") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise CannotServeError(f"Cannot listen on {tcp.host}:{tcp.port}: {error}.") from error
    return made


class _Server(uvicorn.Server):
    """uvicorn on one socket that is already open, unix or TCP."""

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        connections: Connections,
        upgrades: frozenset[bytes] = frozenset(),
    ) -> None:
        super().__init__(config)
        self._state = {CONNECTIONS: connections, UPGRADES: upgrades}
        self.socket = listening
        self.port = 0 if listening.family == socket.AF_UNIX else int(listening.getsockname()[1])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; uvicorn itself would take a unix socket for a TCP one."""
        await self.lifespan.startup()
        loop, config = asyncio.get_running_loop(), self.config
        listening = sockets[0] if sockets else self.socket

        def protocol() -> asyncio.Protocol:
            return PeerHttp(config=config, server_state=self.server_state, app_state=self._state)

        if listening.family == socket.AF_UNIX:
            server = await loop.create_unix_server(protocol, sock=listening)
        else:
            server = await loop.create_server(protocol, sock=listening, ssl=config.ssl)
        self.servers = [server]
        self.started = True


def _config(app: Application, tcp: Tcp | None = None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=PeerHttp,
        ws=PeerWebSocket,
        ws_per_message_deflate=False,
        ws_max_size=MOST_MESSAGE,
        ws_ping_timeout=PONG_S,
        lifespan="off",
        log_config=None,
        # What strangers send is not worth a line: a flood of it would fill the log.
        log_level="error",
        access_log=False,
        # A caller is known by the kernel or by a token, never by what a header says.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=tcp.certificate if tcp else None,
        ssl_keyfile=tcp.key if tcp else None,
    )
    try:
        config.load()
    except OSError as error:
        raise CannotServeError(f"The certificate cannot be used: {error}.") from error
    return config


def _clear(path: Path) -> None:
    """Take away the socket of a server that is gone; never that of one that answers."""
    if not path.is_socket():
        return
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.connect(str(path))
    except ConnectionRefusedError:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CannotServeError(f"Cannot use {path}: {error}.") from error
    else:
        raise CannotServeError(f"Muster already answers at {path}; end it with: muster down")
    finally:
        probe.close()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
