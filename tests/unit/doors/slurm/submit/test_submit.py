import pytest

from muster.doors.slurm.submit.fleet import machines_of
from muster.doors.slurm.submit.job_options import HONOURED, IGNORED, OPTIONS, REFUSED
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Takes
from muster.model.gpu import GpuAsk, Mig, MpsShare, TimeShare
from muster.model.job import Ask, Dependency, DependencyKind, LabelRule, Operator, TaskGroup, Where
from muster.model.launch import Runs, Warn
from muster.model.mail import Mail, Occasion
from muster.model.value import MINUTE, Duration, GpuModel, JobId, NodeId, replace
from unit.doors.slurm.asked import NOW, asked, machines

A100 = (GpuModel("A100-40GB"),)
# As `sbatch --a`, `--b` ... of Slurm 22.05 lists them, with what `--NAME` says about arguments.
OF_SLURM = """
account= acctg-freq= array= batch= bb= bbf= begin= chdir= cluster= cluster-constraint= clusters=
comment= constraint= container= context= contiguous core-spec= cores-per-socket= cpu-freq=
cpus-per-gpu= cpus-per-task= deadline= delay-boot= dependency= distribution= error= exclude=
exclusive? export= export-file= extra-node-info= get-user-env? gid= gpu-bind= gpu-freq= gpus=
gpus-per-node= gpus-per-socket= gpus-per-task= gres= gres-flags= help hint= hold ignore-pbs input=
job-name= kill-on-invalid-dep= licenses= mail-type= mail-user= mcs-label= mem= mem-bind=
mem-per-cpu= mem-per-gpu= mincpus= network= nice? no-kill? no-requeue nodefile= nodelist= nodes=
ntasks= ntasks-per-core= ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= ntasks-per-tres=
open-mode= output= overcommit oversubscribe parsable partition= power= prefer= priority= profile=
propagate? qos= quiet reboot requeue reservation= signal= sockets-per-node= spread-job switches=
tasks-per-node= test-only thread-spec= threads-per-core= time= time-min= tmp= uid= usage
use-min-nodes verbose version wait wait-all-nodes= wckey= wrap=
"""
OF_PYXIS = {"container-image=", "container-mounts="}
OF_MUSTER = {"muster="}


def test_every_option_of_sbatch_is_known_and_has_one_fate() -> None:
    marks = {Takes.NO: "", Takes.MUST: "=", Takes.MAY: "?"}
    ours = {option.name + marks[option.takes] for option in OPTIONS}
    fates = [{option.name for option in fate} for fate in (HONOURED, IGNORED, REFUSED)]

    assert ours - OF_PYXIS - OF_MUSTER == set(OF_SLURM.split())
    assert sum(map(len, fates)) == len(OPTIONS)


def test_the_short_forms_are_slurms() -> None:
    letters = sorted(option.short for option in OPTIONS if option.short)

    assert letters == sorted("abcdehikmnopqstvwxABCDFGHJLMNOQSVW")


@pytest.mark.parametrize(
    ("argv", "groups"),
    [
        ("", [TaskGroup(each=Ask(cpu_milli=1_000))]),
        ("-c 4 --mem=8G", [TaskGroup(each=Ask(cpu_milli=4_000, memory_mib=8_192))]),
        ("--mem-per-cpu=2G -c3", [TaskGroup(each=Ask(cpu_milli=3_000, memory_mib=6_144))]),
        ("--gres=gpu:2", [TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=2)))]),
        ("--gres=gpu", [TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=1)))]),
        (
            "--gres=gpu:a100:2",
            [TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=2, models=A100)))],
        ),
        (
            "--gpus=a100:1",
            [TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=1, models=A100)))],
        ),
        ("-G 3", [TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=3)))]),
        (
            "--gpus-per-node=2 --mem-per-gpu=4G --cpus-per-gpu=6",
            [TaskGroup(each=Ask(cpu_milli=12_000, memory_mib=8_192, gpus=GpuAsk(count=2)))],
        ),
        (
            "--gres=gpu:1g.5gb:2",
            [
                TaskGroup(
                    each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=2, slice=Mig(profile="1g.5gb")))
                )
            ],
        ),
        (
            "--gres=mps:25",
            [TaskGroup(each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=1, slice=MpsShare(milli=250))))],
        ),
        (
            "--gres=shard:1",
            [
                TaskGroup(
                    each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=1, slice=TimeShare(replicas=4)))
                )
            ],
        ),
        (
            "-N2 --ntasks-per-node=4 -c 2 --gres=gpu:4",
            [
                TaskGroup(
                    count=2,
                    each=Ask(cpu_milli=8_000, gpus=GpuAsk(count=4)),
                    where=Where(max_per_node=1),
                )
            ],
        ),
        (
            "-n 16 --gpus-per-task=1",
            [TaskGroup(count=16, each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=1)))],
        ),
        (
            "--gpus=13 -N 2",
            [
                TaskGroup(
                    count=1,
                    each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=6)),
                    where=Where(max_per_node=1),
                ),
                TaskGroup(
                    name="main-more",
                    count=1,
                    each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=7)),
                    where=Where(max_per_node=1),
                ),
            ],
        ),
        (
            "--gpus=12",
            [
                TaskGroup(
                    count=2,
                    each=Ask(cpu_milli=1_000, gpus=GpuAsk(count=6)),
                    where=Where(max_per_node=1),
                )
            ],
        ),
    ],
)
def test_amounts_become_groups_of_tasks(argv: str, groups: list[TaskGroup]) -> None:
    assert list(asked(*argv.split()).spec.groups) == groups


