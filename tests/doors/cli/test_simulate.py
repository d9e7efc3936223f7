"""`muster simulate` and `muster compare`: the real simulator behind the real command."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from doors.cli.calling import Caller
from muster.doors.cli.rehearse.progress import bar_text
from muster.model.value import Instant
from muster.simulator.rehearsal import Progress

TABLE = "submit_s,duration_s,gpus,user,queue,name\n"
NODES = ("--nodes", "2", "--gpus", "4xA100-40GB")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    rows = [f"{60 * at},600,{1 + at % 4},u{at % 3},q{at % 2},train-{at}" for at in range(30)]
    path = tmp_path / "jobs.csv"
    path.write_text(TABLE + "\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def test_a_trace_is_simulated_without_any_server(muster: Caller, trace: str) -> None:
    outcome = muster("simulate", trace, *NODES)

    assert outcome.code == 0
    assert "30 came, 30 completed" in outcome.out
    assert "QUEUE  WEIGHT  JOBS" in outcome.out
    assert outcome.err == ""


def test_the_report_is_a_document(muster: Caller, trace: str) -> None:
    outcome = muster("simulate", trace, *NODES, "-o", "json")

    report = json.loads(outcome.out)
    assert report["completed"] == 30
    assert report["jct_s"]["mean"] >= 600
    assert 0 < report["gpu_utilisation"] <= 1
    assert {each["path"] for each in report["queues"]} == {"q0", "q1"}


def test_the_rules_come_from_a_configuration_file(
    muster: Caller, trace: str, tmp_path: Path
) -> None:
    site = tmp_path / "cluster.yaml"
    site.write_text(
        "queues: {q0: {weight: 3}, q1: {}, default: {}}\nclasses: {normal: {}}\n"
        "pools: {a: {cluster: lab, gpu_hour: 2}}\n"
    )

    outcome = muster("simulate", trace, *NODES, "--site", str(site), "-o", "json")

    report = json.loads(outcome.out)
    assert {each["path"]: each["weight"] for each in report["queues"]} == {"q0": 3, "q1": 1}
    assert report["cost"] == pytest.approx(2 * report["gpu_hours"])


def test_nodes_come_from_a_file_and_fail_by_a_file(
    muster: Caller, trace: str, tmp_path: Path
) -> None:
    nodes, outages = tmp_path / "nodes.yaml", tmp_path / "outages.csv"
    nodes.write_text("- {nodes: 1, gpus: 8xA100-40GB, name: big}\n- {nodes: 2, gpus: 2xT4-16GB}\n")
    outages.write_text("node,from,to\nbig1,10m,20m\n")

    outcome = muster(
        "simulate", trace, "--cluster", str(nodes), "--outages", str(outages), "-o", "json"
    )

    report = json.loads(outcome.out)
    assert report["gpus"] == 12
    assert report["node_failures"] > 0
    assert report["lost_gpu_hours"] > 0


def test_chance_is_the_same_for_the_same_seed(muster: Caller, trace: str) -> None:
    chance = ("--mtbf", "30m", "--repair", "5m")

    one = muster("simulate", trace, *NODES, *chance, "--seed", "1", "-o", "json").out
    same = muster("simulate", trace, *NODES, *chance, "--seed", "1", "-o", "json").out
    other = muster("simulate", trace, *NODES, *chance, "--seed", "2", "-o", "json").out

    assert json.loads(one)["node_failures"] > 0
    assert one == same != other


def test_rules_are_put_side_by_side(muster: Caller, trace: str, tmp_path: Path) -> None:
    page, plots = tmp_path / "report.html", tmp_path / "plots"

    outcome = muster(
        "compare",
        trace,
        *NODES,
        *("--set", "spread:policy.packing=spread"),
        *("--set", "short:policy.order.short=9000"),
        *("--html", str(page), "--svg", str(plots)),
    )

    first = outcome.out.splitlines()[0].split()
    assert outcome.code == 0
    assert first == ["usual", "spread", "short"]
    assert "JCT mean" in outcome.out
    assert "<svg" in page.read_text(encoding="utf-8")
    assert len(list(plots.glob("*.svg"))) == 8


def test_policies_are_named_after_their_files(muster: Caller, trace: str, tmp_path: Path) -> None:
    text = "queues: {default: {}}\nclasses: {normal: {}}\npools: {a: {cluster: lab}}\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(text)
    files = [part for name in ("one", "two") for part in ("--policy", f"{tmp_path}/{name}.yaml")]

    outcome = muster("compare", trace, *NODES, *files, "-o", "json")

    assert [each["name"] for each in json.loads(outcome.out)] == ["one", "two"]


def test_png_files_say_what_they_need(muster: Caller, trace: str, tmp_path: Path) -> None:
    variant = ("--set", "b:policy.packing=spread")

    outcome = muster("compare", trace, *NODES, *variant, "--png", str(tmp_path / "plots"))

    if find_spec("matplotlib") is None:
        assert outcome.code == 1
        assert "muster-gpu[plots]" in outcome.err
    else:
        assert len(list((tmp_path / "plots").glob("*.png"))) == 7


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["simulate", "--format", "csv", "--nodes", "1"], "Name the file"),
        (["simulate", "TRACE", "--format", "history"], "takes no file"),
        (["simulate", "TRACE", "--gpus", "1xT4-16GB"], "say how many nodes"),
        (["simulate", "TRACE", "--nodes", "1", "--mtbf", "often"], "--mtbf"),
        (["simulate", "TRACE", "--nodes", "1", "--set", "packing"], "KEY=VALUE"),
        (["simulate", "TRACE", "--nodes", "1", "--set", "policy.pack=x"], "unknown key"),
        (["compare", "TRACE", "--nodes", "1"], "nothing to compare"),
        (["compare", "TRACE", "--nodes", "1", "--set", "policy.packing=x"], "NAME:KEY=VALUE"),
    ],
)
def test_mistakes_are_reported(muster: Caller, trace: str, words: list[str], hint: str) -> None:
    outcome = muster(*(trace if word == "TRACE" else word for word in words))

    assert outcome.code in {1, 2}
    assert hint in outcome.err


def test_a_bad_trace_names_the_line(muster: Caller, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(TABLE + "1,2,3,u,q,n\n1,long,3,u,q,n\n")

    outcome = muster("simulate", str(path), *NODES)

    assert outcome.code == 1
    assert "line 3" in outcome.err


def test_the_bar_says_how_far_it_is() -> None:
    progress = Progress(now=Instant(3 * 86_400_000), arrived=60, ended=50, jobs=100)

    text = bar_text(progress, 10.0)

    assert text == f"{'#' * 12}{'.' * 12}  50 of 100 jobs  day 3  5 jobs/s"
