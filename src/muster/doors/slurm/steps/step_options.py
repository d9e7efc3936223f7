"""Every option of srun and salloc, and what becomes of it: honoured, ignored aloud, or refused.

The names, their values and their short forms are those of Slurm 22.05; `container-*` are pyxis's,
and `muster` is ours: it takes what Slurm has no word for.
"""

from collections.abc import Mapping

from muster.doors.slurm.words.options import Manner, Option, Parsed, table
from muster.model.value import Value

_OF_BOTH = """
    A:account= b:begin= comment= C:constraint= c:cpus-per-task= cpus-per-gpu= deadline=
    D:chdir= d:dependency= x:exclude= exclusive? G:gpus= gpu-bind= gpus-per-node= gpus-per-task=
    gres= h:help H:hold I:immediate? J:job-name= mail-type= mail-user= mem= mem-per-cpu=
    mem-per-gpu= mincpus= nice?
    w:nodelist= N:nodes= n:ntasks= ntasks-per-gpu= ntasks-per-node= tasks-per-node= p:partition=
    priority= q:qos= Q:quiet reservation= signal= t:time= uid= usage v:verbose V:version wckey=
    prefer= muster=
"""
_IGNORED_BY_BOTH = """
    acctg-freq= bb= bbf= cluster= cluster-constraint= M:clusters= context= contiguous S:core-spec=
    cores-per-socket= cpu-freq= delay-boot= B:extra-node-info= gid= gpu-freq= gres-flags=
    hint= L:licenses= mcs-label= network= k:no-kill?
    ntasks-per-core= ntasks-per-tres= ntasks-per-socket= power= profile=
    reboot s:oversubscribe sockets-per-node= spread-job switches= thread-spec= threads-per-core=
    time-min= tmp= use-min-nodes
"""
_REFUSED_BY_BOTH = "container= gpus-per-socket="


class Options(Value):
    """The options of one command; `ignored` and `refused` name some of them."""

    manner: Manner
    all: tuple[Option, ...]
    ignored: frozenset[str]
    refused: frozenset[str]


def _options(command: str, honoured: str, ignored: str, refused: str) -> Options:
    every = table(f"{honoured} {ignored} {refused}")
    return Options(
        manner=Manner(command=command, permute=False, code=255),
        all=tuple(sorted(every, key=lambda option: option.name)),
        ignored=frozenset(option.name for option in table(ignored)),
        refused=frozenset(option.name for option in table(refused)),
    )


SRUN = _options(
    "srun",
    f"""{_OF_BOTH}
    cpu-bind= cpu_bind= mem-bind=
    X:disable-status epilog= e:error= exact export= het-group= i:input= jobid=
    K:kill-on-bad-exit? l:label m:distribution= mpi= multi-prog open-mode= o:output= O:overcommit
    overlap? pack-group= prolog= pty quit-on-interrupt r:relative= task-epilog= task-prolog=
    u:unbuffered W:wait= whole
    """,
    f"""{_IGNORED_BY_BOTH}
    accel-bind= bcast? bcast-exclude= compress? debugger-test interactive
    msg-timeout= E:preserve-env propagate? resv-ports?
    send-libs? slurmd-debug= T:threads=
    """,
    f"""{_REFUSED_BY_BOTH}
    container-image= container-mounts= Z:no-allocate nodefile= test-only
    """,
)

SALLOC = _options(
    "salloc",
    f"{_OF_BOTH} m:distribution= bell K:kill-command? no-bell no-shell",
    f"{_IGNORED_BY_BOTH} get-user-env? mem-bind= O:overcommit wait-all-nodes=",
    f"{_REFUSED_BY_BOTH} F:nodefile=",
)

ALIASES = {
    "tasks-per-node": "ntasks-per-node",
    "cluster": "clusters",
    "cpu_bind": "cpu-bind",
    "pack-group": "het-group",
}

