import pytest

from muster.lifecycle.pod_abilities import taken_by_pods
from muster.model.cluster import Ability
from muster.model.launch import Launch
from muster.model.pod import (
    CheckpointSeen,
    Container,
    EmptyFolder,
    Exec,
    Files,
    HostFolder,
    OfNode,
    PodGang,
    PodLaunch,
    Probe,
    Stage,
    TokenFile,
    Variable,
    Volume,
)
from muster.model.value import replace

MAIN = Container(name="main", image="python", entrypoint=("python",))
POD = PodLaunch(namespace="nlp", name="train", uid="1", containers=(MAIN,), hostname="train")


def taken(pod: PodLaunch) -> set[str]:
    """What it takes beside what every pod does."""
    return {each.value for each in taken_by_pods(Launch(pod=pod)) - {Ability.PODS}}


def holding(source: EmptyFolder | HostFolder | Files, name: str = "data") -> PodLaunch:
    return replace(POD, volumes=(Volume(name=name, source=source),))


def test_a_job_that_is_no_pod_takes_nothing() -> None:
    assert taken_by_pods(Launch(argv=("true",))) == frozenset()


def test_a_plain_pod_takes_no_more_than_running_pods() -> None:
    assert taken_by_pods(Launch(pod=POD)) == {Ability.PODS}


def test_the_token_that_every_pod_is_given_takes_nothing() -> None:
    token = Files(sources=(TokenFile(path="token"),))

    assert taken(holding(token, name="kube-api-access-x7z2q")) == set()
    assert taken(holding(token)) == {"volumes", "tokens"}


@pytest.mark.parametrize(
    ("container", "what"),
    [
        (replace(MAIN, entrypoint=None), "entrypoints"),
        (replace(MAIN, liveness=Probe(action=Exec(argv=("ls",)))), "probes"),
        (replace(MAIN, before_stop=Exec(argv=("ls",))), "probes"),
        (replace(MAIN, stop_signal="SIGUSR1"), "stop_signals"),
        (replace(MAIN, readiness=Probe(action=CheckpointSeen())), "checkpoint_probes"),
        (replace(MAIN, env=(Variable(name="N", value=OfNode(what="name")),)), "pod_addresses"),
        (replace(MAIN, user=0), "pod_users"),
        (replace(MAIN, tty=True), "pod_input"),
        (replace(MAIN, stage=Stage.SIDECAR), "containers"),
    ],
)
def test_what_a_container_has_beside_a_command_is_named(container: Container, what: str) -> None:
    assert taken(replace(POD, containers=(container,))) == {what}


def test_what_a_pod_has_beside_one_container_is_named() -> None:
    assert taken(replace(POD, containers=(MAIN, replace(MAIN, name="log")))) == {"containers"}
    assert taken(holding(EmptyFolder())) == {"volumes"}
    assert taken(holding(HostFolder(path="/data"))) == {"host_paths"}
    assert taken(replace(POD, volume_group=5)) == {"pod_users"}
    assert taken(replace(POD, aliases=(("db", "10.0.0.1"),))) == {"pod_addresses"}


def test_the_names_by_which_pods_of_a_gang_find_each_other_are_ours_to_give() -> None:
    names = (("train-0", "127.0.0.1"), ("train-1", "127.0.0.1"))
    pods = tuple(replace(POD, hostname=name, aliases=names) for name, _ in names)

    found = taken_by_pods(Launch(pod=pods[0], gang=PodGang(pods=pods)))

    assert found == {Ability.PODS, Ability.POD_GANGS}
