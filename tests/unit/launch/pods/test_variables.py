import pytest

from muster.launch.pods.variables import (
    File,
    MissingError,
    NodeFacts,
    command,
    environment,
    expanded,
    files_of,
    wanted_sources,
)
from muster.model.pod import (
    Container,
    FileOf,
    Files,
    KeyOf,
    KeysAsFiles,
    OfNode,
    PodLaunch,
    SourceKind,
    Text,
    TextsAsFiles,
    TokenFile,
    Variable,
    VariablesOf,
    Volume,
)

NODE = NodeFacts(name="n1", ip="10.0.0.1", cpu_milli=2_500, memory_mib=64)
CFG, SEC = SourceKind.CONFIG_MAP, SourceKind.SECRET
SOURCES = {"configmap/cfg": {"lr": b"0.1", "a b": b"x"}, "secret/sec": {"pw": b"hunter2"}}


def a_container(*env: Variable, env_of: tuple[VariablesOf, ...] = ()) -> Container:
    return Container(name="a", image="i", env=env, env_of=env_of)


def test_variables_come_from_texts_keys_and_the_node() -> None:
    container = a_container(
        Variable(name="PLAIN", value=Text(value="1")),
        Variable(name="EXPANDED", value=Text(value="got-$(PLAIN) $(NOPE) $$(ESC)")),
        Variable(name="PW", value=KeyOf(kind=SEC, name="sec", key="pw")),
        Variable(name="OPT", value=KeyOf(kind=CFG, name="ghost", key="x", optional=True)),
        Variable(name="NODE", value=OfNode(what="name")),
        Variable(name="CPU", value=OfNode(what="cpu", divisor=1_000)),
        Variable(name="MEM", value=OfNode(what="memory", divisor=1 << 20)),
        env_of=(VariablesOf(kind=CFG, name="cfg", prefix="C_"),),
    )

    assert environment(container, SOURCES, NODE, {"GIVEN": "g"}) == {
        "GIVEN": "g",
        "C_lr": "0.1",
        "PLAIN": "1",
        "EXPANDED": "got-1 $(NOPE) $(ESC)",
        "PW": "hunter2",
        "NODE": "n1",
        "CPU": "3",
        "MEM": "64",
    }


def test_names_of_variables_may_begin_with_digits() -> None:
    container = a_container(env_of=(VariablesOf(kind=CFG, name="cfg", prefix="1-"),))

    assert environment(container, SOURCES, NODE, {})["1-lr"] == "0.1"


def test_what_is_missing_is_named() -> None:
    nothing = a_container(Variable(name="A", value=KeyOf(kind=CFG, name="ghost", key="x")))
    no_key = a_container(Variable(name="A", value=KeyOf(kind=SEC, name="sec", key="x")))
    bulk = a_container(env_of=(VariablesOf(kind=SEC, name="ghost"),))

    for container, told in (
        (nothing, 'configmap "ghost" not found'),
        (no_key, "couldn't find key x in Secret sec"),
        (bulk, 'secret "ghost" not found'),
    ):
        with pytest.raises(MissingError) as missing:
            environment(container, SOURCES, NODE, {})
        assert str(missing.value) == told


def test_commands_have_variables_in_them() -> None:
    container = Container(name="a", image="i", entrypoint=("run", "$(A)"), args=("$(B)",))

    assert command(container, {"A": "1"}) == (("run", "1"), ("$(B)",))
    assert expanded("$$$(A)", {"A": "1"}) == "$1"


def test_files_come_from_keys_texts_and_tokens() -> None:
    volume = Files(
        sources=(
            KeysAsFiles(kind=CFG, name="cfg"),
            TextsAsFiles(files=(FileOf(path="labels", value=Text(value="x"), mode=0o400),)),
            TokenFile(path="token", audience="api"),
        ),
        mode=0o640,
    )

    found = files_of(volume, {**SOURCES, "token/api": {"token": b"t"}}, NODE)

    assert found == (
        File(path="a b", content=b"x", mode=0o640),
        File(path="labels", content=b"x", mode=0o400),
        File(path="lr", content=b"0.1", mode=0o640),
        File(path="token", content=b"t", mode=0o600),
    )


def test_a_pod_names_what_must_be_supplied_to_it() -> None:
    volume = Files(sources=(KeysAsFiles(kind=CFG, name="m"), TokenFile(path="t")))
    pod = PodLaunch(
        namespace="n",
        name="p",
        uid="u",
        containers=(
            a_container(
                Variable(name="A", value=KeyOf(kind=SEC, name="s", key="k")),
                env_of=(VariablesOf(kind=CFG, name="e"),),
            ),
        ),
        volumes=(Volume(name="v", source=volume),),
    )

    assert wanted_sources(pod) == ("secret/s", "configmap/e", "configmap/m", "token/")
