"""Starting, stopping, and looking for what is wrong."""

import json
import shutil
from pathlib import Path

import pytest

from doors.cli.calling import Caller
from doors.cli.canned import CannedServer, Refusal
from doors.cli.things import ME, STATUS
from muster.api.site import Problem
from muster.doors.cli.daemon.port import (
    DoctorOptions,
    DownOptions,
    ListenOptions,
    PretendGpus,
    ServeOptions,
    UpOptions,
)
from muster.model.value import replace
from people import STRANGER, only_root


def test_up_without_options_leaves_everything_as_it_is(muster: Caller) -> None:
    assert muster("up").code == 0
    assert muster.daemon.calls == [UpOptions()]


def test_up_passes_every_option_on(muster: Caller) -> None:
    argv = (
        "--nodes 3 --gpus 4xA100-40GB --gpus T4 --home /h --listen 0.0.0.0:7411 --foreground "
        "--tls-cert c.pem --tls-key k.pem --store postgresql://db/muster --site s.yaml"
    ).split()

    muster("up", *argv)

    assert muster.daemon.calls == [
        UpOptions(
            home=Path("/h"),
            nodes=3,
            gpus=(PretendGpus(count=4, model="A100-40GB"), PretendGpus(count=1, model="T4")),
            listen=ListenOptions(
                address="0.0.0.0:7411", tls_cert=Path("c.pem"), tls_key=Path("k.pem")
            ),
            site=Path("s.yaml"),
            store="postgresql://db/muster",
            foreground=True,
        )
    ]


def test_down_and_serve_return_the_exit_code_of_the_daemon(muster: Caller) -> None:
    assert muster("down", "--wait", "5").code == 0
    assert muster("serve", "--store", "postgresql://db/muster").code == 7
    assert muster.daemon.calls == [
        DownOptions(patience_s=5),
        ServeOptions(store="postgresql://db/muster"),
    ]


def test_the_doctor_looks_at_the_machine_the_daemon_and_the_server(
    muster: Caller, tmp_path: Path
) -> None:
    outcome = muster("doctor", "--home", str(tmp_path), "-o", "json")

    found = {each["name"]: each for each in json.loads(outcome.out)}
    assert muster.daemon.calls == [DoctorOptions(home=tmp_path)]
    assert {"home", "socket", "disk", "cgroups", "nvml", "mps"} <= set(found)
    assert {"clock", "account", "spawner", "server", "version"} <= set(found)
    assert found["spawner"]["level"] == "ok"
    assert found["user"]["text"] == "you are alice: admin"
    assert all(each["advice"] for each in found.values() if each["level"] != "ok")


def test_the_doctor_says_what_to_do(muster: Caller, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    outcome = muster("doctor", "--home", str(tmp_path))

    assert outcome.code == 1
    assert f"every user may write in {tmp_path}" in outcome.out
    assert f"-> chmod o-w {tmp_path}" in outcome.out


def test_the_doctor_tells_of_a_home_that_is_not_there(muster: Caller) -> None:
    outcome = muster("doctor")

    assert "/nonexistent/muster is not there yet" in outcome.out


@only_root
def test_the_doctor_blames_nobody_for_what_is_not_theirs(muster: Caller, tmp_path: Path) -> None:
    shutil.chown(tmp_path, STRANGER)

    outcome = muster("doctor", "--home", str(tmp_path), "-o", "json")

    checks = {each["name"]: each for each in json.loads(outcome.out)}
    assert checks["cgroups"]["level"] == "ok"
    assert STRANGER in checks["cgroups"]["text"]


def test_the_doctor_finds_something_else_in_place_of_the_socket(
    muster: Caller, tmp_path: Path
) -> None:
    (tmp_path / "muster.sock").write_text("", encoding="utf-8")
    (tmp_path / "muster.db").write_text("", encoding="utf-8")

    outcome = muster("doctor", "--home", str(tmp_path))

    assert "is no socket" in outcome.out
    assert outcome.code == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "9.9.9"}, "the server 9.9.9"),
        ({"leading": False}, "no controller leads"),
        ({"gpus": 0}, "no node has a GPU"),
        ({"problems": ("the disk is nearly full",)}, "the disk is nearly full"),
        ({"planned_at": "2026-11-15T11:10:00Z"}, "this clock is 10m behind the server's"),
    ],
)
def test_the_doctor_warns_about_the_server(
    muster: Caller, server: CannedServer, changes: dict[str, object], message: str
) -> None:
    server.answer("GET", "/v1/status", replace(STATUS, **changes))

    assert message in muster("doctor").out


def test_the_doctor_tells_who_may_do_nothing(muster: Caller, server: CannedServer) -> None:
    server.answer("GET", "/v1/me", replace(ME, roles=()))

    assert "may do nothing here" in muster("doctor").out


def test_the_doctor_tells_when_the_server_will_not_talk(
    muster: Caller, server: CannedServer
) -> None:
    problem = Problem(kind="forbidden", text="This key is revoked.")
    server.answer("GET", "/v1/status", Refusal(status=401, problem=problem))

    outcome = muster("doctor")

    assert outcome.code == 1
    assert "This key is revoked." in outcome.out
