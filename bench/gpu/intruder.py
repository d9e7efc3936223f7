"""What the jobs of the wall's proof run: tries everything to get at a GPU, and says what it got.

python -m bench.gpu.intruder NODE...   prints one line of JSON; NODE are device nodes to open
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

ANSWER_S = 60
# Each changes the environment that the job was given; None takes a variable away.
TRIES: Mapping[str, Mapping[str, str | None]] = {
    "as it was started": {},
    "without CUDA_VISIBLE_DEVICES": {"CUDA_VISIBLE_DEVICES": None, "NVIDIA_VISIBLE_DEVICES": None},
    "with CUDA_VISIBLE_DEVICES=0": {"CUDA_VISIBLE_DEVICES": "0"},
    "without every variable of MPS": {
        "CUDA_VISIBLE_DEVICES": None,
        "CUDA_MPS_PIPE_DIRECTORY": "/nonexistent",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": None,
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": None,
    },
    "with the limits of MPS lifted": {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": None,
    },
}


def main(*nodes: str) -> None:
    found: dict[str, Any] = {
        name: ran("reach", changes)
        for name, changes in {**TRIES, **through_others_daemons()}.items()
    }
    lifted = TRIES["with the limits of MPS lifted"]
    memory = {"as it was started": ran("fill", {}, "4096"), "lifted": ran("fill", lifted, "4096")}
    print(json.dumps({"tries": found, "memory": memory, "opens": opened(nodes)}), flush=True)


def through_others_daemons() -> dict[str, dict[str, str | None]]:
    """Through the MPS daemon of another job, wherever one can be found."""
    pipes = glob.glob(f"{tempfile.gettempdir()}/muster-*/**/mps/*/pipe", recursive=True)
    return {
        f"through the MPS daemon {number}": {
            "CUDA_VISIBLE_DEVICES": None,
            "CUDA_MPS_PIPE_DIRECTORY": pipe,
        }
        for number, pipe in enumerate(sorted(pipes))
    }


def ran(command: str, changes: Mapping[str, str | None], *numbers: str) -> dict[str, Any]:
    env = {**os.environ, **{name: text for name, text in changes.items() if text is not None}}
    for name, text in changes.items():
        if text is None:
            env.pop(name, None)
    done = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-m", "bench.gpu.task", command, *numbers],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=ANSWER_S,
    )
    if done.returncode:
        return {"computed": False, "had_mib": 0, "refused": done.stderr[-300:]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def opened(nodes: tuple[str, ...]) -> dict[str, str]:
    """How the opening of each node ended."""
    found: dict[str, str] = {}
    for node in nodes:
        try:
            os.close(os.open(node, os.O_RDWR))
        except OSError as error:
            found[node] = str(error.strerror)
        else:
            found[node] = "opened"
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
