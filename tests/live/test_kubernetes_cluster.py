"""A real Kubernetes behind Muster: one queue, one set of rules, and pods that really run there."""

import contextlib
import os
import subprocess
import sys
import urllib.error
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.backends.kubernetes_engine import kubernetes_lab
from kubernetes_real.images import BUSYBOX
from kubernetes_real.lab import Lab
from live.house import Process, ended, folder, running, until
from muster import Client
from muster.api.jobs import JobDocument
from muster.app.clusters import add_kubernetes, show
from muster.backends.kubernetes.manifest import name_of
from muster.backends.kubernetes.pods import ATTEMPT, JOB, RANK, SITE, Key
from muster.doors.cli.daemon.port import AddKubernetesOptions, ClustersOptions
from muster.model.value import replace
from muster.settings import BadSettingsError, KubernetesCluster, Settings

pytestmark = pytest.mark.slow

GPUS_EACH = 4
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with kubernetes_lab() as found:
        for name in ("nlp", "elsewhere"):
            _made(found, "/api/v1/namespaces", {"metadata": {"name": name}})
        until(
            lambda: _is_there(found, "/api/v1/namespaces/nlp/serviceaccounts/default"),
            lambda there: there,
        )
        yield found


class Site:
    """A Muster on a machine without GPUs, with one Kubernetes cluster beside it."""

    def __init__(self, place: Path, lab: Lab) -> None:
        self.place = place
        cluster = KubernetesCluster(
            name="lab",
            kubeconfig=str(lab.kubeconfig),
            image=BUSYBOX,
            namespaces={"nlp": "nlp"},
            mounts=(str(place),),
        )
        self.process = Process(
            place / "home", Settings(mail_program="none", nodes=1, gpus="0", clusters=(cluster,))
        )

    @property
    def client(self) -> Client:
        return self.process.client()

    def submits(self, text: str, **asked: Any) -> int:
        """A line of shell; returns the job."""
        with self.client as client:
            fields: dict[str, Any] = {"workdir": "/", "pools": ("lab",), "gpus": 1} | asked
            return client.submit(["sh", "-c", text], **fields).id

    def runs(self, text: str, **asked: Any) -> tuple[int, str]:
        """The same, when it runs: the job and its node."""
        job = self.submits(text, **asked)
        with self.client as client:
            return job, running(client, job).nodes[0]

    def muster(self, *words: str) -> str:
        """What one of our commands prints."""
        return self._ran([sys.executable, "-m", "muster", *words])

    def types(self, line: str) -> str:
        """What a line prints in which commands of Slurm are ours."""
        return self._ran(["/bin/sh", "-c", line])

    def _ran(self, words: list[str]) -> str:
        environ = {name: text for name, text in os.environ.items() if not name.startswith("SLURM")}
        more = {"MUSTER_HOME": str(self.process.home)}
        more["PATH"] = f"{self.place / 'bin'}:{environ['PATH']}"
        run = subprocess.run(  # noqa: S603 -- what a test types
            words, env=environ | more, cwd=self.place, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def until_told(self) -> str:
        """A line of shell that ends when the test says so."""
        return f"until test -e {self.place}/go; do sleep 0.1; done"

    def tells(self) -> None:
        (self.place / "go").touch()

    def ran(self, name: str) -> list[str]:
        """What the runs of a job said, a line each."""
        path = self.place / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def says(self, name: str, then: str = "true") -> str:
        """A line of shell that says that it ran, and goes on."""
        return f'echo "$MUSTER_NODE $NVIDIA_VISIBLE_DEVICES" >> {self.place / name}; {then}'


@contextmanager
def site(lab: Lab) -> Generator[Site]:
    with folder() as place:
        place.chmod(0o777)
        found = Site(place, lab)
        found.process.start()
        try:
            until(lambda: _gpus(found), lambda count: count == 2 * GPUS_EACH)
            yield found
        finally:
            with found.client as client:
                jobs = [job.id for job in client.all_jobs()]
                if jobs:
                    client.cancel(jobs)
                    ended(client, jobs)
            found.process.stop()


@pytest.fixture
def here(lab: Lab) -> Iterator[Site]:
    with site(lab) as found:
        yield found


def over(here: Site, job: int) -> JobDocument:
    with here.client as client:
        return ended(client, [job])[0]


def test_a_job_runs_on_the_cluster_with_the_gpus_that_it_was_given(here: Site) -> None:
    job = here.submits(here.says("one"), gpus=2)

    assert over(here, job).state == "completed"
    node, gpus = here.ran("one")[0].split()
    assert node.startswith("muster-node")
    assert len(gpus.split(",")) == 2


def test_a_gang_has_its_ranks_where_muster_put_them(here: Site) -> None:
    said = f'echo "$RANK $(hostname) $MUSTER_NODE" >> {here.place / "gang"}'
    job = here.submits(said, tasks=3, gpus=2)

    assert over(here, job).state == "completed"
    assert sorted(line.split()[0] for line in here.ran("gang")) == ["0", "1", "2"]
    assert len({line.split()[2] for line in here.ran("gang")}) == 2


def test_commands_of_slurm_tell_of_a_gang_that_runs_as_pods(here: Site, lab: Lab) -> None:
    here.muster("slurm", "install", str(here.place / "bin"), "--force")
    script = here.place / "train.sh"
    script.write_text(
        f"#!/bin/sh\n#SBATCH -p lab -n 3 --gpus-per-task=2 -J train\n{here.until_told()}\nexit 5\n",
        encoding="utf-8",
    )

    job = here.types(f"sbatch --parsable {script}").strip()
    until(lambda: here.types(f"squeue -h -j {job} -o %T").strip(), lambda it: it == "RUNNING")

    assert here.types(f"squeue -h -j {job} -o '%j %P %D'").split() == ["train", "lab", "2"]
    assert "train" in here.muster("ps")
    pods = [
        each["metadata"]["annotations"]["muster.io/name"]
        for each in lab.ask(PODS)["items"]
        if each["metadata"].get("labels", {}).get("muster.io/job") == job
    ]
    assert pods == ["train"] * 3
    here.tells()
    assert (over(here, int(job)).state, over(here, int(job)).exit_code) == ("failed", 5)


def test_steps_and_terminals_are_refused_there_with_the_reason(here: Site) -> None:
    here.muster("slurm", "install", str(here.place / "bin"), "--force")

    said = here.types("salloc -p lab --gpus=1 true 2>&1 || true")

    assert "granted" not in said.lower()
    assert "error" in said.lower()


def test_a_code_and_what_was_said_come_back_as_they_were(here: Site) -> None:
    job = here.submits("echo something is wrong; exit 7")

    found = over(here, job)

    assert (found.state, found.exit_code) == ("failed", 7)
    with here.client as client:
        assert b"".join(client.log(job)) == b"something is wrong\n"


def test_the_rights_that_are_shipped_are_enough_and_are_asked_for(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    rights = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rights.yaml"
    documents = list(yaml.safe_load_all(rights.read_text(encoding="utf-8")))
    for each in documents:
        _made(lab, _collection(each), each)
    account = "/api/v1/namespaces/muster/serviceaccounts/muster/token"
    token = lab.ask(account, {"spec": {"expirationSeconds": 3_600}})["status"]["token"]
    until(lambda: _is_there(lab, account.replace("muster/token", "default")), bool)
    with folder() as place:
        lab.write_kubeconfig(place / "kubeconfig", token)
        process = Process(place / "home", Settings(mail_program="none", nodes=1, gpus="0"))
        options = AddKubernetesOptions(
            name="lab",
            kubeconfig=place / "kubeconfig",
            namespace="muster",
            image=BUSYBOX,
            home=place / "home",
        )
        forbidden = replace(options, namespace="kube-system")
        with pytest.raises(BadSettingsError, match="in namespace kube-system"):
            add_kubernetes(forbidden)

        assert add_kubernetes(options) == 0

        assert f"2 nodes, {2 * GPUS_EACH} GPUs" in capsys.readouterr().out
        show(ClustersOptions(home=place / "home"))
        assert "answers, places" in capsys.readouterr().out
        process.start()
        try:
            with process.client() as client:
                until(lambda: sum(node.gpus for node in client.nodes()), bool)
                gang = client.submit(["hostname"], pools=("lab",), gpus=1, tasks=2, workdir="/")
                long = client.submit(["sleep", "600"], pools=("lab",), gpus=1, workdir="/")
                assert ended(client, [gang.id])[0].state == "completed"
                assert b"muster-" in b"".join(client.log(gang.id))
                running(client, long.id)
                client.signal([long.id], "USR1")
                client.cancel([long.id])
                assert ended(client, [long.id])[0].state in {"cancelled", "failed"}
                pods = "/api/v1/namespaces/muster/pods"
                until(lambda: lab.ask(pods)["items"], lambda found: not found)
        finally:
            process.stop()


def test_a_queue_has_its_own_namespace(here: Site, lab: Lab) -> None:
    with here.client as client:
        rules = yaml.safe_load(client.site())
        client.apply(yaml.safe_dump({**rules, "queues": {**rules["queues"], "nlp": {}}}))
    job, _ = here.runs(here.until_told(), queue="nlp")

    found = lab.ask("/api/v1/namespaces/nlp/pods")["items"]

    assert [each["metadata"]["labels"]["muster.io/job"] for each in found] == [str(job)]
    here.tells()
    assert over(here, job).state == "completed"


def test_pods_of_others_count_as_used_and_are_left_alone(here: Site, lab: Lab) -> None:
    _made(lab, PODS, _pod("theirs", gpus=3, node="muster-node1"))
    try:
        until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH - 3)

        job = here.submits(here.says("beside"), gpus=GPUS_EACH)

        assert over(here, job).state == "completed"
        assert here.ran("beside")[0].startswith("muster-node2")
        assert lab.ask(f"{PODS}/theirs")["status"]["phase"] == "Running"
    finally:
        _removed(lab, f"{PODS}/theirs")
    until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH)


