from pathlib import Path
from typing import Any

import pytest

from doors.cli.calling import Caller
from doors.cli.canned import CannedServer, HangUp, Raw, Refusal, Request
from muster.api.requests import SubmittedDocument
from muster.api.site import Problem

SCRIPT = "#!/bin/sh\n#MUSTER --gpus 2 --env A=1 --env B=1\n#MUSTER --queue acme/nlp\necho hello\n"


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.sh"
    path.write_text(SCRIPT, encoding="utf-8")
    return str(path)


def sent(server: CannedServer) -> Any:
    return server.asked("POST", "/v1/jobs")[-1].body


def test_a_command_is_handed_in_with_its_folder_and_environment(
    muster: Caller, server: CannedServer
) -> None:
    outcome = muster("submit", "--gpus", "2", "--", "python", "train.py", "--lr", "1")

    assert (outcome.code, outcome.out) == (0, "job 30 submitted to default\n")
    body = sent(server)
    assert body["command"] == ["python", "train.py", "--lr", "1"]
    assert body["script"] is None
    assert body["name"] == "python"
    assert body["workdir"] == "/home/alice"
    assert body["env"] == {"PATH": "/bin", "HOME": "/h"}
    assert body["gpus"] == 2


def test_a_script_is_sent_as_text_with_its_options_and_arguments(
    muster: Caller, server: CannedServer, script: str
) -> None:
    outcome = muster("submit", script, "--epochs", "10")

    assert outcome.out == "job 30 submitted to acme/nlp\n"
    body = sent(server)
    assert body["script"] == SCRIPT
    assert body["command"] == ["--epochs", "10"]
    assert body["gpus"] == 2
    assert body["queue"] == "acme/nlp"


def test_the_command_line_wins_over_the_script(
    muster: Caller, server: CannedServer, script: str
) -> None:
    muster("submit", "--gpus", "1", "--env", "B=2", "--env-only", "", script)

    body = sent(server)
    assert body["gpus"] == 1
    assert body["env"] == {"A": "1", "B": "2"}