def test_where_a_job_may_run() -> None:
    argv = "-p gpu,debug -x node[3-4] -C nvlink&rack=r1 --exclusive"

    spec = asked(*argv.split()).spec

    assert spec.pools == ("gpu", "debug")
    assert spec.groups[0].where == Where(
        require=(
            LabelRule(key="nvlink", operator=Operator.EXISTS),
            LabelRule(key="rack", values=("r1",)),
        ),
        not_nodes=(NodeId("node3"), NodeId("node4")),
        exclusive=True,
    )


def test_when_and_after_what_a_job_may_run() -> None:
    argv = "-t 1-12 -b now+1hour --deadline=now+3days -d afterok:7+5:8,afterany:50,singleton -H"

    want = asked(*argv.split())

    spec = want.spec
    assert (spec.time_limit, spec.begin_at) == (36 * 60 * MINUTE, NOW + 3_600_000)
    assert want.held
    assert spec.after == (
        Dependency(kind=DependencyKind.AFTER_OK, job=JobId(7), delay=Duration(5 * MINUTE)),
        Dependency(kind=DependencyKind.AFTER_OK, job=JobId(8)),
        Dependency(kind=DependencyKind.AFTER_ANY, job=JobId(50)),
        Dependency(kind=DependencyKind.AFTER_ANY, job=JobId(51)),
        Dependency(kind=DependencyKind.SINGLETON),
    )


def test_one_question_mark_makes_each_job_enough_and_a_whole_array_is_one() -> None:
    spec = asked("-d", "afterok:7:8?afterany:50,singleton?9").spec

    ok, ended = DependencyKind.AFTER_OK, DependencyKind.AFTER_ANY
    assert spec.after == (
        Dependency(kind=ok, job=JobId(7)),
        Dependency(kind=ok, job=JobId(8), way=1),
        Dependency(kind=ended, job=JobId(50), way=2),
        Dependency(kind=ended, job=JobId(51), way=2),
        Dependency(kind=DependencyKind.SINGLETON, way=3),
        Dependency(kind=ended, job=JobId(9), way=4),
    )


@pytest.mark.parametrize("text", ["afterok:7?", "?afterok:7", "afterok:7??afterok:8", "x?7"])
def test_something_stands_on_both_sides_of_a_question_mark(text: str) -> None:
    with pytest.raises(SlurmError, match="Job dependency problem"):
        asked("-d", text)


@pytest.mark.parametrize(("text", "ends"), [("yes", True), ("no", False)])
def test_a_job_with_that_option_does_not_wait_for_what_cannot_be(text: str, *, ends: bool) -> None:
    assert asked(f"--kill-on-invalid-dep={text}").spec.cancel_if_hopeless is ends


def test_an_array_has_indices_and_a_limit() -> None:
    want = asked("--array=1-7:2,10%2")

    assert (want.indices, want.at_once) == ((1, 3, 5, 7, 10), 2)
    assert want.spec.launch.stdout == "slurm-%A_%a.out"
    assert want.spec.launch.env["SLURM_ARRAY_TASK_COUNT"] == "5"


def test_the_script_runs_once_where_and_as_it_was_asked() -> None:
    argv = "-D work -o out-%j -e err --open-mode=append --signal=B:USR1@90 --no-requeue -J fit"

    spec = asked(*argv.split(), "-A", "lab/vision", "-q", "high").spec

    launch = spec.launch
    assert (spec.name, spec.queue, spec.job_class) == ("fit", "lab/vision", "high")
    assert not spec.retry.requeue
    assert (launch.runs, launch.argv, launch.workdir) == (
        Runs.FIRST_TASK,
        ("a", "b"),
        "/home/ann/work",
    )
    assert (launch.stdout, launch.stderr, launch.append) == ("out-%j", "err", True)
    assert launch.warn == Warn(signal=10, lead=Duration(90_000), shell_only=True)


