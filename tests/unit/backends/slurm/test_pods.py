import subprocess
from pathlib import Path

import pytest

from muster.backends.attempts import Look, Phase
from muster.backends.notes import NotedPod
from muster.backends.slurm.images import Containers
from muster.backends.slurm.listing import Key
from muster.backends.slurm.pods import (
    NotPlainError,
    Tale,
    end_of,
    log_lines,
    noted,
    status_of,
    tale_of,
)
from muster.backends.slurm.submission import Manner, submission
from muster.launch.pods.variables import MissingError
from muster.model.job import Exited, OutOfMemory, Signaled
from muster.model.launch import Launch
from muster.model.pod import (
    Container,
    EmptyFolder,
    KeyOf,
    PodGang,
    PodLaunch,
    Restart,
    SourceKind,
    Text,
    Variable,
    VariablesOf,
    Volume,
)
from muster.model.pod import Phase as ContainerPhase
from muster.model.value import Instant, NodeId, replace
from unit.backends.slurm.given import run

KEY = Key(site="here", job=7, attempt=1)
MAIN = Container(name="main", image="python:3.12", entrypoint=("sh", "-c"), args=("exit 3",))
POD = PodLaunch(
    namespace="nlp",
    name="train",
    uid="1",
    containers=(MAIN,),
    hostname="train",
    restart=Restart.NEVER,
)
NOTED = NotedPod(container="main", image="python:3.12")
RUNS = Look(phase=Phase.RUNS, started_at=Instant(1_000))
NOW = Instant(9_000)


def launch(first: PodLaunch, *others: PodLaunch, leader: int | None = None) -> Launch:
    gang = PodGang(pods=(first, *others), leader=leader) if others else None
    return Launch(pod=first, gang=gang, image=MAIN.image)


def over(why: Exited | Signaled | OutOfMemory) -> Look:
    return Look(phase=Phase.OVER, started_at=Instant(1_000), ended_at=Instant(5_000), why=why)


def ran(home: Path, container: Container, **known: object) -> Path:
    """What runs in its place, run here; returns the folder with what it wrote."""
    pod = replace(POD, containers=(container,), **known)
    asked = submission(run(launch(pod), ("n1", 1)), KEY, Manner())
    env = {**asked.env, "HOME": str(home), "PATH": "/usr/bin:/bin", "SLURM_PROCID": "0"}
    subprocess.run(["/bin/sh", "-c", asked.script], env=env, check=False)  # noqa: S603
    return home / ".muster" / "pods" / "here.7.1"


def test_a_container_writes_its_log_and_its_end_where_its_user_can_read(tmp_path: Path) -> None:
    folder = ran(tmp_path, replace(MAIN, args=("echo out; echo err >&2; exit 3",)))

    assert (folder / "0.0.log").read_text() == "out\nerr\n"
    tale = tale_of((folder / "0.runs").read_bytes())
    assert [each.code for each in tale.runs] == [3]
    assert tale.over
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_container_that_failed_runs_again_where_its_pod_wants_that(tmp_path: Path) -> None:
    text = f"test -e {tmp_path}/seen && exit 0; touch {tmp_path}/seen; exit 4"

    folder = ran(tmp_path, replace(MAIN, args=(text,)), restart=Restart.ON_FAILURE)

    assert [each.code for each in tale_of((folder / "0.runs").read_bytes()).runs] == [4, 0]
    assert (folder / "0.1.log").exists()


def test_values_are_not_on_a_command_line() -> None:
    key = KeyOf(kind=SourceKind.SECRET, name="key", key="token")
    pod = replace(POD, containers=(replace(MAIN, env=(Variable(name="TOKEN", value=key),)),))
    placed = replace(
        run(launch(pod), ("n1", 1)), supplies={"secret/key": {"token": b"s3cret $HOME"}}
    )

    asked = submission(placed, KEY, Manner())

    assert "s3cret" not in asked.script + " ".join(asked.options)
    assert "export TOKEN='s3cret $HOME'" in asked.env["MUSTER_POD_0"]


def test_a_pod_that_names_what_is_not_there_does_not_begin() -> None:
    bulk = VariablesOf(kind=SourceKind.CONFIG_MAP, name="rates")
    pod = replace(POD, containers=(replace(MAIN, env_of=(bulk,)),))

    with pytest.raises(MissingError, match='configmap "rates" not found'):
        submission(run(launch(pod), ("n1", 1)), KEY, Manner())


def test_what_slurm_does_not_do_is_never_left_out_in_silence() -> None:
    pod = replace(POD, volumes=(Volume(name="scratch", source=EmptyFolder()),))

    with pytest.raises(NotPlainError, match="volumes"):
        submission(run(launch(pod), ("n1", 1)), KEY, Manner())