def test_a_pod_with_marks_that_somebody_forged_is_nobody_s_attempt(here: Site, lab: Lab) -> None:
    job, _ = here.runs(here.until_told())
    theirs = next(
        each
        for each in lab.ask(PODS)["items"]
        if each["metadata"].get("labels", {}).get("muster.io/job") == str(job)
    )
    forged = _pod("forged", gpus=3, node="muster-node1")
    # The same labels for the same attempt, and for the next job that there will be.
    labels = theirs["metadata"]["labels"]
    forged["metadata"]["labels"] = {**labels, "muster.io/job": str(job + 1)}
    _made(lab, PODS, forged)
    copied = _pod("copied", gpus=0, node="muster-node2")
    copied["metadata"]["labels"] = labels
    copied["spec"]["containers"][0]["command"] = ["sh", "-c", "exit 3"]
    _made(lab, PODS, copied)
    try:
        until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH - 3)
        second = here.submits(here.says("second"))
        assert second == job + 1

        assert over(here, second).state == "completed"
        assert len(here.ran("second")) == 1
        here.tells()
        assert over(here, job).state == "completed"
        here.process.kill()
        here.process.start()
        until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH - 3)
        assert _is_there(lab, f"{PODS}/forged")
    finally:
        for name in ("forged", "copied"):
            _removed(lab, f"{PODS}/{name}")
    until(lambda: _gpus(here), lambda count: count == 2 * GPUS_EACH)