_OF_SRUN: Mapping[str, str] = {
    "SLURM_ACCOUNT": "account",
    "SLURM_CONSTRAINT": "constraint",
    "SLURM_CPUS_PER_GPU": "cpus-per-gpu",
    "SLURM_CPU_BIND": "cpu-bind",
    "SLURM_DEPENDENCY": "dependency",
    "SLURM_DISABLE_STATUS": "disable-status",
    "SLURM_DISTRIBUTION": "distribution",
    "SLURM_EPILOG": "epilog",
    "SLURM_EXACT": "exact",
    "SLURM_EXCLUSIVE": "exclusive",
    "SLURM_EXPORT_ENV": "export",
    "SLURM_GPUS": "gpus",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
    "SLURM_GPU_BIND": "gpu-bind",
    "SLURM_IMMEDIATE": "immediate",
    "SLURM_KILL_BAD_EXIT": "kill-on-bad-exit",
    "SLURM_LABELIO": "label",
    "SLURM_MEM_BIND": "mem-bind",
    "SLURM_MPI_TYPE": "mpi",
    "SLURM_NPROCS": "ntasks",
    "SLURM_NTASKS": "ntasks",
    "SLURM_NTASKS_PER_GPU": "ntasks-per-gpu",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_OPEN_MODE": "open-mode",
    "SLURM_OVERCOMMIT": "overcommit",
    "SLURM_OVERLAP": "overlap",
    "SLURM_PARTITION": "partition",
    "SLURM_PROLOG": "prolog",
    "SLURM_QOS": "qos",
    "SLURM_REMOTE_CWD": "chdir",
    "SLURM_RESERVATION": "reservation",
    "SLURM_SIGNAL": "signal",
    "SLURM_STDERRMODE": "error",
    "SLURM_STDINMODE": "input",
    "SLURM_STDOUTMODE": "output",
    "SLURM_STEP_GRES": "gres",
    "SLURM_TASK_EPILOG": "task-epilog",
    "SLURM_TASK_PROLOG": "task-prolog",
    "SLURM_TIMELIMIT": "time",
    "SLURM_UNBUFFEREDIO": "unbuffered",
    "SLURM_WAIT": "wait",
    "SLURM_WCKEY": "wckey",
    "SLURM_WORKING_DIR": "chdir",
    "SRUN_CPUS_PER_TASK": "cpus-per-task",
    "SRUN_EXPORT_ENV": "export",
}

_OF_SALLOC: Mapping[str, str] = {
    "SALLOC_ACCOUNT": "account",
    "SALLOC_BELL": "bell",
    "SALLOC_CONSTRAINT": "constraint",
    "SALLOC_CPUS_PER_GPU": "cpus-per-gpu",
    "SALLOC_EXCLUSIVE": "exclusive",
    "SALLOC_GPUS": "gpus",
    "SALLOC_GPUS_PER_NODE": "gpus-per-node",
    "SALLOC_GPUS_PER_TASK": "gpus-per-task",
    "SALLOC_GPU_BIND": "gpu-bind",
    "SALLOC_GRES": "gres",
    "SALLOC_IMMEDIATE": "immediate",
    "SALLOC_KILL_CMD": "kill-command",
    "SALLOC_MEM_PER_CPU": "mem-per-cpu",
    "SALLOC_MEM_PER_GPU": "mem-per-gpu",
    "SALLOC_MEM_PER_NODE": "mem",
    "SALLOC_NO_BELL": "no-bell",
    "SALLOC_PARTITION": "partition",
    "SALLOC_QOS": "qos",
    "SALLOC_RESERVATION": "reservation",
    "SALLOC_SIGNAL": "signal",
    "SALLOC_TIMELIMIT": "time",
    "SALLOC_WCKEY": "wckey",
}

_SWITCHES = frozenset({"label", "overcommit", "overlap", "exact", "unbuffered", "disable-status"})
"""Options that a variable turns on unless it says 0."""

_OF_A_REQUEST = frozenset({"gpus", "gpus-per-node", "cpus-per-gpu", "exclusive"})
"""Inside of a job their variables say what the job has, not what a step asks for."""

_OF_TASKS = frozenset({"gpus-per-task", "ntasks-per-gpu", "gpu-bind"})
"""How the job's tasks share its GPUs: its steps' tasks do too, unless a step asks for GPUs."""

_OF_FIRST = frozenset({"ntasks", "ntasks-per-node", *_OF_TASKS})
"""Inside of a job of several components they are about the first, without a number behind."""

_ANEW = ("gpus", "gpus-per-node", "gpus-per-task", "gres", "ntasks-per-gpu")


def from_environment(
    command: str, env: Mapping[str, str], line: Parsed, component: int = 0
) -> Parsed:
    """The options that variables stand for, beside those of the command line.

    Those with a component's number behind are about it alone.
    """
    names = _OF_SRUN if command == "srun" else _OF_SALLOC
    is_inside = "SLURM_JOB_ID" in env or line.has("jobid")
    passed: frozenset[str] = frozenset()
    if is_inside:
        passed |= _OF_A_REQUEST
    if any(map(line.has, _ANEW)):
        passed |= _OF_TASKS
    numbered = [(f"{name}_HET_GROUP_{component}", option) for name, option in names.items()]
    own = [(option, env[name]) for name, option in numbered if name in env and option not in passed]
    if is_inside and component:
        passed |= _OF_FIRST
    given = [
        (option, env[name])
        for name, option in names.items()
        if name in env and option not in passed
    ]
    return Parsed(given=tuple(each for each in (*given, *own) if not _is_off(*each)))


def _is_off(option: str, text: str) -> bool:
    return option in _SWITCHES and text in {"0", "no"}