def test_names_are_the_scripts_or_wraps() -> None:
    assert asked().spec.name == "job.sh"
    assert asked("--wrap", "echo hi").spec.name == "wrap"
    assert asked("--wrap", "echo hi").spec.launch.script == (
        "#!/bin/sh\n# This script was created by sbatch --wrap.\n\necho hi\n"
    )


def test_the_command_line_wins_over_the_environment_and_that_over_the_script() -> None:
    script = "#!/bin/sh\n#SBATCH -J script -p debug --comment=kept\n"

    spec = asked(
        *("-J", "line"), script=script, env={"SBATCH_JOB_NAME": "env", "SBATCH_PARTITION": "gpu"}
    ).spec

    assert (spec.name, spec.pools, spec.labels["slurm/comment"]) == ("line", ("gpu",), "kept")


@pytest.mark.parametrize(
    ("export", "env"),
    [
        ("ALL", {"A": "1", "B": "2", "HOME": "/home/ann", "TZ": "UTC"}),
        ("NONE", {"SLURM_EXPORT_ENV": "NONE", "SLURM_GET_USER_ENV": "1"}),
        ("A,C=3", {"A": "1", "C": "3", "SLURM_EXPORT_ENV": "A,C=3"}),
        ('C="x,y"', {"C": "x,y", "SLURM_EXPORT_ENV": 'C="x,y"'}),
        ("NIL", {}),
    ],
)
def test_export_chooses_what_the_job_finds(export: str, env: dict[str, str]) -> None:
    found = asked(f"--export={export}", env={"A": "1", "B": "2"}).spec.launch.env

    added = {"SLURM_SUBMIT_DIR": "/home/ann", "SLURM_SUBMIT_HOST": "login"}
    assert found == env | added


@pytest.mark.parametrize(("mode", "letter"), [("append", "a"), ("truncate", "t")])
def test_steps_learn_how_the_job_opens_its_files(mode: str, letter: str) -> None:
    assert asked(f"--open-mode={mode}").spec.launch.env["SLURM_OPEN_MODE"] == letter
    assert "SLURM_OPEN_MODE" not in asked().spec.launch.env


def test_a_job_from_inside_another_does_not_take_over_what_that_one_is() -> None:
    outer = {
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "16",
        "SLURM_JOB_ID_HET_GROUP_0": "7",
        "MUSTER_RANK": "3",
        "MUSTER_JOB_ID": "7",
    }

    env = asked(env=outer | {"A": "1"}).spec.launch.env

    assert env["A"] == "1"
    assert not env.keys() & outer.keys()


def test_asking_for_a_logins_environment_says_nothing_that_clients_would_stumble_over() -> None:
    assert asked("--get-user-env=L").warnings == ()


def test_what_has_no_effect_is_said_and_what_would_change_the_job_is_refused() -> None:
    want = asked("--hint=nomultithread", "--no-kill")

    assert want.warnings == ("--hint is ignored by Muster", "--no-kill is ignored by Muster")
    with pytest.raises(SlurmError, match="--container is not supported by Muster"):
        asked("--container=/bundle")


@pytest.mark.parametrize(
    ("argv", "on", "each_part"),
    [
        (("--mail-type=END,fail",), (Occasion.END, Occasion.FAIL), False),
        (("--mail-type=END", "--mail-type=BEGIN"), (Occasion.BEGIN, Occasion.END), False),
        (("--mail-type=END,NONE",), (), False),
        (("--mail-type=NONE", "--mail-type=FAIL"), (Occasion.FAIL,), False),
        (("--mail-type=bogus,END,ARRAY_TASKS",), (Occasion.END,), True),
        (("--mail-type=ALL",), tuple(Occasion)[:6], False),
        (("--mail-type=TIME_LIMIT_80",), (Occasion.TIME_LIMIT_80,), False),
        ((), (), False),
    ],
)
def test_mail_is_sent_on_the_occasions_that_are_named(
    argv: tuple[str, ...], on: tuple[Occasion, ...], *, each_part: bool
) -> None:
    want = asked(*argv, "--mail-user=ann@example.org")

    assert want.spec.mail == Mail(on=on, to="ann@example.org", each_part=each_part)
    assert want.warnings == ()


def test_a_script_and_its_command_line_ask_for_mail_together() -> None:
    script = "#!/bin/sh\n#SBATCH --mail-type=END --mail-user=a@b\n"

    mail = asked("--mail-type=FAIL", "--mail-user=c@d", script=script).spec.mail

    assert mail == Mail(on=(Occasion.END, Occasion.FAIL), to="c@d")


