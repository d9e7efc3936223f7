import pytest

from muster.doors.slurm.call import Call, Program, RunStep, Script
from muster.doors.slurm.steps.step_options import ALIASES, SALLOC, SRUN, Options, from_environment
from muster.doors.slurm.steps.step_request import StepJob, check_mpi, step_of
from muster.doors.slurm.submit.environment import chosen_names
from muster.doors.slurm.submit.fleet import machines_of
from muster.doors.slurm.submit.request import Request, merged
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Takes, parsed
from muster.model.job import Job, JobSpec, TaskGroup
from muster.model.value import Instant, JobId, NodeId, QueuePath, UserName

# As `srun --a`, `--b` ... of Slurm 22.05 lists them, with what `--NAME` says about arguments.
OF_SRUN = """
accel-bind= account= acctg-freq= bb= bbf= bcast-exclude= bcast? begin= chdir= cluster-constraint=
cluster= clusters= comment= compress? constraint= container= context= contiguous core-spec=
cores-per-socket= cpu-bind= cpu-freq= cpu_bind= cpus-per-gpu= cpus-per-task= deadline=
debugger-test delay-boot= dependency= disable-status distribution= epilog= error= exact exclude=
exclusive? export= extra-node-info= gid= gpu-bind= gpu-freq= gpus-per-node= gpus-per-socket=
gpus-per-task= gpus= gres-flags= gres= help het-group= hint= hold immediate? input= interactive
job-name= jobid= kill-on-bad-exit? label licenses= mail-type= mail-user= mcs-label= mem-bind=
mem-per-cpu= mem-per-gpu= mem= mincpus= mpi= msg-timeout= multi-prog network= nice? no-allocate
no-kill? nodefile= nodelist= nodes= ntasks-per-core= ntasks-per-gpu= ntasks-per-node=
ntasks-per-socket= ntasks-per-tres= ntasks= open-mode= output= overcommit overlap? oversubscribe
pack-group= partition= power= prefer= preserve-env priority= profile= prolog= propagate? pty qos=
quiet quit-on-interrupt reboot relative= reservation= resv-ports? send-libs? signal= slurmd-debug=
sockets-per-node= spread-job switches= task-epilog= task-prolog= tasks-per-node= test-only
thread-spec= threads-per-core= threads= time-min= time= tmp= uid= unbuffered usage use-min-nodes
verbose version wait= wckey= whole
"""
OF_SALLOC = """
account= acctg-freq= bb= bbf= begin= bell chdir= cluster-constraint= cluster= clusters= comment=
constraint= container= context= contiguous core-spec= cores-per-socket= cpu-freq= cpus-per-gpu=
cpus-per-task= deadline= delay-boot= dependency= distribution= exclude= exclusive?
extra-node-info= get-user-env? gid= gpu-bind= gpu-freq= gpus-per-node= gpus-per-socket=
gpus-per-task= gpus= gres-flags= gres= help hint= hold immediate? job-name= kill-command?
licenses= mail-type= mail-user= mcs-label= mem-bind= mem-per-cpu= mem-per-gpu= mem= mincpus=
network= nice? no-bell no-kill? no-shell nodefile= nodelist= nodes= ntasks-per-core=
ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= ntasks-per-tres= ntasks= overcommit
oversubscribe partition= power= prefer= priority= profile= qos= quiet reboot reservation= signal=
sockets-per-node= spread-job switches= tasks-per-node= thread-spec= threads-per-core= time-min=
time= tmp= uid= usage use-min-nodes verbose version wait-all-nodes= wckey=
"""

OF_PYXIS = {"container-image=", "container-mounts="}
OF_MUSTER = {"muster="}


def request(line: str, env: dict[str, str] | None = None, script: str | None = None) -> Request:
    found = Script(text=script) if script is not None else None
    inside = {"SLURM_JOB_ID": "7"} | (env or {})
    call = Call(argv=tuple(line.split()), cwd="/work", env=inside, script=found)
    read = parsed(SRUN.all, call.argv, SRUN.manner)
    outer = from_environment("srun", call.env, read)
    given = merged(outer, read, aliases=ALIASES)
    return Request(command="srun", given=given, call=call, now=Instant(0))


