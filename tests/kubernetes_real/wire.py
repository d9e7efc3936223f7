"""What lies between Muster and an API server: it can be cut, slow, or lose what is answered."""

import contextlib
import socket
import threading
import time

_PART = 65_536


class Wire:
    """A port of this machine that stands for another one. Any thread may change it.

    delay_s: so long each portion waits, either way. loses: answers do not arrive, though what was
    asked for does.
    """

    def __init__(self, to_port: int) -> None:
        self.delay_s, self.loses = 0.0, False
        self._to_port = to_port
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """All connections that there are; new ones may be made."""
        with self._lock:
            ends, self._ends = self._ends, set()
        for each in ends:
            _end(each)

    def close(self) -> None:
        _end(self._listener)
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._to_port), timeout=10)
        except OSError:
            _end(near)
            return
        far.settimeout(None)
        with self._lock:
            self._ends |= {near, far}
        threading.Thread(target=self._carry, args=(near, far), daemon=True).start()
        self._carry(far, near, is_answer=True)

    def _carry(
        self, source: socket.socket, sink: socket.socket, *, is_answer: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(_PART):
                time.sleep(self.delay_s)
                if not (is_answer and self.loses):
                    sink.sendall(part)
        with self._lock:
            self._ends -= {source, sink}
        for each in (source, sink):
            _end(each)


def _end(end: socket.socket) -> None:
    """Whoever waits for something on it is woken."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
