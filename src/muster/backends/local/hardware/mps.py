"""MPS: several processes on one GPU at once, each with its part of the threads and the memory.

One control daemon serves one GPU, with folders of its own under home: started for the first share,
ended after the last, and still there when the controller comes back. A process can talk to one
daemon only, so a task with shares of several GPUs gets one daemon for exactly those.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from muster.backends.local.hardware.inventory import CLUSTER
from muster.model.errors import BackendDownError
from muster.model.gpu import WHOLE_GPU_MILLI, MpsShare
from muster.model.value import DeviceId, Value
from muster.model.words import percent

CONTROL = "nvidia-cuda-mps-control"
PIPE_VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
"""Where a process finds the pipes of its daemon; the two also meet in /dev/shm."""
_ANSWER_S = 20
# Where driver packages and containers put it without telling the PATH.
_ALSO_IN = ("/usr/bin", "/usr/local/nvidia/bin", "/opt/nvidia/bin")

Devices = tuple[DeviceId, ...]


def mps_binary() -> str | None:
    """Where the control program is, if this machine has it."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(CONTROL, path=os.pathsep.join([*folders, *_ALSO_IN]))


def client_limits(shares: Sequence[tuple[MpsShare, int]]) -> dict[str, str]:
    """What keeps a process to its shares: each given with the whole memory of its device in MiB.

    The driver counts devices as the process sees them, so the shares are in that order.
    The thread percentage is one for the whole process: the least of its shares.
    """
    least = min(share.milli for share, _ in shares)
    limits = (f"{at}={share_memory_mib(*each)}M" for at, each in enumerate(shares))
    return {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": percent(least).rstrip("%"),
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": ",".join(limits),
    }


def share_memory_mib(share: MpsShare, device_mib: int) -> int:
    """The memory that a share may use: what it says, or the same part of it as of the threads."""
    return share.memory_mib or device_mib * share.milli // WHOLE_GPU_MILLI


def daemon_name(devices: Devices) -> str:
    """A folder name for the daemon of these devices: short, because sockets' paths must be."""
    if len(devices) == 1:
        return str(devices[0]).removeprefix("GPU-")[:13]
    return hashlib.sha256(",".join(sorted(devices)).encode()).hexdigest()[:12]


class Mps:
    """The daemons of this machine. `binary` is None where MPS is not installed."""

    def __init__(self, folder: Path, binary: str | None) -> None:
        self._folder = folder
        self._binary = binary
        self._users: Counter[Devices] = Counter()

    def adopt(self, used: Iterable[Devices]) -> None:
        """These are used by tasks that go on, each as often as it is named; end all others."""
        self._users = Counter(map(_sorted, used))
        needed = {daemon_name(devices) for devices in self._users}
        for folder in sorted(self._folder.glob("*")):
            if folder.name not in needed:
                self._end(folder)

    def join(self, devices: Devices) -> Mapping[str, str]:
        """One more task: starts the daemon where none answers. The environment that it needs."""
        devices = _sorted(devices)
        folder = self._folder / daemon_name(devices)
        if not self._answers(folder):
            self._start(folder, devices)
        self._users[devices] += 1
        return _where(folder)

    def leave(self, devices: Devices) -> None:
        """One task less. The daemon ends with the last, unless a process is connected after all."""
        devices = _sorted(devices)
        self._users[devices] -= 1
        if self._users[devices] > 0:
            return
        del self._users[devices]
        self._end(self._folder / daemon_name(devices))

    def _start(self, folder: Path, devices: Devices) -> None:
        if self._binary is None:
            raise BackendDownError(CLUSTER, _MISSING)
        for part in ("pipe", "log"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for each in (self._folder, folder, folder / "pipe"):
            # Users' processes pass through to the pipes, whatever our umask is.
            each.chmod(0o711)
        answer = self._control(folder, "-d", devices=devices)
        if answer.ok and self._answers(folder):
            return
        text = f"the MPS daemon did not start ({answer.text or 'no answer'}); see {folder}/log"
        raise BackendDownError(CLUSTER, text)

    def _end(self, folder: Path) -> None:
        """Ends a daemon that has no clients, and forgets its folder."""
        if self._answers(folder):
            if self._clients(folder):
                return
            self._control(folder, said="quit")
        shutil.rmtree(folder, ignore_errors=True)

    def _clients(self, folder: Path) -> list[str]:
        servers = self._control(folder, said="get_server_list").numbers()
        return [
            client
            for server in servers
            for client in self._control(folder, said=f"get_client_list {server}").numbers()
        ]

    def _answers(self, folder: Path) -> bool:
        """Whether a daemon is behind the pipe. A folder can outlive its daemon."""
        if self._binary is None or not (folder / "pipe").exists():
            return False
        answer = self._control(folder, said="get_server_list")
        # Words in place of numbers are a complaint, whatever the exit status.
        return answer.ok and answer.numbers() == answer.text.split()

    def _control(
        self, folder: Path, *options: str, said: str = "", devices: Devices = ()
    ) -> "_Told":
        env = {key: text for key, text in os.environ.items() if not key.startswith("CUDA_")}
        only = {"CUDA_VISIBLE_DEVICES": ",".join(devices)} if devices else {}
        # A file, because the daemon keeps what it is given open, and a pipe would never end.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out:
            try:
                # Whom we run was found by us, and nothing of it comes from a user.
                done = subprocess.run(  # noqa: S603
                    [self._binary or CONTROL, *options],
                    env={**env, **_where(folder), **only},
                    input=f"{said}\n",
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=_ANSWER_S,
                    check=False,
                    # Its pipes are for the processes of users.
                    umask=0o022,
                )
            except (OSError, subprocess.TimeoutExpired) as problem:
                return _Told(ok=False, text=str(problem))
            out.seek(0)
            return _Told(ok=done.returncode == 0, text=out.read().strip())


class _Told(Value, gc=False):
    """How the control program ended, and what it printed."""

    ok: bool
    text: str

    def numbers(self) -> list[str]:
        return [word for word in self.text.split() if word.isdecimal()]


_MISSING = (
    f"MPS is not installed: {CONTROL} is not on the PATH; install the NVIDIA driver's MPS programs"
)


def _where(folder: Path) -> dict[str, str]:
    return {
        PIPE_VARIABLE: str(folder / "pipe"),
        "CUDA_MPS_LOG_DIRECTORY": str(folder / "log"),
    }


def _sorted(devices: Devices) -> Devices:
    return tuple(sorted(devices))