def test_a_heterogeneous_job_is_one_job_of_several_groups() -> None:
    script = "#!/bin/sh\n#SBATCH -c 2\n#SBATCH hetjob\n#SBATCH -N2 --gres=gpu:8\n"

    groups = asked(script=script).spec.groups

    assert [(each.name, each.count) for each in groups] == [("main", 1), ("het1", 2)]


@pytest.mark.parametrize(
    ("argv", "text", "code"),
    [
        ("-t bogus", "sbatch: error: Invalid --time specification", 255),
        ("--mem=abc", "sbatch: error: Invalid --mem specification", 255),
        ("-n x", 'sbatch: error: Invalid numeric value "x" for --ntasks.', 1),
        ("-c 0", 'sbatch: error: Invalid numeric value "0" for --cpus-per-task.', 1),
        ("-N x", 'sbatch: error: "x" is not a valid node count', 255),
        ("--signal=FOO", "sbatch: error: Invalid --signal specification", 255),
        ("--open-mode=x", "sbatch: error: Invalid --open-mode specification", 255),
        ("--mail-type=x", "sbatch: error: Invalid --mail-type specification", 255),
        ("--mail-type=", "sbatch: error: Invalid --mail-type specification", 255),
        ("--mail-user=|reboot", "sbatch: error: Invalid --mail-user specification", 255),
        ("--exclusive=foo", "sbatch: error: Invalid --exclusive specification", 255),
        ("--gres=tpu:1", "sbatch: error: Invalid generic resource (gres) specification", 1),
        (
            "--gres=gpu:h100:1",
            (
                "sbatch: error: Batch job submission failed: "
                "Requested node configuration is not available"
            ),
            1,
        ),
        (
            "--array=0-200000",
            "sbatch: error: Batch job submission failed: Invalid job array specification",
            1,
        ),
        (
            "--begin=foo",
            "Invalid time specification (pos=0): foo\nsbatch: error: Invalid --begin specification",
            255,
        ),
        (
            "-p nosuch",
            (
                "sbatch: error: invalid partition specified: nosuch\n"
                "sbatch: error: Batch job submission failed: Invalid partition name specified"
            ),
            1,
        ),
    ],
)
def test_errors_are_in_slurms_words(argv: str, text: str, code: int) -> None:
    with pytest.raises(SlurmError) as caught:
        asked(*argv.split())

    assert (caught.value.text, caught.value.code) == (f"{text}\n", code)


def test_the_parts_of_an_array_depend_on_their_counterparts() -> None:
    after = asked("--array=1-2", "-d", "aftercorr:50").spec.after

    # The second has none, so that it waits for all.
    assert [(each.part, each.job) for each in after] == [(1, 51), (2, 50), (2, 51)]


def test_a_job_that_is_alone_on_its_nodes_has_all_of_them() -> None:
    (group,) = asked("--exclusive", "-n", "3").spec.groups
    (sliced,) = asked("--exclusive", "--gres=gpu:1g.5gb:1").spec.groups
    (shared,) = asked("--exclusive=user", "-n", "1").spec.groups
    node = next(iter(machines().nodes.values()))

    assert (group.count, group.each.cpu_milli) == (1, node.cpu_milli)
    assert group.each.gpus == GpuAsk(count=len(node.devices))
    assert sliced.each.gpus is not None
    assert sliced.each.gpus.count == 1
    assert shared.each.cpu_milli == 1_000


def test_a_whole_node_is_the_smallest_that_would_do() -> None:
    (small,) = machines(1).nodes.values()
    found = machines_of(
        {**machines(2).nodes, small.id: replace(small, cpu_milli=8_000, devices=())}
    )

    (bare,) = asked("--exclusive", on=found).spec.groups
    (many,) = asked("--exclusive", "-c", "9", on=found).spec.groups

    assert (bare.each.cpu_milli, bare.each.gpus) == (8_000, None)
    assert (many.each.cpu_milli, many.each.gpus) == (64_000, GpuAsk(count=8))


@pytest.mark.parametrize(
    ("argv", "priority", "held"),
    [
        (("--priority=12",), 12, False),
        (("--priority=12x",), 12, False),
        (("--priority=None",), 0, True),
        (("--priority=0",), 0, True),
        (("--priority=TOP",), 0, False),
        (("--nice=abc",), 0, False),
        (("--nice=5x",), -5, False),
        (("--nice",), -100, False),
    ],
)
def test_priorities_are_read_as_slurm_reads_them(
    argv: tuple[str, ...], priority: int, *, held: bool
) -> None:
    wanted = asked(*argv)

    assert (wanted.spec.priority, wanted.held) == (priority, held)


def test_a_priority_below_zero_is_refused() -> None:
    with pytest.raises(SlurmError):
        asked("--priority=-3")