def test_a_muster_that_was_killed_takes_its_jobs_over_and_none_runs_twice(here: Site) -> None:
    job, _ = here.runs(here.says("long", here.until_told()))
    until(lambda: here.ran("long"), lambda lines: len(lines) == 1)

    here.process.kill()
    here.process.start()
    here.tells()

    assert over(here, job).state == "completed"
    assert len(here.ran("long")) == 1


def test_what_carries_our_mark_and_is_not_known_is_named_and_runs_on(here: Site, lab: Lab) -> None:
    clusters = here.process.home / "clusters"
    whose, seal = ((clusters / each).read_text(encoding="ascii") for each in ("site", "seal"))
    name = f"{name_of(Key(site=whose, job=999, attempt=1, seal=seal))}-0"
    labels = {SITE: whose, JOB: "999", ATTEMPT: "1", RANK: "0"}
    container = {"name": "job", "image": BUSYBOX, "command": ["sleep", "600"]}
    copied = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"nodeName": lab.nodes[0].name, "containers": [container]},
    }
    _made(lab, PODS, copied)
    try:
        here.process.kill()
        here.process.start()

        with here.client as client:
            named = f"runs default/{name} "
            until(lambda: client.status().problems, lambda said: named in str(said))
        assert over(here, here.submits("true")).state == "completed"
        assert "deletionTimestamp" not in lab.ask(f"{PODS}/{name}")["metadata"]
    finally:
        _removed(lab, f"{PODS}/{name}")


def test_a_database_that_is_gone_ends_nothing_there(here: Site) -> None:
    job, _ = here.runs(here.says("kept", here.until_told()))
    until(lambda: here.ran("kept"), lambda lines: len(lines) == 1)
    here.process.stop()
    for each in here.process.home.glob("muster.db*"):
        each.unlink()
    home = {"MUSTER_HOME": str(here.process.home)}
    up = [sys.executable, "-m", "muster", "up"]

    refused = subprocess.run(up, env=os.environ | home, capture_output=True, text=True, check=False)  # noqa: S603 our own
    taken = subprocess.run([*up, "--recover"], env=os.environ | home, check=False)  # noqa: S603 our own

    assert (refused.returncode, taken.returncode) == (1, 0)
    assert f"({job})" in refused.stderr
    try:
        here.tells()
        assert over(here, job).state == "completed"
        assert len(here.ran("kept")) == 1
    finally:
        subprocess.run([*up[:-1], "down"], env=os.environ | home, check=True)  # noqa: S603 our own
        here.process.start()