def test_a_script_may_come_from_the_input(
    muster: Caller, server: CannedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "input"
    path.write_text(SCRIPT, encoding="utf-8")
    with path.open(encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stdin", stream)

        muster("submit", "-", "arg")

    assert sent(server)["script"] == SCRIPT
    assert sent(server)["name"] == "stdin"
    assert sent(server)["command"] == ["arg"]


def test_every_option_reaches_the_document(muster: Caller, server: CannedServer) -> None:
    options = (
        "--gpus 2 --gpu-model A100-40GB,H100-80GB --gpu-memory 40G --slice mig:1g.5gb --cpus 2.5 "
        "--memory 16G --tasks 4 --min-tasks 2 --time 2h --queue acme --class urgent --priority 3 "
        "--pool p1 --pool p2 --cluster c --spot allowed --require rack=r1 --tolerate busy "
        "--node n1,n2 --exclude n3 --max-per-node 1 --exclusive --together rack? --array 0-9%4 "
        "--after afterok:17,afterany:18 --begin 2026-12-01T08:00 --deadline now+2h --hold "
        "--cancel-if-hopeless "
        "--attempts 3 --no-requeue --not-preemptible --preempt-mode suspend --restart-cost 5m "
        "--name n --label a=b --image i --env X=1 --env-only PATH --workdir sub --output o "
        "--error e --input i --append --first-task-only --warn USR1@60 --checkpoint c "
        "--checkpoint-signal USR2 --mail-type begin,fail --mail-type end --mail-user ann@x"
    ).split()

    outcome = muster("submit", *options, "--", "true")

    assert outcome.code == 0, outcome.err
    body = sent(server)
    del body["umask"]
    assert body.pop("request_key")
    assert body == {
        "groups": [],
        "tasks": 4,
        "min_tasks": 2,
        "cpus": 2.5,
        "memory": "16G",
        "gpus": 2,
        "gpu_models": ["A100-40GB", "H100-80GB"],
        "gpu_memory": "40G",
        "slice": "mig:1g.5gb",
        "together": "rack?",
        "require": {"rack": "r1"},
        "nodes": ["n1", "n2"],
        "not_nodes": ["n3"],
        "tolerate": ["busy"],
        "exclusive": True,
        "max_per_node": 1,
        "prefer": {},
        "near": [],
        "apart": [],
        "reservation": None,
        "user": None,
        "retry_pause": 10,
        "retry_factor": 2,
        "retry_longest": 300,
        "sbatch": None,
        "name": "n",
        "queue": "acme",
        "job_class": "urgent",
        "command": ["true"],
        "script": None,
        "image": "i",
        "env": {"PATH": "/bin", "X": "1"},
        "workdir": "/home/alice/sub",
        "every_task": False,
        "stdin": "i",
        "stdout": "o",
        "stderr": "e",
        "append": True,
        "time": "2h",
        "begin": "2026-12-01T08:00:00+01:00",
        "deadline": "now+2h",
        "after": ["afterok:17", "afterany:18"],
        "cancel_if_hopeless": True,
        "array": "0-9%4",
        "pools": ["p1", "p2"],
        "clusters": ["c"],
        "spot": "allowed",
        "priority": 3,
        "preemptible": False,
        "preempt_mode": "suspend",
        "attempts": 3,
        "requeue": False,
        "restart_cost": "5m",
        "labels": {"a": "b"},
        "mail_on": ["begin", "fail", "end"],
        "mail_to": "ann@x",
        "held": True,
        "warn": "USR1@60",
        "checkpoint": "c",
        "checkpoint_signal": "USR2",
        "terminal": None,
    }


def test_quiet_prints_only_the_id(muster: Caller) -> None:
    assert muster("submit", "--quiet", "--", "true").out == "30\n"
    assert muster("submit", "--parsable", "--", "true").out == "30\n"


def test_an_array_is_announced_as_such_and_cautions_go_to_stderr(
    muster: Caller, server: CannedServer
) -> None:
    made = SubmittedDocument(id=30, ids=(30, 31, 32), cautions=("acme/nlp is full",))
    server.answer("POST", "/v1/jobs", made)

    outcome = muster("submit", "--queue", "acme/nlp", "--array", "0-2", "--", "true")

    assert outcome.out == "array 30 of 3 jobs submitted to acme/nlp\n"
    assert outcome.err == "caution: acme/nlp is full\n"


def test_the_words_after_the_options_must_be_a_script_or_follow_two_dashes(
    muster: Caller, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("hello\n", encoding="utf-8")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x7fELF\xff\xfe")

    for argv, message in (
        ((), "Nothing to run"),
        (("hostname",), "muster submit -- hostname"),
        ((str(plain),), "does not begin with `#!`"),
        ((str(binary),), "is not a text file"),
    ):
        outcome = muster("submit", *argv)
        assert outcome.code == 2
        assert message in outcome.err


def test_a_mistake_in_a_script_names_its_line(muster: Caller, tmp_path: Path) -> None:
    path = tmp_path / "bad.sh"
    path.write_text("#!/bin/sh\n\n#MUSTER --gpuz 2\n", encoding="utf-8")

    outcome = muster("submit", str(path))

    assert outcome.code == 2
    assert f"{path}:3: No such option" in outcome.err


def test_a_refusal_says_what_to_do_and_exits_with_one(muster: Caller, server: CannedServer) -> None:
    text = "queue acme allows 4 GPUs; this job asks for 8. Ask for fewer."
    server.answer("POST", "/v1/jobs", Refusal(status=422, problem=Problem(kind="q", text=text)))

    outcome = muster("submit", "--gpus", "8", "--", "true")

    assert (outcome.code, outcome.out, outcome.err) == (1, "", f"muster: {text}\n")


def test_waiting_gives_the_exit_code_of_the_job(muster: Caller, server: CannedServer) -> None:
    server.answer("POST", "/v1/jobs", SubmittedDocument(id=12, ids=(12,)))
    server.answer("GET", "/v1/events/stream", Raw(content=b": still here\n\n"))

    outcome = muster("submit", "--wait", "--queue", "default", "--", "false")

    assert outcome.code == 3
    assert outcome.err == "job 12 failed: exit code 3\n"


JOB = "command: python train.py\ngpus: 2\ntime: 1h\nenv: {A: 1}\n"
BATCH = "#!/bin/sh\n#SBATCH --gres=gpu:1\n#SBATCH --time=soon\necho hello\n"


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_job_file_is_submitted_and_the_command_line_wins_over_it(
    muster: Caller, server: CannedServer, tmp_path: Path
) -> None:
    file = written(tmp_path, "train.yaml", JOB)

    muster("submit", "--time", "2h", "--env", "B=2", file, "--epochs", "3")

    body = sent(server)
    assert body["command"] == ["python", "train.py", "--epochs", "3"]
    assert (body["name"], body["gpus"], body["time"]) == ("train", 2, "2h")
    assert body["env"] == {"PATH": "/bin", "HOME": "/h", "A": "1", "B": "2"}
    assert body["workdir"] == "/home/alice"


def test_mistakes_in_a_job_file_are_shown_with_their_lines(muster: Caller, tmp_path: Path) -> None:
    file = written(tmp_path, "train.yaml", JOB + "gpuz: 1\nmemory: much\n")

    outcome = muster("submit", file)

    assert outcome.code == 1
    assert f"{file}:5: gpuz: unknown key; did you mean `gpus`?\n" in outcome.err
    assert f"{file}:6: memory: `much` cannot be read here" in outcome.err


def test_what_the_server_refuses_is_shown_with_its_line(
    muster: Caller, server: CannedServer, tmp_path: Path
) -> None:
    problem = Problem(kind="bad_request", text="gpus: 2 is out of bounds", where="gpus")
    server.answer("POST", "/v1/jobs", Refusal(status=400, problem=problem))

    outcome = muster("submit", written(tmp_path, "train.yaml", JOB))

    assert f"{tmp_path}/train.yaml:2: 2 is out of bounds" in outcome.err


def test_a_script_for_sbatch_is_sent_with_what_was_typed(
    muster: Caller, server: CannedServer, tmp_path: Path
) -> None:
    file = written(tmp_path, "train.sh", BATCH)

    muster("submit", "--gpus", "2", "--label", "a=b", "--not-preemptible", file, "--epochs", "3")

    body = sent(server)
    ours = ["--muster=gpus=2", "--muster=not-preemptible", "--muster=label=a=b"]
    assert body["sbatch"] == [*ours, file, "--epochs", "3"]
    assert (body["script"], body["gpus"], body["workdir"]) == (BATCH, 0, "/home/alice")


def test_what_is_wrong_in_a_script_for_sbatch_is_shown_with_its_line(
    muster: Caller, server: CannedServer, tmp_path: Path
) -> None:
    problem = Problem(kind="bad_request", text="Invalid --time specification")
    server.answer("POST", "/v1/jobs", Refusal(status=400, problem=problem))
    file = written(tmp_path, "train.sh", BATCH)

    assert f"{file}:3: Invalid --time specification" in muster("submit", file).err


def test_lines_of_other_systems_beside_those_for_sbatch_are_named(
    muster: Caller, tmp_path: Path
) -> None:
    file = written(tmp_path, "both.sh", "#!/bin/sh\n#PBS -N x\n#SBATCH -c 2\ntrue\n")

    assert "those of other batch systems are not" in muster("submit", file).err


def test_a_submission_whose_answer_is_lost_is_sent_again_under_the_same_key(
    muster: Caller, server: CannedServer
) -> None:
    lost = iter([True, False])

    def answer(_: Request) -> object:
        return HangUp() if next(lost) else SubmittedDocument(id=17, ids=(17,))

    server.answer("POST", "/v1/jobs", answer)

    outcome = muster("submit", "--queue", "acme", "--", "true")

    assert outcome.code == 0, outcome.err
    first, again = (each.body["request_key"] for each in server.asked("POST", "/v1/jobs"))
    assert first == again
