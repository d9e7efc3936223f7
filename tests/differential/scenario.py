"""The jobs that are there when a session begins: the same on both sides, under the same ids."""

import time
from collections.abc import Mapping

from differential.side import Side

PATIENCE_S = 60.0

# In this order, because ids are given in it; the array is last, because its tasks have ids of
# their own in Muster at once, and in Slurm when they start.
JOBS: Mapping[str, str] = {
    "DONE": "-J done -w pretend1 --wrap true",
    "FAILED": "-J fails -w pretend1 -o failed.txt --wrap 'echo no; exit 3'",
    "KILLED": "-J killed -w pretend1 --wrap 'kill -SEGV $$'",
    "ENDED": "-J ended -w pretend1 --wrap 'exec sleep 1000'",
    "TRAIN": (
        "-J train -w pretend1 --gres=gpu:2 -c 4 --mem=8G -t 60 --comment=first"
        " --wrap 'exec sleep 1000'"
    ),
    "GANG": (
        "-J gang -w 'pretend[2-3]' -N 2 --ntasks-per-node=8 --gres=gpu:8 -t 1-0"
        " --wrap 'exec sleep 1000'"
    ),
    "HELD": "-J held --hold -t 30 --wrap true",
    "WIDE": "-J wide -N 4 --gres=gpu:8 -t 2:00:00 --wrap true",
    "AFTER": "-J after -d afterok:$GANG --wrap true",
    "NEVER": "-J never -d afterok:$FAILED --wrap true",
    # Age counts from when a job may start, in Muster at once, in this Slurm not at all.
    "LATER": "-J later --begin=now+1day --nice=1000 --wrap true",
    "ARRAY": "-J many -w pretend4 -a 0-9%2 -t 10 --wrap 'exec sleep 1000'",
}
RUNNING = ("ENDED", "TRAIN", "GANG")
OVER = ("DONE", "FAILED", "KILLED")


def prepare(side: Side) -> None:
    """Submit everything, and wait until both systems have made up their minds."""
    for name, words in JOBS.items():
        side.variables[name] = side.text(f"sbatch --parsable {words}")
        if name in OVER:
            # What is over when the next one comes, is over in the same order on both sides.
            _until(side, f"squeue -h -t all -j ${name} -o %T", {"COMPLETED", "FAILED"})
        elif name in RUNNING:
            _until(side, f"squeue -h -j ${name} -o %T", {"RUNNING"})
    side.text("scancel $ENDED")
    _until(side, "squeue -h -t all -j $ENDED -o %T", {"CANCELLED"})
    _until(side, "squeue -h -j ${ARRAY}_1 -o %T", {"RUNNING"})
    _until(side, "squeue -h -j $WIDE -o %r", {"Resources", "Priority"})
    _until(side, "squeue -h -j $LATER -o %r", {"BeginTime"})
    _until(side, "squeue -h -j $NEVER -o %r", {"DependencyNeverSatisfied"})
    # A time of zero would look like that of a job that has not begun.
    _until(side, "squeue -h -t R -o %M | grep -c 0:00", {"0"})
    _until(side, "sacct -n -X -P -j $ENDED -o state%9", {"CANCELLED by 0"})
    # Slurm tells its database of jobs when it has the time.
    waiting = "$HELD,$WIDE,$AFTER,$NEVER,$LATER,$ARRAY"
    states = f"sacct -n -X -P -j {waiting} -o state | sort | uniq -c | xargs"
    _until(side, states, {"6 PENDING 2 RUNNING"})


def _until(side: Side, line: str, wanted: set[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := side.shell(line).out.strip()) not in wanted:
        assert time.monotonic() < deadline, f"{side.name}: {line}: {found}, not {wanted}"
        time.sleep(0.1)
