"""Calls of clients that are not run here, word for word: each is answered, and without a word."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from doors.slurm.house import House

AIIDA = (
    (
        "squeue --noheader -o '%i^^^%t^^^%r^^^%B^^^%u^^^%D^^^%C^^^%R^^^%P^^^%l^^^%M^^^%S^^^%j^^^%V'"
        " --jobs={job},{job}"
    ),
    (
        "sacct --format=$(sacct --helpformat | tr -s '\n ' ' ' | tr ' ' ',' | sed 's/^,//; s/,$//')"
        " --parsable --jobs={job}"
    ),
    "sbatch --test-only --no-requeue --get-user-env --nice=10 -t 5 --wrap true",
)
BATCHSPAWNER = ("squeue -h -j {job} -o '%T %B'",)
CYLC = ("squeue -h -j {job},{job}",)
NEXTFLOW = (
    "squeue --noheader -o '%i %t' -t all -p local -u root",
    (
        "sbatch --test-only -J nf-x -o x.log --no-requeue --signal B:USR2@30 -c 2 -t 01:00:00"
        " --mem 512M -p local --wrap true"
    ),
)
OPEN_ONDEMAND = (
    (
        "squeue --all --states=all --noconvert -o '%a;%A;%b;%B;%c;%C;%d;%D;%e;%E;%f;%F;%g;%G;%h;%H;"
        "%i;%I;%j;%J;%k;%K;%l;%L;%m;%M;%n;%N;%o;%O;%p;%P;%q;%Q;%r;%S;%t;%T;%u;%U;%v;%V;%w;%W;%x;%X;"
        "%z;%Z'"
    ),
    "scontrol show job {job}",
)
SKYPILOT = (
    r"sinfo -h --Node -o '%N\x1f%t\x1f%G\x1f%c\x1f%m\x1f%P'",
    "scontrol show node -o",
    "scontrol show partitions -o",
    r"squeue -h --states=running,completing -o '%i\x1f%j\x1f%u\x1f%N\x1f%b'",
    "squeue -h --only-job-state --jobs {job} -o '%T'",
    "scontrol -o show step {job}",
    "srun --overlap --quiet --unbuffered --jobid {job} -w $(squeue -h -j {job} -o %N) true",
)
EXPORTERS = (
    "sinfo -a -h --Format='Nodes: ,GresUsed:' --state=allocated",
    "sinfo -h -o %C",
    (
        "sinfo -Nh -O NodeHost,StateLong,SocketCoreThread,CPUsState,CPUsLoad,Memory,AllocMem,"
        "FreeMem,Disk,Weight,Features:100,Gres:100,GresUsed:100,Reason:50"
    ),
    "squeue -rh -O state,username,Partition,Account,Qos,NumTasks,tres-alloc:70,Reason:70",
    "sshare -ahlP",
    "squeue --json",
    "sinfo --json",
)
CALLS = (
    *AIIDA,
    *BATCHSPAWNER,
    *CYLC,
    *NEXTFLOW,
    *OPEN_ONDEMAND,
    *SKYPILOT,
    *EXPORTERS,
)


@dataclass(frozen=True, kw_only=True)
class Busy:
    """A Muster that runs one job."""

    slurm: House
    job: str


@pytest.fixture(scope="module")
def busy(slurm: House) -> Iterator[Busy]:
    job = slurm.submits("-J busy --gres=gpu:1 -n2 -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(job, "RUNNING")
    yield Busy(slurm=slurm, job=job)
    slurm.out(f"scancel {job}")


@pytest.mark.parametrize("line", CALLS)
def test_what_clients_call_is_answered_without_a_word_of_trouble(busy: Busy, line: str) -> None:
    ran = busy.slurm.shell(line.replace("{job}", busy.job))

    is_test_only = "--test-only" in line
    assert ran.code == 0
    assert (ran.err == "") is not is_test_only
    assert ran.out or is_test_only or line.startswith("srun")
