"""Counts, and survives interruptions: the protocol of `muster.checkpoint` in plain Python.

    muster submit --checkpoint checkpoints -- python count.py --steps 1000

Kill it whenever you like and run it again: the total at the end is always the same.
"""

import argparse
import json
import sys
import time

from muster.checkpoint import latest, on_preemption, restarts, save


def main() -> None:
    asked = arguments()
    state = restored()
    with on_preemption() as preemption:
        while state["step"] < asked.steps:
            work(state, asked.pause)
            if state["step"] % asked.every == 0 or preemption.asked:
                keep(state)
            if preemption.asked:
                sys.exit(preemption.exit_code)
    print(f"counted {state['step']} steps, total {state['total']}, {restarts()} restarts")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Counts, and survives interruptions.")
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--every", type=int, default=50, help="steps from save to save")
    parser.add_argument("--pause", type=float, default=0.01, help="seconds that a step takes")
    return parser.parse_args()


def restored() -> dict[str, int]:
    found = latest()
    if found is None:
        return {"step": 0, "total": 0}
    print(f"going on from {found.name}", flush=True)
    return json.loads(found.read_text())


def work(state: dict[str, int], pause: float) -> None:
    time.sleep(pause)
    state["step"] += 1
    state["total"] += state["step"]
    print(f"step {state['step']}", flush=True)


def keep(state: dict[str, int]) -> None:
    save(f"count-{state['step']}.json", lambda file: file.write(json.dumps(state).encode()))


if __name__ == "__main__":
    main()
