"""Every request a job can make is reachable through every door."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import pytest

from muster.api.requests import GroupDocument, JobFile, SubmitDocument
from muster.client.sending import Origin, sent
from muster.client.submitting import asked_for
from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.submit.command import submit
from muster.doors.cli.submit.work import work_of
from muster.doors.cli.surroundings import Call, Surroundings
from muster.doors.kubernetes.pods.defaults import defaulted
from muster.doors.kubernetes.pods.job_of import NOT_OF_PODS, OUR_PREFIX, PodWorld, job_of
from muster.doors.request.job_file import job_file_from
from muster.doors.request.parse import Submitter, Wanted, wanted
from muster.doors.request.table import Field, FieldType, fields_of, is_pairs
from muster.model.job import JobSpec
from muster.model.value import QueuePath, UserName, Value
from unit.doors.slurm.asked import NOW, asked

BY = Submitter(user=UserName("bob"), queue=QueuePath("default"), now=NOW)
HERE = Origin(workdir="/home/bob", environ={}, umask=0o022, zone=UTC)
FIELDS = fields_of(JobFile)

OTHERWISE = {
    "launch.terminal": "`muster run` asks for one where its user sits",
    "array": "the server makes it of the indices",
    "launch.submit_line": "what was typed, for Slurm's lists",
    "launch.script_line": "what was typed, for Slurm's lists",
    "launch.pod": "the containers of a pod, which the Kubernetes door makes",
    "launch.gang": "the pods of a gang, which the Kubernetes door makes",
    "launch.adopts": "the pods of others on a Kubernetes cluster, which are taken over there",
    "takes": "what all of it needs of a cluster, which is worked out from the rest",
}
"""Parts of a spec that no row sets, and why."""

NOT_IN_THE_SPEC = {"array", "held", "env_only"}
WITHOUT_OPTION = {"groups", "command", "script"}
"""What runs is said by other means; several groups by a job file, or by components in Slurm."""

BESIDE = {
    "gpu_models": {"gpus": "1"},
    "gpu_memory": {"gpus": "1"},
    "slice": {"gpus": "1"},
    "checkpoint_signal": {"checkpoint": "there"},
}
"""What has to be said with a field so that it makes sense."""

SAID = sorted(FIELDS.keys() - WITHOUT_OPTION - {"env_only"})


def test_every_part_of_a_spec_has_a_row() -> None:
    documents = (JobFile, GroupDocument)
    rows = [field.row for each in documents for field in fields_of(each).values()]
    ways = {way for row in rows for way in row.into.split()} - {"groups"}

    missing = [leaf for leaf in leaves(JobSpec) if not any(is_within(leaf, way) for way in ways)]

    assert [leaf for leaf in missing if not any(is_within(leaf, way) for way in OTHERWISE)] == []
    assert [way for way in OTHERWISE if not any(is_within(leaf, way) for leaf in missing)] == []


def test_every_row_leads_into_the_spec() -> None:
    places = set(leaves(JobSpec))

    lost = {
        name: field.row.into
        for name, field in FIELDS.items()
        for way in field.row.into.split()
        if not any(is_within(leaf, way) or is_within(way, leaf) for leaf in places)
    }

    assert lost == {}
    assert {name for name, field in FIELDS.items() if not field.row.into} == NOT_IN_THE_SPEC
    assert {name for name, field in FIELDS.items() if not field.options} == WITHOUT_OPTION


def test_rest_takes_every_field_that_people_write() -> None:
    assert FIELDS.keys() - fields_of(SubmitDocument).keys() == {"env_only"}


@pytest.mark.parametrize("name", SAID)
def test_a_request_comes_to_the_same_through_every_door(name: str, tmp_path: Path) -> None:
    field, said = FIELDS[name], {**BESIDE.get(name, {}), name: FIELDS[name].row.example}
    plain = wanted(sent(JobFile(command=("true",)), HERE), BY)
    by_rest = wanted(sent(JobFile(command=("true",), **fields(said)), HERE), BY)

    assert found(field, by_rest) != found(field, plain)
    for door, ask in DOORS.items():
        if ask is pod_annotations and name in NOT_OF_PODS:
            continue
        through = found(field, ask(said, tmp_path))
        assert all(map(holds, through, found(field, by_rest))), door


def python_keywords(said: Mapping[str, str], _: Path) -> Wanted:
    return wanted(sent(asked_for(["true"], fields(said)), HERE), BY)


def job_file(said: Mapping[str, str], _: Path) -> Wanted:
    text = "command: [true]\n" + "".join(
        f"{name}: {yaml_text(FIELDS[name], value)}\n" for name, value in said.items()
    )
    return wanted(sent(job_file_from(text, "job.yaml").job, HERE), BY)


def command_line(said: Mapping[str, str], _: Path) -> Wanted:
    return typed([*options(said), "--", "true"])


def muster_lines(said: Mapping[str, str], folder: Path) -> Wanted:
    return typed([script(folder, "", said)])


def beside_pbs_lines(said: Mapping[str, str], folder: Path) -> Wanted:
    return typed([script(folder, "#PBS -l select=1:ncpus=2\n", said)])


def beside_lsf_lines(said: Mapping[str, str], folder: Path) -> Wanted:
    return typed([script(folder, "#BSUB -n 2\n", said)])


def over_pbs_lines(said: Mapping[str, str], folder: Path) -> Wanted:
    return typed([*options(said), script(folder, "#PBS -l select=1:ncpus=2\n", {})])


def sbatch_option(said: Mapping[str, str], _: Path) -> Wanted:
    return asked(*(f"--muster={word.removeprefix('--')}" for word in options(said)))


def sbatch_lines(said: Mapping[str, str], _: Path) -> Wanted:
    return asked(script=f"#!/bin/sh\n#SBATCH -c 2\n{lines(said)}true\n")


def submit_over_sbatch_lines(said: Mapping[str, str], folder: Path) -> Wanted:
    """`muster submit --gpus 2 x.sh`: what is sent says to sbatch what was typed."""
    context = typed_context([*options(said), script(folder, "#SBATCH -c 2\n", {})])
    document = work_of(context).document
    assert document.sbatch is not None
    *words, _ = document.sbatch
    return asked(*words, script=document.script or "")


def pod_annotations(said: Mapping[str, str], _: Path) -> Wanted:
    notes = {
        f"{OUR_PREFIX}{FIELDS[name].options[-1].removeprefix('--')}": (
            "true" if FIELDS[name].type is FieldType.FLAG else value
        )
        for name, value in said.items()
    }
    container = {"name": "main", "image": "i"}
    metadata = {"name": "p", "annotations": notes}
    return job_of(defaulted({"metadata": metadata, "spec": {"containers": [container]}}), POD_WORLD)


POD_WORLD = PodWorld(by=BY, origin=HERE)


DOORS: Mapping[str, Callable[[Mapping[str, str], Path], Wanted]] = {
    door.__name__: door
    for door in (
        python_keywords,
        job_file,
        command_line,
        muster_lines,
        beside_pbs_lines,
        beside_lsf_lines,
        over_pbs_lines,
        sbatch_option,
        sbatch_lines,
        submit_over_sbatch_lines,
        pod_annotations,
    )
}


def fields(said: Mapping[str, str]) -> dict[str, Any]:
    """Examples as values of fields, as a program would write them."""
    return {name: value_of(FIELDS[name], text) for name, text in said.items()}


def value_of(field: Field, text: str) -> Any:
    match field.type:
        case FieldType.FLAG:
            return text == "true"
        case FieldType.INTEGER:
            return int(text, 8 if field.row.reads == "octal" else 10)
        case FieldType.NUMBER:
            return float(text)
        case FieldType.TEXTS:
            return tuple(text.split(","))
        case FieldType.PAIRS:
            return dict([text.split("=", 1)])
        case FieldType.TEXT | FieldType.GROUPS:
            return text


def yaml_text(field: Field, text: str) -> str:
    if field.type is FieldType.PAIRS:
        name, _, value = text.partition("=")
        return f"{{{name}: {value}}}"
    return f'"{text}"' if field.type is FieldType.TEXT else text


def options(said: Mapping[str, str]) -> list[str]:
    return [
        FIELDS[name].options[-1] + ("" if FIELDS[name].type is FieldType.FLAG else f"={value}")
        for name, value in said.items()
    ]


def lines(said: Mapping[str, str]) -> str:
    return "".join(f"#MUSTER {word}\n" for word in options(said))


def script(folder: Path, others: str, said: Mapping[str, str]) -> str:
    path = folder / "job.sh"
    path.write_text(f"#!/bin/sh\n{others}{lines(said)}true\n", encoding="utf-8")
    return str(path)


def typed(words: list[str]) -> Wanted:
    return wanted(work_of(typed_context(words)).document, BY)


def typed_context(words: list[str]) -> click.Context:
    def connect() -> Any:
        raise AssertionError("nothing is sent here")

    around = Surroundings(
        connect=connect,
        now=lambda: datetime(2026, 11, 15, 12, tzinfo=UTC),
        screen=Screen(),
        environ=HERE.environ,
        workdir=HERE.workdir,
    )
    daemon: Any = None
    # Click keeps the first help option that it makes: it must be the one that users see.
    names = ["-h", "--help"]
    call = Call(daemon, around)
    return submit.make_context("submit", words, obj=call, help_option_names=names)


def found(field: Field, want: Wanted) -> Sequence[Any]:
    """What the field came to."""
    if field.name == "array":
        return want.indices, want.at_once
    if field.name == "held":
        return [want.held]
    return [at(want.spec, way) for way in field.row.into.split()]


def at(value: Any, way: str) -> Any:
    first, _, rest = way.partition(".")
    if first == "groups":
        (value,) = value.groups
    else:
        value = getattr(value, first)
    return at(value, rest) if rest and value is not None else value


def holds(here: Any, there: Any) -> bool:
    """The same; of variables and labels, at least those."""
    if is_pairs(there):
        return there.items() <= here.items()
    return here == there


def leaves(kind: type[Value], above: str = "") -> list[str]:
    """The paths below a value to everything that is no value itself."""
    found: list[str] = []
    for name, hint in get_type_hints(kind).items():
        inside = [each for each in (hint, *get_args(hint)) if is_value(each)]
        way = f"{above}{name}"
        is_part = len(inside) == 1 and (name == "groups" or way not in WHOLE)
        found.extend(leaves(inside[0], f"{way}.") if is_part else [way])
    return found


WHOLE = {
    "after",
    "array",
    "groups.together",
    "groups.where.require",
    "groups.where.prefer",
    "groups.where.tolerate",
    "groups.where.near",
    "groups.where.apart",
    "launch.warn",
    "launch.terminal",
}
"""Values that one text describes."""


def is_value(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Value)


def is_within(leaf: str, way: str) -> bool:
    return leaf == way or leaf.startswith(f"{way}.")
