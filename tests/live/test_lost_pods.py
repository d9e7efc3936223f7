"""The database is gone while pods run on another cluster, whose kubelets are this test."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from live.house import Process, ended, folder, running, until
from muster.backends.kubernetes.manifest import name_of
from muster.backends.kubernetes.pods import Key
from muster.settings import KubernetesCluster, Settings
from pretend_kubernetes.api import NODES, PODS, Json, PretendApi, node, pretend_api

pytestmark = pytest.mark.slow

GPUS = 4


class Site:
    """A Muster without GPUs, and a cluster of one node."""

    def __init__(self, place: Path, api: PretendApi, kubeconfig: Path) -> None:
        self.api = api
        cluster = KubernetesCluster(name="lab", kubeconfig=str(kubeconfig), image="python")
        settings = Settings(mail_program="none", nodes=1, gpus="0", clusters=(cluster,))
        self.process = Process(place / "home", settings)

    def runs(self) -> int:
        with self.process.client() as client:
            job = client.submit(["train"], workdir="/", gpus=1).id
            until(self.pods, lambda found: bool(found and found[-1]["spec"].get("nodeName")))
            self._becomes("Running", {"running": {"startedAt": _now()}})
            return running(client, job).id

    def ends(self, job: int) -> str:
        self._becomes("Succeeded", {"terminated": {"exitCode": 0, "finishedAt": _now()}})
        with self.process.client() as client:
            return ended(client, [job])[0].state

    def pods(self) -> list[Json]:
        listed = self.api.answer("GET", PODS, {})
        assert isinstance(listed, dict)
        return list(listed["items"])

    def up(self, *more: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "muster", "up", *more]
        home = {"MUSTER_HOME": str(self.process.home)}
        return subprocess.run(  # noqa: S603 our own
            words, env=os.environ | home, capture_output=True, text=True, check=False
        )

    def _becomes(self, phase: str, state: Json) -> None:
        for pod in self.pods():
            names = [each["name"] for each in pod["spec"]["containers"]]
            status = {
                "phase": phase,
                "containerStatuses": [{"name": name, "state": state} for name in names],
            }
            where = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            self.api.become(PODS, *where, {"status": status})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def here() -> Iterator[Site]:
    with folder() as place, pretend_api(place) as (api, kubeconfig):
        api.make(NODES, node("n1", GPUS))
        found = Site(place, api, kubeconfig)
        found.process.start()
        with found.process.client() as client:
            until(lambda: sum(each.gpus for each in client.nodes()), lambda count: count == GPUS)
        yield found
        found.process.stop()


def test_a_database_that_is_gone_ends_nothing_there(here: Site) -> None:
    job = here.runs()
    before = here.pods()
    here.process.stop()
    for each in here.process.home.glob("muster.db*"):
        each.unlink()

    refused, taken = here.up(), here.up("--recover")

    assert (refused.returncode, taken.returncode) == (1, 0), taken.stderr
    assert f"({job})" in refused.stderr
    down = [sys.executable, "-m", "muster", "down"]
    home = {"MUSTER_HOME": str(here.process.home)}
    try:
        with here.process.client() as client:
            assert running(client, job).nodes == ("n1",)
        assert [each["metadata"]["uid"] for each in here.pods()] == [
            each["metadata"]["uid"] for each in before
        ]
        assert here.ends(job) == "completed"
    finally:
        subprocess.run(down, env=os.environ | home, check=True)  # noqa: S603 our own


def test_what_carries_our_mark_and_is_not_known_is_named_and_runs_on(here: Site) -> None:
    """Of a Muster with a copy of this one's state folder, it may be."""
    here.runs()
    here.process.stop()
    clusters = here.process.home / "clusters"
    site = (clusters / "site").read_text(encoding="ascii").strip()
    seal = (clusters / "seal").read_text(encoding="ascii").strip()
    name = f"{name_of(Key(site=site, job=999, attempt=1, seal=seal))}-0"
    (pod,) = here.pods()
    labels = pod["metadata"]["labels"] | {"muster.io/job": "999"}
    metadata = {"namespace": "default", "name": name, "labels": labels}
    here.api.make(PODS, pod | {"metadata": metadata})

    here.process.start()

    with here.process.client() as client:
        until(lambda: str(client.status().problems), lambda said: f"runs default/{name} " in said)
    assert here.api.see(PODS, "default", name) is not None
