"""How often each command was used, by whom, and how long the answers took."""

from threading import Lock

from muster.model.value import Value

NAMES: dict[str, tuple[str, int]] = {
    "sbatch": ("REQUEST_SUBMIT_BATCH_JOB", 4003),
    "srun": ("REQUEST_JOB_STEP_CREATE", 5001),
    "salloc": ("REQUEST_RESOURCE_ALLOCATION", 4001),
    "squeue": ("REQUEST_JOB_INFO", 2003),
    "sinfo": ("REQUEST_NODE_INFO", 2007),
    "scancel": ("REQUEST_KILL_JOB", 5032),
    "scontrol": ("REQUEST_UPDATE_JOB", 3001),
    "sprio": ("REQUEST_PRIORITY_FACTORS", 2026),
    "sshare": ("REQUEST_SHARE_INFO", 2022),
    "sdiag": ("REQUEST_STATS_INFO", 2035),
    "sacct": ("DBD_GET_JOBS_COND", 1444),
    "sacctmgr": ("DBD_GET_ASSOCS", 1410),
    "sstat": ("REQUEST_JOB_STEP_STAT", 5030),
    "sattach": ("REQUEST_JOB_STEP_INFO", 2005),
    "sbcast": ("REQUEST_FILE_BCAST", 6014),
}
"""Under which of its messages Slurm would count a command; others go by their own name."""


class Calls(Value):
    """So many calls took so long."""

    count: int = 0
    total_us: int = 0

    def __add__(self, took_us: int) -> "Calls":
        return Calls(count=self.count + 1, total_us=self.total_us + took_us)

    @property
    def average_us(self) -> int:
        return self.total_us // max(1, self.count)


class Traffic:
    """Counts of one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.by_command: dict[str, Calls] = {}
        self.by_user: dict[str, Calls] = {}

    def count(self, command: str, user: str, took_us: int) -> None:
        """A command was answered."""
        with self._lock:
            self.by_command[command] = self.by_command.get(command, Calls()) + took_us
            self.by_user[user] = self.by_user.get(user, Calls()) + took_us

    def reset(self) -> None:
        with self._lock:
            self.by_command, self.by_user = {}, {}


def message_of(command: str) -> tuple[str, int]:
    """The name and number of the message that stands for a command."""
    return NAMES.get(command, (command.upper(), 0))