def test_an_api_server_that_was_killed_costs_no_job(here: Site, lab: Lab) -> None:
    job, _ = here.runs(here.says("kept", here.until_told()))
    until(lambda: here.ran("kept"), lambda lines: len(lines) == 1)

    lab.daemons["kube-apiserver"].kill()
    lab.start_apiserver()
    here.tells()

    assert over(here, job).state == "completed"
    assert len(here.ran("kept")) == 1


def test_a_node_that_is_cordoned_takes_nothing_new(here: Site, lab: Lab) -> None:
    job, node = here.runs(here.until_told())
    lab.ask(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}}, method="PATCH")
    try:
        until(lambda: _states(here)[node], lambda state: state == "draining")

        beside = here.submits(here.says("beside"))

        assert over(here, beside).state == "completed"
        assert not here.ran("beside")[0].startswith(node)
        here.tells()
        assert over(here, job).state == "completed"
    finally:
        lab.ask(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}}, method="PATCH")
    until(lambda: set(_states(here).values()), lambda states: states == {"up"})


def test_a_job_whose_node_dies_runs_again_elsewhere(here: Site, lab: Lab) -> None:
    job, name = here.runs(here.says("moved", here.until_told()), gpus=GPUS_EACH)
    until(lambda: here.ran("moved"), lambda lines: len(lines) == 1)
    node = next(each for each in lab.nodes if each.name == name)

    node.crash()
    try:
        until(lambda: here.ran("moved"), lambda lines: len(lines) == 2, patience_s=480)
        here.tells()
        found = over(here, job)
        assert (found.state, found.attempt) == ("completed", 2)
        assert [line.split()[0] == name for line in here.ran("moved")] == [True, False]
    finally:
        node.revive()
        until(lambda: set(_states(here).values()), lambda states: states == {"up"})


def test_who_must_make_room_saves_and_goes_on_from_there(here: Site) -> None:
    saved = here.place / "saved" / "count"
    text = (
        f"at=$(cat {saved} 2>/dev/null || echo 0); echo $RANK $at >> {here.place}/low; "
        f"trap 'echo 41 > {saved}.new$RANK; mv {saved}.new$RANK {saved}; exit 0' USR1; "
        "test $at = 41 && exit 0; while :; do sleep 0.1; done"
    )
    saved.parent.mkdir()
    saved.parent.chmod(0o777)
    asked = {"checkpoint": str(saved.parent), "checkpoint_signal": "USR1", "job_class": "low"}
    low = here.submits(text, gpus=GPUS_EACH, tasks=2, preempt_mode="checkpoint", **asked)
    until(lambda: here.ran("low"), lambda lines: len(lines) == 2)

    high = here.submits(here.says("high"), gpus=GPUS_EACH, job_class="high")

    assert over(here, high).state == "completed"
    found = over(here, low)
    assert (found.state, found.attempt) == ("completed", 2)
    assert sorted(here.ran("low")) == ["0 0", "0 41", "1 0", "1 41"]
    assert found.attempts[0].checkpointed_at is not None


def test_cancelling_ends_it_there(here: Site, lab: Lab) -> None:
    job, _ = here.runs("sleep 600")

    with here.client as client:
        client.cancel([job])

    assert over(here, job).state == "cancelled"
    until(lambda: lab.ask(PODS)["items"], lambda pods: not pods)


def _gpus(here: Site) -> int:
    with here.client as client:
        return sum(node.gpus for node in client.nodes())


def _states(here: Site) -> dict[str, str]:
    with here.client as client:
        return {node.id: node.state for node in client.nodes() if node.cluster == "lab"}


def _collection(body: dict[str, Any]) -> str:
    """Where objects of its kind are."""
    place = body["metadata"].get("namespace")
    group = body["apiVersion"]
    base = f"/api/{group}" if group == "v1" else f"/apis/{group}"
    return f"{base}/namespaces/{place}/{_plural(body)}" if place else f"{base}/{_plural(body)}"


def _plural(body: dict[str, Any]) -> str:
    return f"{body['kind'].lower()}s"


def _pod(name: str, *, gpus: int, node: str) -> dict[str, Any]:
    """One that somebody else put there."""
    amounts = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {
        "name": "job",
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sleep", "600"],
        "resources": {"limits": amounts},
    }
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _made(lab: Lab, path: str, body: dict[str, Any]) -> None:
    lab.ask(path, body)


def _removed(lab: Lab, path: str) -> None:
    with contextlib.suppress(urllib.error.HTTPError):
        lab.ask(path, method="DELETE")
    until(lambda: _is_there(lab, path), lambda there: not there)


def _is_there(lab: Lab, path: str) -> bool:
    try:
        lab.ask(path)
    except urllib.error.HTTPError:
        return False
    return True
