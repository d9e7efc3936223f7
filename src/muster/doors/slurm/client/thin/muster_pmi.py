"""How the tasks of an MPI program find each other: the wire protocol of PMI 1, as MPICH speaks it.

Each task has one end of a socket, and says lines such as `cmd=put kvsname=K key=A value=B`. What is
put by one can be got by all; at a barrier every task waits for all others.
"""

import os
import select
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_NAME = 256
LONGEST_KEY = 64
LONGEST_VALUE = 4_096
FINE = " rc=0 msg=success"


class Pmi:
    """The ends that are ours, what was put, and who waits at the barrier."""

    def __init__(self, step: str, tasks: int) -> None:
        self._name = f"step_{step}"
        self._tasks = tasks
        self._lines: dict[int, socket.socket] = {}
        self._rest: dict[int, bytes] = {}
        self._waiting: set[int] = set()
        # All tasks share this machine's memory, whatever their nodes are called.
        self._kept = {"PMI_process_mapping": f"(vector,(0,1,{tasks}))"}

    def added(self) -> int:
        """The end for the next task."""
        ours, theirs = socket.socketpair()
        self._lines[ours.fileno()] = ours
        self._rest[ours.fileno()] = b""
        return theirs.detach()

    def register(self, waiting: "select.poll") -> None:
        for number in self._lines:
            waiting.register(number, select.POLLIN)

    def serve(self, ready: "Iterable[int]") -> None:
        """Answer the task that sent something."""
        for number in self._lines.keys() & set(ready):
            said = self._heard(number)
            if not said:
                self._lines.pop(number).close()
                continue
            *lines, self._rest[number] = (self._rest[number] + said).split(b"\n")
            for line in lines:
                self._obey(number, line.decode(errors="replace"))

    def _heard(self, number: int) -> bytes:
        try:
            return os.read(number, 65_536)
        except OSError:
            return b""

    def _obey(self, number: int, line: str) -> None:
        said = _words(line)
        command = said.get("cmd", "")
        if command == "barrier_in":
            self._barrier(number)
            return
        answer = self._answer(command, said)
        if answer is not None:
            self._tell(number, answer)

    def _answer(self, command: str, said: dict[str, str]) -> "str | None":
        if command == "put":
            self._kept[said.get("key", "")] = said.get("value", "")
            return "cmd=put_result" + FINE
        if command == "get":
            key = said.get("key", "")
            if key not in self._kept:
                return f"cmd=get_result rc=-1 msg=key_{key}_not_found value=unknown"
            return f"cmd=get_result{FINE} value={self._kept[key]}"
        sizes = f"kvsname_max={LONGEST_NAME} keylen_max={LONGEST_KEY} vallen_max={LONGEST_VALUE}"
        return {
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": f"cmd=maxes {sizes}",
            "get_appnum": "cmd=appnum appnum=0",
            "get_my_kvsname": f"cmd=my_kvsname kvsname={self._name}",
            "get_universe_size": f"cmd=universe_size size={self._tasks}",
            "finalize": "cmd=finalize_ack rc=0",
        }.get(command)

    def _barrier(self, number: int) -> None:
        self._waiting.add(number)
        if len(self._waiting) == self._tasks:
            together, self._waiting = self._waiting, set()
            for each in together:
                self._tell(each, "cmd=barrier_out rc=0")

    def _tell(self, number: int, text: str) -> None:
        line = self._lines.get(number)
        try:
            if line is not None:
                line.sendall(text.encode() + b"\n")
        except OSError:
            # It ended while the others met.
            return


def _words(line: str) -> dict[str, str]:
    """`name=value` with spaces between; only a value at the end may hold some."""
    head, mark, value = line.strip().partition(" value=")
    found: dict[str, str] = {}
    for word in head.split():
        name, _, text = word.partition("=")
        found[name] = text
    return {**found, "value": value} if mark else found
