"""What may differ between two runs and two systems, and nothing else: each rule with its reason.

A rule keeps the width of what it hides, so that columns stay where they are.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

Rule = tuple[re.Pattern[str], str]

WAITING = (
    r"^(?:srun|salloc): (?:Pending job allocation JOB"
    r"|job JOB (?:queued and waiting for|has been allocated) resources"
    r"|Job allocation JOB has been revoked\.)\n"
)

ALWAYS: tuple[Rule, ...] = (
    # Instants, as ISO has them and as the line above long lists has them.
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "YYYY-MM-DDTHH:MM:SS"),
    (re.compile(r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \d{4}"), "Www Mmm DD HH:MM:SS YYYY"),
    # Slurm gives a number to each task of an array when it starts, Muster when it is submitted.
    (re.compile(r"(?<=Submitted batch job )\d+"), "JOB"),
    (re.compile(r"(?<=sbatch: Job )\d+(?= to start)"), "JOB"),
    (re.compile(r"(?<=(?:srun|lloc): job )\d+|(?<=allocation )\d+"), "JOB"),
    # Whether there is room at once, and whether salloc hears of the end of its job before it ends
    # itself, depends on how busy the scheduler is at that moment.
    (re.compile(WAITING, re.MULTILINE), ""),
    # Where a job was submitted from: the session of a shell has another number each time.
    (re.compile(r"(?<=AllocNode:Sid=)\S+"), "HOST:SID"),
    # How long a job has run; what has not begun still shows its zeros.
    (re.compile(r"(?<=RunTime=)(?!00:00:00)\d\d:\d\d:\d\d"), "HH:MM:SS"),
    # Without its multifactor plugin Slurm counts down from 2^32; ours is what the planner sorts by.
    (re.compile(r"(?<=Priority=)[1-9]\d*"), "PRIORITY"),
    # Which of its two schedulers looked at a job last depends on when they come to it.
    (re.compile(r"(?<= Scheduler=)\w+(?::\*)?"), "SCHEDULER"),
)

NAMED: dict[str, tuple[Rule, ...]] = {
    # How long something runs, below ten minutes; what has not begun still shows its 0:00.
    "elapsed": (
        (re.compile(r"(?<![\d:-])(?!0:00)\d:\d\d(?![\d:])"), "M:SS"),
        (re.compile(r"\b00:(?!00:00)0\d:\d\d\b"), "00:MM:SS"),
    ),
    # The same where some were over at once, so that a zero says nothing.
    "lengths": (
        (re.compile(r"(?<![\d:-])\d:\d\d(?![\d:])"), "M:SS"),
        (re.compile(r"(?<=RunTime=)00:00:00"), "HH:MM:SS"),
    ),
    # What is left of a time limit of an hour.
    "left": ((re.compile(r"\b5\d:\d\d\b"), "MM:SS"),),
    # Numbers that the systems count for themselves: ids of new jobs, load, free memory.
    # They may be of any width, so that the blanks behind them do not count.
    "numbers": ((re.compile(r"\d+(\.\d+)? *"), "N "),),
    # Nodes were looked at one after the other: those of one row have one load, or a range of loads.
    "load": ((re.compile(r"(?<=\d\.\d\d)-\d+\.\d\d"), ""),),
    # How long a Slurm keeps jobs that are over: here as long as the sessions take on any machine.
    "kept": ((re.compile(r"(?<=MinJobAge               = )\d+"), "N"),),
    # The id of a job that was submitted in this session, which others may have gone before.
    "job": ((re.compile(r"(?<=for job )\d+"), "JOB"),),
    # This Slurm counts no memory: what runs holds none, what waits seems to want all of its nodes.
    "memory": (
        (re.compile(r"\bmem=[^,\s]+,"), ""),
        (re.compile(r"\bMem=\d+"), "Mem=N"),
    ),
    # Which cores: Muster counts them, and gives none of them a name.
    "cores": ((re.compile(r"(?<=CPU_IDs=)[\d,-]+"), "CORES"),),
    # When its backfill comes to a job that waits, Slurm names nodes for it; a plan names none.
    "planned": ((re.compile(r" SchedNodeList=\S+"), ""),),
    # Since when the age of a job counts that has started: Slurm notes it when it comes to that.
    "accrual": ((re.compile(r"(?<=AccrueTime=)\S+"), "SINCE"),),
    # Seconds since 1970.
    "epoch": ((re.compile(r"\b1[789]\d{8}\b"), "EPOCH"),),
}


def masked(text: str, names: Iterable[str], root: Path) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(root), "ROOT")
    text = re.sub(rf"\b{re.escape(os.uname().nodename)}\b", "HOST", text)
    rules = [*ALWAYS, *(rule for name in names for rule in NAMED[name])]
    for pattern, instead in rules:
        text = pattern.sub(instead, text)
    return text
