"""Every option of sbatch, and what becomes of it: honoured, ignored aloud, or refused.

The names, their values and their short forms are those of Slurm 22.05; `container-*` are pyxis's,
and `muster` is ours: it takes what Slurm has no word for.
"""

from collections.abc import Mapping

from muster.doors.slurm.words.options import Manner, Option, table

HONOURED = table("""
    A:account= a:array= b:begin= D:chdir= comment= C:constraint= container-image= c:cpus-per-task=
    cpus-per-gpu= deadline= d:dependency= m:distribution= e:error= x:exclude= exclusive? export=
    get-user-env? G:gpus= gpu-bind= gpus-per-node= gpus-per-task= gres= h:help H:hold i:input=
    J:job-name= kill-on-invalid-dep= mail-type= mail-user= mem= mem-per-cpu= mem-per-gpu= mincpus=
    nice? no-requeue w:nodelist= N:nodes= n:ntasks= ntasks-per-gpu= ntasks-per-node=
    tasks-per-node= open-mode= o:output= parsable p:partition= priority= q:qos= Q:quiet requeue
    reservation= signal= test-only t:time= uid= M:clusters= cluster= usage V:version W:wait
    wckey= wrap= ignore-pbs prefer= muster=
""")
"""To get-user-env nothing has to be added: what the caller has set comes before a login's."""

IGNORED = table("""
    acctg-freq= batch= bb= bbf= cluster-constraint= context= contiguous
    S:core-spec= cores-per-socket= cpu-freq= delay-boot= B:extra-node-info=
    gid= gpu-freq= gres-flags= hint= L:licenses=
    mcs-label= mem-bind= network= k:no-kill? ntasks-per-core=
    ntasks-per-socket= ntasks-per-tres= O:overcommit s:oversubscribe power= profile=
    propagate? reboot sockets-per-node= spread-job switches= thread-spec= threads-per-core=
    time-min= tmp= use-min-nodes v:verbose wait-all-nodes=
""")
"""Accepted, with a warning that they have no effect here."""

REFUSED = table("""
    container= container-mounts= export-file= gpus-per-socket= F:nodefile=
""")
"""They would change what the job is, and we cannot: so that nothing runs that was not meant."""


def all_options() -> tuple[Option, ...]:
    """In the order in which getopt lists what could be meant: by name, but for a few."""
    unique = {option.name: option for option in (*REFUSED, *IGNORED, *HONOURED)}
    first = {"constraint": "contiguous_", "container-image": "~", "container-mounts": "~"}
    first["muster"] = "~~"
    return tuple(sorted(unique.values(), key=lambda each: first.get(each.name, each.name)))


OPTIONS = all_options()
SBATCH = Manner(command="sbatch", permute=False, code=255)
IGNORED_NAMES = frozenset(option.name for option in IGNORED)
REFUSED_NAMES = frozenset(option.name for option in REFUSED)

ALIASES = {"tasks-per-node": "ntasks-per-node", "cluster": "clusters"}

ENVIRONMENT: Mapping[str, str] = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_CLUSTERS": "clusters",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_CONTAINER": "container",
    "SBATCH_DELAY_BOOT": "delay-boot",
    "SBATCH_DISTRIBUTION": "distribution",
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_EXPORT": "export",
    "SBATCH_GET_USER_ENV": "get-user-env",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GPU_BIND": "gpu-bind",
    "SBATCH_GPU_FREQ": "gpu-freq",
    "SBATCH_GRES": "gres",
    "SBATCH_GRES_FLAGS": "gres-flags",
    "SBATCH_HINT": "hint",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_MEM_BIND": "mem-bind",
    "SBATCH_MEM_PER_CPU": "mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "mem-per-gpu",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_NETWORK": "network",
    "SBATCH_NO_KILL": "no-kill",
    "SBATCH_NO_REQUEUE": "no-requeue",
    "SBATCH_OPEN_MODE": "open-mode",
    "SBATCH_OVERCOMMIT": "overcommit",
    "SBATCH_PARTITION": "partition",
    "SBATCH_POWER": "power",
    "SBATCH_PROFILE": "profile",
    "SBATCH_QOS": "qos",
    "SBATCH_REQUEUE": "requeue",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_SIGNAL": "signal",
    "SBATCH_SPREAD_JOB": "spread-job",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_USE_MIN_NODES": "use-min-nodes",
    "SBATCH_WAIT": "wait",
    "SBATCH_WCKEY": "wckey",
}
"""The variables that stand for an option: above the script's lines, below the command line's."""