def step(line: str, env: dict[str, str] | None = None, nodes: int = 1) -> tuple[RunStep, str]:
    spec = JobSpec(
        name="job", user=UserName("ada"), queue=QueuePath("lab"), groups=(TaskGroup(count=1),)
    )
    job = Job(id=JobId(7), spec=spec, submitted_at=Instant(0))
    names = tuple(NodeId(f"n{at}") for at in range(nodes))
    place = StepJob(job=job, nodes=names, address="unix:///spool/7.1/steps.sock")
    return step_of([request(line, env)], [place], machines_of({}))


def program(line: str, env: dict[str, str] | None = None, nodes: int = 1) -> Program:
    return step(line, env, nodes)[0].programs[0]


@pytest.mark.parametrize(("options", "known"), [(SRUN, OF_SRUN), (SALLOC, OF_SALLOC)])
def test_every_option_of_slurm_is_known_and_has_one_fate(options: Options, known: str) -> None:
    marks = {Takes.NO: "", Takes.MUST: "=", Takes.MAY: "?"}
    ours = {option.name + marks[option.takes] for option in options.all}

    assert ours - OF_PYXIS - OF_MUSTER == set(known.split())
    assert len(ours) == len(options.all)
    assert not options.ignored & options.refused


def test_a_step_has_as_many_tasks_as_its_job_unless_it_says_so() -> None:
    assert program("true").wish["tasks"] == 1
    assert program("true", {"SLURM_NTASKS": "4"}).wish["tasks"] == 4
    assert program("-n 2 true", {"SLURM_NTASKS": "4"}).wish["tasks"] == 2
    assert program("--ntasks-per-node=3 true", nodes=2).wish["tasks"] == 6


def test_tasks_and_nodes_that_do_not_match_are_warned_of() -> None:
    _, few = step("-n 1 true", nodes=2)
    _, many = step("-n 6 --ntasks-per-node=1 true", nodes=2)

    assert few == "srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n"
    assert many.endswith("number of requested nodes 2. Ignoring --ntasks-per-node.\n")


@pytest.mark.parametrize(
    ("line", "is_exact"),
    [("true", False), ("--exact true", True), ("-c 2 true", True), ("-c 2 --whole true", False)],
)
def test_asking_for_cpus_by_task_means_only_those(line: str, *, is_exact: bool) -> None:
    assert program(line).wish["exact"] is is_exact


def test_gpus_are_asked_for_as_slurm_does() -> None:
    assert program("true").wish["gpus_per_node"] is None
    assert program("--gres=none true").wish["gpus_per_node"] == 0
    assert program("--gres=gpu:2 true").wish["gpus_per_node"] == 2
    assert program("--gpus-per-task=1 true").wish["gpus_per_task"] == 1
    assert program("true", {"SLURM_GPUS_PER_NODE": "4"}).wish["gpus_per_node"] is None


def test_variables_stand_for_options() -> None:
    found, _ = step(
        "true",
        {"SLURM_LABELIO": "1", "SLURM_STDOUTMODE": "f%t", "SLURM_OVERLAP": "0", "SLURM_WAIT": "9"},
    )

    (only,) = found.programs
    assert (only.output.label, only.output.stdout) == (True, "f%t")
    assert (only.wish["overlap"], found.conduct.wait_s) == (False, 9)


def test_export_chooses_what_is_passed_on() -> None:
    env = {"A": "1", "B": "2", "SLURM_JOB_ID": "7"}

    assert chosen_names(request("true", env)) == (None, {})
    assert chosen_names(request("--export=NONE true", env)) == (("SLURM_JOB_ID",), {})
    assert chosen_names(request("--export=A,C=3 true", env)) == (("SLURM_JOB_ID", "A"), {"C": "3"})
    assert chosen_names(request("--export=ALL,C=3 true", env)) == (None, {"C": "3"})


def test_programs_come_from_the_file_of_multi_prog() -> None:
    asked = request("-n 2 --multi-prog conf", script="0 a\n1 b %t\n")
    spec = JobSpec(
        name="job", user=UserName("ada"), queue=QueuePath("lab"), groups=(TaskGroup(count=1),)
    )
    job = Job(id=JobId(7), spec=spec, submitted_at=Instant(0))
    place = StepJob(job=job, nodes=(NodeId("n"),), address="unix:///spool/7.1/steps.sock")

    assert step_of([asked], [place], machines_of({}))[0].programs[0].argvs == (("a",), ("b", "1"))


def test_an_mpi_that_is_not_there_is_refused() -> None:
    check_mpi(request("--mpi=pmi2 true"))
    with pytest.raises(SlurmError, match="pmix"):
        check_mpi(request("--mpi=pmix true"))
