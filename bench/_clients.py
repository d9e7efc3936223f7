"""Client programs: processes of their own, each submitting one job after the other.

All of them connect first and begin together; what is counted is from the first begin to the last
end, so that starting interpreters costs neither system anything.
"""

import multiprocessing
import subprocess
import time
from collections.abc import Callable, Mapping
from multiprocessing.synchronize import Barrier
from typing import Protocol

from bench._musters import job
from bench.slurm.configuring import Layout
from bench.slurm.rest import SlurmRest, submission
from muster.api.requests import SubmitDocument
from muster.client.calls import Client
from muster.model.value import Value

PATIENCE_S = 600.0

NOTHING = "#!/bin/sh\ntrue\n"
"""What a no-op job runs, on both sides."""

SLEEP = "#!/bin/sh\nexec sleep 3600\n"


class Loop(Protocol):
    """Connects, then is asked once to submit so many."""

    def __call__(self, count: int) -> "Callable[[], None]": ...


class MusterLoop(Value):
    """The Python client over the unix socket."""

    url: str
    held: bool = True
    script: str = NOTHING

    def __call__(self, count: int) -> Callable[[], None]:
        client = Client(self.url)
        client.me()
        document: SubmitDocument = job(self.script, held=self.held)

        def submit() -> None:
            for _ in range(count):
                client.submit_document(document)
            client.close()

        return submit


class SlurmRestLoop(Value):
    """A kept connection to slurmrestd over its unix socket, with requests ready to send."""

    layout: Layout
    held: bool = True
    script: str = NOTHING

    def __call__(self, count: int) -> Callable[[], None]:
        client = SlurmRest(self.layout)
        request = submission(self.script, held=self.held)

        def submit() -> None:
            for _ in range(count):
                client.submit(request)
            client.close()

        return submit


class SbatchLoop(Value):
    """A shell that calls `sbatch` again and again: nothing calls it faster."""

    environ: Mapping[str, str]

    def __call__(self, count: int) -> Callable[[], None]:
        sbatch = "sbatch --hold --gres=gpu:1 --time=60 --output=/dev/null --wrap=true"
        text = f"i=0; while [ $i -lt {count} ]; do {sbatch} >/dev/null || exit 1; i=$((i+1)); done"

        def submit() -> None:
            subprocess.run(["/bin/sh", "-c", text], env=self.environ, check=True)  # noqa: S603 -- ours

        return submit


def seconds(loop: Loop, *, clients: int, count: int) -> float:
    """How long so many clients take for `count` submissions together."""
    spawn = multiprocessing.get_context("spawn")
    together, told = spawn.Barrier(clients), spawn.SimpleQueue()
    each = [count // clients + (at < count % clients) for at in range(clients)]
    processes = [spawn.Process(target=_client, args=(loop, n, together, told)) for n in each]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_S)
        if process.exitcode != 0:
            # The others may wait for it to begin.
            together.abort()
    if any(process.exitcode != 0 for process in processes):
        raise RuntimeError(f"a client of {type(loop).__name__} failed")
    laps: list[tuple[float, float]] = [told.get() for _ in processes]
    return max(end for _, end in laps) - min(begin for begin, _ in laps)


def _client(
    loop: Loop,
    count: int,
    together: Barrier,
    told: "multiprocessing.SimpleQueue[tuple[float, float]]",
) -> None:
    submit = loop(count)
    together.wait(PATIENCE_S)
    # CLOCK_MONOTONIC is the same in all processes of a machine.
    begin = time.monotonic()
    submit()
    told.put((begin, time.monotonic()))
