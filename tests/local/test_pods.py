"""Pods on this machine: real containers, as the person's own processes, in the job's groups."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from containers.images import IMAGE, MODEST, ONLY_IN_THE_IMAGE, Podman, own_podman
from local.here import Here, Wanted, run_of
from muster.backends.base import Stop, Supply
from muster.backends.local.pods import places
from muster.model.event import JobEnded, PodSeen
from muster.model.job import Cancelled, Exited, LaunchFailed, OutOfMemory
from muster.model.launch import Checkpointing, Launch
from muster.model.pod import (
    CheckpointSeen,
    Container,
    ContainerStatus,
    EmptyFolder,
    Exec,
    FileOf,
    Files,
    HostFolder,
    KeyOf,
    KeysAsFiles,
    Mount,
    Phase,
    PodLaunch,
    Probe,
    Pull,
    Restart,
    SourceKind,
    Stage,
    TcpConnect,
    Text,
    TextsAsFiles,
    Variable,
    VariablesOf,
    Volume,
)
from muster.model.value import Duration, JobId, UserName, replace

pytestmark = pytest.mark.slow

CANCELLED = Cancelled(by=UserName("ann"))
SHARED = Volume(name="w", source=EmptyFolder())
AT_W = Mount(volume="w", path="/w")


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with own_podman() as found:
        yield found


@pytest.fixture
def inside(podman: Podman, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    """This machine, with a podman that knows the image."""
    monkeypatch.setenv("MUSTER_PODMAN_OPTIONS", f"{' '.join(podman.folders)} {MODEST}")
    here = Here(home)
    here.work.chmod(0o777)
    here.adopts()
    yield here
    here.leaves()


def shell(text: str, name: str = "main") -> Container:
    return Container(name=name, image=IMAGE, entrypoint=("sh", "-c"), args=(text,))


def a_pod(*containers: Container, restart: Restart = Restart.NEVER) -> PodLaunch:
    return PodLaunch(
        namespace="team",
        name="p",
        uid="u",
        containers=containers,
        volumes=(SHARED,),
        restart=restart,
        grace_s=2,
        hostname="p",
    )


def starts(here: Here, pod: PodLaunch, wanted: Wanted | None = None) -> None:
    here.run(Launch(argv=("x",), pod=pod), wanted or Wanted(user="daemon", memory_mib=512))


def status(here: Here, name: str = "main") -> ContainerStatus:
    seen = [each for each in here.heard if isinstance(each, PodSeen)]
    found = seen[-1].status.of(name) if seen else None
    return found or ContainerStatus(name=name)


def becomes(here: Here, is_so: Callable[[ContainerStatus], bool], name: str = "main") -> None:
    here.until(lambda: is_so(status(here, name)))


def log(here: Here, name: str = "main", run: int = 0) -> list[str]:
    """What a container wrote, without the times."""
    path = places.log_path(here.home, "1.1", name, run)
    return [line.split(" ", 3)[3] for line in path.read_text().splitlines()]


def notes(here: Here) -> list[tuple[str, str]]:
    seen = [each for each in here.heard if isinstance(each, PodSeen)]
    return [(each.reason, each.text) for each in seen[-1].status.notes]


LINES = "-----BEGIN-----\nabc=\n-----END-----\n"


def test_values_of_several_lines_arrive(inside: Here, podman: Podman) -> None:
    said = (
        Variable(name="KEY", value=Text(value=LINES)),
        Variable(name="A", value=Text(value="1")),
    )
    main = replace(shell('echo "$KEY$A"'), env=said)

    starts(inside, a_pod(main))

    assert inside.ends().why == Exited(code=0)
    assert log(inside) == [*LINES.splitlines(), "1"]
    assert podman.asks("secret", "ls", "--noheading") == ""


def test_a_pod_may_say_where_programs_are_found(inside: Here) -> None:
    said = (
        Variable(name="PATH", value=Text(value="/none:/bin")),
        Variable(name="TMPDIR", value=Text(value="/none")),
    )

    starts(inside, a_pod(replace(shell("echo $PATH $TMPDIR"), env=said)))

    assert inside.ends().why == Exited(code=0)
    assert log(inside) == ["/none:/bin /none"]


def test_a_container_runs_as_the_person_who_created_it(inside: Here, podman: Podman) -> None:
    says = f"cat {ONLY_IN_THE_IMAGE}; id -u; echo $A $HOSTNAME >&2"
    main = shell(f"{says}; echo bye > /dev/termination-log")
    variables = (
        Variable(name="B", value=Text(value="x")),
        Variable(name="A", value=Text(value="$(B)-$$")),
    )

    starts(inside, a_pod(replace(main, env=variables)))

    assert inside.ends().why == Exited(code=0)
    assert log(inside) == ["only the image has this", "1", "x-$ p"]
    ended = status(inside).ended
    assert ended is not None
    assert (ended.code, ended.message) == (0, "bye\n")
    assert [reason for reason, _ in notes(inside)] == ["Pulled", "Created", "Started"]
    assert podman.asks("ps", "--all", "--format", "{{.Names}}") == ""
    assert not places.folder_of(inside.home, "1.1").exists()


def test_first_ones_come_first_and_sidecars_stay_beside_the_others(inside: Here) -> None:
    first = replace(shell("echo one > /w/x", "one"), stage=Stage.INIT, mounts=(AT_W,))
    side = replace(shell("while true; do sleep 0.1; done", "side"), stage=Stage.SIDECAR)
    main = replace(shell("cat /w/x; echo two > /w/y"), mounts=(AT_W,))

    starts(inside, a_pod(first, side, main))

    assert inside.ends().why == Exited(code=0)
    assert log(inside) == ["one"]
    assert status(inside, "one").phase is Phase.ENDED
    assert status(inside, "side").phase is Phase.ENDED


def test_a_container_that_fails_is_started_again(inside: Here) -> None:
    main = replace(
        shell("if [ -f /w/x ]; then exit 0; fi; touch /w/x; echo no; exit 3"), mounts=(AT_W,)
    )

    starts(inside, a_pod(main, restart=Restart.ON_FAILURE))

    assert inside.ends().why == Exited(code=0)
    found = status(inside)
    assert found.restarts == 1
    assert found.last is not None
    assert found.last.code == 3
    assert log(inside, run=0) == ["no"]


def test_a_pod_ends_as_its_containers_do(inside: Here) -> None:
    starts(inside, a_pod(shell("exit 7"), shell("true", "other")))

    assert inside.ends().why == Exited(code=7)


def test_who_needs_more_memory_than_it_has_is_killed_for_it(inside: Here) -> None:
    main = replace(shell("x=a; while true; do x=$x$x; done"), memory_mib=32)

    starts(inside, a_pod(main))

    assert isinstance(inside.ends().why, OutOfMemory)
    ended = status(inside).ended
    assert ended is not None
    assert ended.signal == 125


def test_what_sources_hold_is_found_in_variables_and_files(inside: Here) -> None:
    secret = KeyOf(kind=SourceKind.SECRET, name="sec", key="pw")
    cfg = KeysAsFiles(kind=SourceKind.CONFIG_MAP, name="cfg")
    labels = TextsAsFiles(files=(FileOf(path="labels", value=Text(value='app="x"')),))
    volume = Volume(name="c", source=Files(sources=(cfg, labels), mode=0o440))
    main = replace(
        shell("echo $PW $C_lr; cat /c/lr /c/labels; test -w /c/lr || echo read-only"),
        env=(Variable(name="PW", value=secret),),
        env_of=(VariablesOf(kind=SourceKind.CONFIG_MAP, name="cfg", prefix="C_"),),
        mounts=(Mount(volume="c", path="/c", read_only=True),),
    )
    pod = replace(a_pod(main), volumes=(volume,))
    sent = run_of(Launch(argv=("x",), pod=pod), Wanted(user="daemon"))

    inside.backend.do(
        replace(sent, supplies={"configmap/cfg": {"lr": b"0.1"}, "secret/sec": {"pw": b"hunter2"}})
    )

    assert inside.ends().why == Exited(code=0)
    assert log(inside) == ["hunter2 0.1", '0.1app="x"read-only']


def test_a_container_waits_for_what_is_missing(inside: Here) -> None:
    main = replace(
        shell("echo $A"),
        env=(Variable(name="A", value=KeyOf(kind=SourceKind.CONFIG_MAP, name="m", key="k")),),
    )

    starts(inside, a_pod(main))
    becomes(inside, lambda found: found.reason == "CreateContainerConfigError")
    assert ("Failed", 'Error: configmap "m" not found') in notes(inside)
    supply(inside, {"configmap/m": {"k": b"there"}})

    assert inside.ends().why == Exited(code=0)
    assert log(inside) == ["there"]


def test_a_container_is_ready_when_its_probe_says_so(inside: Here) -> None:
    probe = Probe(action=Exec(argv=("cat", "/w/ready")), period_s=1)
    main = replace(
        shell("sleep 0.7; touch /w/ready; while true; do sleep 0.1; done"),
        readiness=probe,
        mounts=(AT_W,),
    )

    starts(inside, a_pod(main))
    becomes(inside, lambda found: found.phase is Phase.RUNNING)
    assert not status(inside).ready
    becomes(inside, lambda found: found.ready)

    assert any(reason == "Unhealthy" for reason, _ in notes(inside))
    stop(inside)
    assert inside.ends().why == CANCELLED


def test_who_does_not_answer_is_started_again(inside: Here) -> None:
    probe = Probe(action=TcpConnect(port=1), period_s=1, failures=1)
    main = replace(shell("while true; do sleep 0.1; done"), liveness=probe)

    starts(inside, a_pod(main, restart=Restart.ALWAYS))
    becomes(inside, lambda found: found.restarts == 1)

    assert ("Killing", "Container main failed liveness probe, will be restarted") in notes(inside)
    stop(inside)
    assert inside.ends().why == CANCELLED


def test_a_pod_that_trains_is_ready_when_it_has_written_a_checkpoint(inside: Here) -> None:
    main = replace(
        shell("echo x > /w/model.ckpt; while true; do sleep 0.1; done"),
        readiness=Probe(action=CheckpointSeen(), period_s=1),
        mounts=(Mount(volume="w", path="/w"),),
    )
    folder = inside.work
    on_host = Volume(name="w", source=HostFolder(path=str(folder)))
    pod = replace(a_pod(main), volumes=(on_host,))
    launch = Launch(argv=("x",), pod=pod, checkpoint=Checkpointing(path=str(folder / "model.ckpt")))

    inside.run(launch, Wanted(user="daemon"))

    becomes(inside, lambda found: found.ready)
    stop(inside)
    assert inside.ends().why == CANCELLED


def test_a_pod_is_asked_to_end_and_then_ended(inside: Here) -> None:
    polite = shell(
        "trap 'echo leaving; exit 0' TERM; echo up; while true; do sleep 0.05; done", "polite"
    )
    deaf = shell("trap '' TERM; echo up; while true; do sleep 0.05; done", "deaf")
    hook = Exec(argv=("sh", "-c", "echo hooked > /w/hook"))
    polite = replace(polite, before_stop=hook, mounts=(AT_W,))

    starts(inside, a_pod(polite, deaf))
    becomes(inside, lambda found: found.phase is Phase.RUNNING, "polite")
    becomes(inside, lambda found: found.phase is Phase.RUNNING, "deaf")
    inside.until(lambda: log(inside, "polite") == log(inside, "deaf") == ["up"])
    stop(inside)

    assert inside.ends().why == CANCELLED
    assert log(inside, "polite") == ["up", "leaving"]
    assert ("Killing", "Stopping container deaf") in notes(inside)


def test_a_pod_that_nothing_else_wakes_is_told_to_end_at_once(inside: Here) -> None:
    main = shell("trap 'exit 0' TERM; echo up; while true; do sleep 0.05; done")

    starts(inside, replace(a_pod(main), grace_s=600))
    becomes(inside, lambda found: found.phase is Phase.RUNNING)
    inside.until(lambda: log(inside) == ["up"])
    inside.backend.do(Stop(job=JobId(1), attempt=1, why=CANCELLED, grace=Duration(600_000)))

    assert inside.ends().why == CANCELLED


def test_an_image_that_is_not_there_is_waited_for(inside: Here) -> None:
    main = replace(shell("true"), image="local/nosuch:1", pull=Pull.NEVER)

    starts(inside, a_pod(main))
    becomes(inside, lambda found: found.reason == "ErrImageNeverPull")

    stop(inside)
    assert inside.ends().why == CANCELLED


def test_a_command_that_is_not_there_is_an_error_of_its_own(inside: Here) -> None:
    main = Container(name="main", image=IMAGE, entrypoint=("/no/such/program",))

    starts(inside, a_pod(main))

    assert inside.ends().why == Exited(code=128)
    ended = status(inside).ended
    assert ended is not None
    assert ended.reason == "StartError"
    assert "/no/such/program" in ended.message


def test_containers_share_the_limits_of_the_job(inside: Here) -> None:
    main = shell("cat /proc/self/cgroup")

    starts(inside, a_pod(main), Wanted(user="daemon", memory_mib=256))

    assert inside.ends().why == Exited(code=0)
    assert any("/1.1/ctr-main-0/" in line for line in log(inside))


def test_without_containers_commands_run_on_the_machine_where_that_is_allowed(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = here.home / "empty"
    nowhere.mkdir()
    monkeypatch.setenv("PATH", str(nowhere))
    pod = a_pod(
        Container(
            name="main",
            image="any:1",
            entrypoint=("/bin/sh", "-c"),
            args=("/usr/bin/id -un; exit 4",),
        )
    )
    refused = run_of(Launch(argv=("x",), pod=pod), Wanted(user="daemon"))
    allowed = run_of(Launch(argv=("x",), pod=pod), Wanted(user="daemon", job=2))

    here.backend.do(refused)
    here.backend.do(replace(allowed, images_on_host=True))

    assert isinstance(here.sees(JobEnded, 1).why, LaunchFailed)
    assert here.sees(JobEnded, 2).why == Exited(code=4)
    path = places.log_path(here.home, "2.1", "main", 0)
    assert path.read_text().endswith(" stdout F daemon\n")


def supply(here: Here, sources: dict[str, dict[str, bytes] | None]) -> None:
    here.backend.do(Supply(job=JobId(1), attempt=1, sources=sources))


def stop(here: Here) -> None:
    here.backend.do(Stop(job=JobId(1), attempt=1, why=CANCELLED, grace=Duration(5_000)))