def test_pods_of_a_gang_know_each_other_by_the_names_of_their_nodes() -> None:
    address = Variable(name="MASTER_ADDR", value=Text(value="train-master-0:29500"))
    container = replace(MAIN, env=(address,), args=("see train-master-0 not my-train-master-01",))
    pods = tuple(
        replace(POD, hostname=name, containers=(container,))
        for name in ("train-master-0", "train-worker-0")
    )

    asked = submission(run(launch(*pods, leader=0), ("n1", 1), ("n2", 1)), KEY, Manner())

    for rank in (0, 1):
        own = asked.env[f"MUSTER_POD_{rank}"]
        assert "export MASTER_ADDR=n1:29500" in own
        assert "'see n1 not my-train-master-01'" in own
    assert asked.env["MUSTER_POD_0"].endswith("counts=1\n")
    assert asked.env["MUSTER_POD_1"].endswith("counts=\n")


def test_an_image_is_entered_by_each_run_of_the_container() -> None:
    pod = replace(POD, containers=(replace(MAIN, workdir="/work dir"),))
    placed = run(launch(pod), ("n1", 1))

    by_apptainer = submission(placed, KEY, Manner(containers=Containers.APPTAINER))
    by_pyxis = submission(placed, KEY, Manner(containers=Containers.PYXIS))

    own = by_apptainer.env["MUSTER_POD_0"]
    assert "exec apptainer exec --nv -- docker://python:3.12 /bin/sh -c" in own
    assert "'/work dir' sh -c 'exit 3'" in own
    assert "exec srun --ntasks=1 --container-image=python:3.12" in by_pyxis.env["MUSTER_POD_0"]
    assert not any("container" in each for each in by_pyxis.options)


def test_a_pod_is_as_slurm_says_where_nothing_is_written() -> None:
    status = status_of(NOTED, Tale(), RUNS, NOW)

    assert status is not None
    assert status.containers[0].phase is ContainerPhase.RUNNING
    assert status.containers[0].at == 1_000
    assert status_of(NOTED, Tale(), Look(phase=Phase.WAITS), NOW) is None


@pytest.mark.parametrize(
    ("why", "code", "signal"),
    [(Exited(code=3), 3, 0), (Signaled(signal=9), 0, 9), (OutOfMemory(node=NodeId("n1")), 0, 125)],
)
def test_a_run_that_could_not_write_its_end_ended_as_the_job_did(
    why: Exited | Signaled | OutOfMemory, code: int, signal: int
) -> None:
    status = status_of(NOTED, tale_of(b"began 1200\n"), over(why), NOW)

    assert status is not None
    assert status.over
    ended = status.containers[0].ended
    assert ended is not None
    assert (ended.began_at, ended.ended_at) == (1_200, 5_000)
    assert (ended.code, ended.signal) == (code, signal)


def test_a_run_after_the_first_is_counted_and_the_one_before_is_told() -> None:
    status = status_of(NOTED, tale_of(b"began 1200\nended 1300 4\nbegan 1400\n"), RUNS, NOW)

    assert status is not None
    (container,) = status.containers
    assert (container.restarts, container.phase) == (1, ContainerPhase.RUNNING)
    assert container.last is not None
    assert container.last.code == 4


def test_between_two_runs_a_container_has_ended_and_its_pod_has_not() -> None:
    status = status_of(NOTED, tale_of(b"began 1200\nended 1300 4\n"), RUNS, NOW)

    assert status is not None
    assert status.containers[0].phase is ContainerPhase.ENDED
    assert not status.over


def test_what_users_write_into_the_file_is_held_to_its_form() -> None:
    lines = (
        b"ended 5 1\nbegan x\nbegan 99999999999999999999\nover\n\xff\xfe\nbegan 7\nended 8 999\n"
    )

    tale = tale_of(lines)

    assert [each.began_at for each in tale.runs] == [7]
    assert tale.goes_on
    assert not tale.over


def test_a_gang_ends_as_its_leader_did() -> None:
    leader = tale_of(b"began 1200\nended 1300 0\nover\n")

    assert end_of(leader, over(Signaled(signal=15))).why == Exited(code=0)
    assert end_of(Tale(), over(Signaled(signal=15))).why == Signaled(signal=15)
    assert end_of(leader, RUNS) == RUNS


def test_a_log_is_shown_line_by_line_and_its_last_words_once_they_are_the_last() -> None:
    head = b"1970-01-01T00:00:01.000000000Z stdout "

    assert log_lines(b"one\ntw", Instant(1_000), is_whole=False) == head + b"F one\n"
    assert log_lines(b"one\ntw", Instant(1_000), is_whole=True).endswith(head + b"P tw\n")


def test_a_pod_without_its_token_is_told_so() -> None:
    status = status_of(replace(NOTED, without_token=True), Tale(), RUNS, NOW)

    assert status is not None
    assert [each.reason for each in status.notes] == ["NoToken"]
    assert noted(launch(POD)) == (NOTED,)
