"""The Kubernetes API of several processes with one PostgreSQL: any of them serves all of it."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from containers.hidden import path_without_tools
from databases import Postgres
from live.house import GPUS, LONGEST_S, NODES, PATIENCE_S, PATIENT, Process, folder, until
from muster.model.value import replace
from muster.settings import KubernetesListen, Settings

pytestmark = pytest.mark.slow

PASSWORD = base64.b64encode(b"hunter2").decode()
SECRET: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "key"}, "data": {"p": PASSWORD}}
KEYS = "kubernetes"
RULES = """
queues: {default: {}}
classes: {normal: {}}
containers: {images_on_host: true}
"""
SLEEPER = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "muster/pretend:1", command: [sh, -c, "PROGRAM"]}]
"""


def environ(home: Path) -> dict[str, str]:
    """Of somebody who uses the Muster of this home."""
    programs = str(Path(sys.executable).parent)
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "MUSTER_HOME": str(home),
        "KUBECONFIG": str(home / "kubeconfig"),
    }


def muster(home: Path, *words: str) -> None:
    """A command that goes well."""
    command = [sys.executable, "-m", "muster", *words]
    ran = subprocess.run(  # noqa: S603 our own program
        command, check=False, capture_output=True, text=True, env=environ(home)
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


class Kubectl:
    """The kubectl of somebody who reaches one of the processes."""

    def __init__(self, process: Process) -> None:
        self._home = process.home
        muster(self._home, "kubeconfig")

    def says(self, line: str, stdin: str = "") -> str:
        """What it prints when it goes well."""
        ran = self._run(line, stdin)
        assert ran.returncode == 0, f"kubectl {line}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def is_well(self, line: str) -> bool:
        return self._run(line).returncode == 0

    @contextmanager
    def watching(self, line: str) -> Generator["Watching"]:
        """A kubectl that goes on until the end of the block."""
        with subprocess.Popen(  # noqa: S603 what a test types
            ["kubectl", *line.split()],  # noqa: S607
            stdout=subprocess.PIPE,
            text=True,
            env=self._environ,
        ) as process:
            try:
                yield Watching(process)
            finally:
                process.terminate()

    def _run(self, line: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 what a test types
            ["kubectl", *line.split()],  # noqa: S607
            check=False,
            capture_output=True,
            text=True,
            input=stdin,
            timeout=LONGEST_S,
            env=self._environ,
        )

    @property
    def _environ(self) -> dict[str, str]:
        return environ(self._home)


class Watching:
    """What is seen, a line at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def sees(self, text: str) -> None:
        """Fails at the end of the watch: kubectl says how long that is."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if text in line:
                return
        raise AssertionError(f"the watch ended without {text}")


class Household:
    """A leader, its standby, and a process that only answers; each serves the Kubernetes API."""

    def __init__(self, place: Path, store: str) -> None:
        listen = KubernetesListen(host="127.0.0.1", port=0)
        first = Settings(
            store=store, nodes=NODES, gpus=GPUS, mail_program="none", kubernetes=listen
        )
        second = replace(first, standby_for=str(place / "first"))
        door = Settings(store=store, doors_only=True, kubernetes=listen)
        self.first = Process(place / "first", first)
        self.second = Process(place / "second", second)
        self.door = Process(place / "door", door)

    def start(self) -> None:
        self.first.start()
        until(self.first.leads, bool)
        # As docs/howto/high-availability.md says it of processes elsewhere.
        shutil.copytree(self.first.home / KEYS, self.door.home / KEYS)
        self.second.start()
        self.door.start()

    def close(self) -> None:
        for each in (self.door, self.second, self.first):
            each.stop()


@contextmanager
def household(postgres: Postgres) -> Generator[Household]:
    """On a machine without container tools, so that pods are processes and need no image."""
    with folder() as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_without_tools(place / "bin"))
        rules = place / "site.yaml"
        rules.write_text(RULES, encoding="utf-8")
        with closing(Household(place, postgres.new_address())) as made:
            made.start()
            muster(made.first.home, "apply", "-f", str(rules))
            yield made


def job(name: str, program: str) -> str:
    return SLEEPER.replace("NAME", name).replace("PROGRAM", program)


def test_what_is_made_at_one_process_is_read_and_watched_at_the_others(postgres: Postgres) -> None:
    with household(postgres) as made:
        leader, standby, door = (Kubectl(each) for each in (made.first, made.second, made.door))
        standby.says("create namespace lab")
        line = f"get secrets -n lab -w --request-timeout={PATIENCE_S}s --no-headers"
        with door.watching(line) as watch:
            leader.says("create -n lab -f -", json.dumps({**SECRET, "apiVersion": "v1"}))
            watch.sees("key")

        for each in (leader, standby, door):
            read = each.says("get secret key -n lab -o jsonpath={.data.p}")
            assert read == PASSWORD
        door.says('patch secret key -n lab -p {"stringData":{"p":"changed"}}')
        changed = standby.says("get secret key -n lab -o jsonpath={.data.p}")
        assert base64.b64decode(changed) == b"changed"
        version = "get secret key -n lab -o jsonpath={.metadata.resourceVersion}"
        assert len({each.says(version) for each in (leader, standby, door)}) == 1


def test_tokens_of_one_process_open_the_others(postgres: Postgres) -> None:
    with household(postgres) as made:
        leader, door = Kubectl(made.first), Kubectl(made.door)
        leader.says("create namespace lab")
        token = leader.says("create token default -n lab").strip()

        who = door.says(f"auth whoami --token={token} -o jsonpath={{.status.userInfo.username}}")

        assert who == "system:serviceaccount:lab:default"


def test_when_the_leader_is_killed_controllers_and_pods_go_on(postgres: Postgres) -> None:
    with household(postgres) as made:
        door = Kubectl(made.door)
        gate = made.first.home.parent / "gate"
        wait = f"until [ -e {gate} ]; do sleep 0.1; done"
        door.says("create namespace lab")
        door.says("create -n lab -f -", job("before", wait))
        until(lambda: door.says("get pods -n lab --no-headers"), lambda seen: "Running" in seen)

        made.first.kill()
        until(made.second.leads, bool)
        door.says("create -n lab -f -", job("after", "true"))
        gate.touch()

        for name in ("before", "after"):
            done = f"wait -n lab --for=condition=Complete job/{name} {PATIENT}"
            assert door.is_well(done), door.says("describe pods,jobs -n lab")
        pods = door.says("get pods -n lab --no-headers").splitlines()
        assert [line.split()[2:4] for line in pods] == [["Completed", "0"]] * 2
