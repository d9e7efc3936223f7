"""Muster in a real Kubernetes, as `deploy/in-cluster` has it: two pods of a Deployment, one leads.

Its image is not built here. The pods have the container of the other tests, and find this Python
and this Muster in folders of the machine; its API server answers on loopback alone, and so do they.
"""

import base64
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import muster
from contracts.backends.kubernetes_engine import kubernetes_lab
from contracts.stores.middleman import Middleman
from databases import Postgres
from kubernetes_real.images import BUSYBOX
from kubernetes_real.lab import Lab
from live.house import folder, until
from muster import Client, ClientError
from muster.api.requests import SubmitDocument

pytestmark = pytest.mark.slow

log = logging.getLogger("tests")

LASTS_S = 15
DEPLOY = Path(__file__).parents[2] / "deploy" / "in-cluster"
PATIENCE_S = 120.0
AS_ROOT = {"runAsUser": 0, "runAsGroup": 0}
# With the names of users, without whom nobody may use folders of the nodes.
OF_MACHINE = ("/etc/passwd", "/etc/group", "/usr", "/lib", "/lib64", sys.base_prefix, sys.prefix)

Json = dict[str, Any]


class Inside:
    """The Deployment, and what is told to whichever of its pods."""

    def __init__(self, place: Path, lab: Lab, store: str) -> None:
        self.place, self.lab, self._store = place, lab, store
        (place / "attempts").mkdir()

    def start(self) -> None:
        said = self.kubectl("kustomize", str(DEPLOY))
        objects = [self._here(each) for each in yaml.safe_load_all(said)]
        given = [each for each in objects if each["kind"] != "PersistentVolumeClaim"]
        self.kubectl("apply", "-f", "-", given=given)

    def stop(self) -> None:
        self.kubectl("-n", "muster-jobs", "delete", "pods", "--all", "--grace-period=1")
        self.kubectl("-n", "muster", "delete", "deployment", "muster")
        until(self.pods, lambda pods: not pods, PATIENCE_S)

    def kubectl(self, *words: str, given: object = None) -> str:
        body = {"apiVersion": "v1", "kind": "List", "items": given}
        run = subprocess.run(  # noqa: S603 -- what an administrator types
            ("kubectl", "--kubeconfig", self.lab.kubeconfig, *words),  # noqa: S607
            input=None if given is None else json.dumps(body),
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def may(self, *words: str) -> bool:
        """May the account of those pods do this?"""
        asked = ("auth", "can-i", *words, "--as=system:serviceaccount:muster:muster")
        with contextlib.suppress(AssertionError):
            return self.kubectl(*asked).strip() == "yes"
        return False

    def pods(self) -> list[str]:
        return self.kubectl("-n", "muster", "get", "pods", "-l", "app=muster", "-o", "name").split()

    def client(self, pod: str) -> Client:
        return Client(f"unix:{self.place}/homes/{pod.removeprefix('pod/')}/home/muster.sock")

    def leaders(self) -> list[str]:
        found: list[str] = []
        for pod in self.pods():
            with contextlib.suppress(ClientError), self.client(pod) as client:
                found += [pod] * client.status().leading
        return found

    def leader(self) -> str:
        (found,) = until(self.leaders, lambda found: len(found) == 1, PATIENCE_S)
        return found

    def standby(self) -> str:
        leader = self.leader()

        def answering() -> list[str]:
            found: list[str] = []
            for pod in self.pods():
                with contextlib.suppress(ClientError), self.client(pod) as client:
                    client.status()
                    found.append(pod)
            return [each for each in found if each != leader]

        return until(answering, bool, PATIENCE_S)[0]

    def kill(self, pod: str) -> None:
        """As the kernel would: nothing is given back. Its kubelet starts the container again."""
        mark = f"POD={pod.removeprefix('pod/')}".encode()
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (each / "environ").read_bytes().split(b"\0"):
                    os.kill(int(each.name), signal.SIGKILL)

    def holder(self) -> str:
        return str(self.lease()["holderIdentity"])

    def lease(self) -> Json:
        said = self.kubectl("-n", "muster", "get", "lease", "muster", "-o", "json")
        spec: Json = json.loads(said)["spec"]
        return spec

    def submits(self, name: str, lasts_s: int) -> int:
        """Through the one that does not lead."""
        script = f"echo begun >> {self.place}/{name}; sleep {lasts_s}"
        document = SubmitDocument(name=name, command=("sh", "-c", script), gpus=1)
        with self.client(self.standby()) as client:
            return client.submit_document(document).id

    def until_begun(self, job: int, name: str) -> None:
        def why() -> str:
            with self.client(self.leader()) as client:
                return "" if (self.place / name).exists() else client.explain(job).text

        until(why, lambda text: not text, PATIENCE_S)

    def _here(self, found: Json) -> Json:
        match found["kind"]:
            case "Secret":
                settings = json.loads(base64.b64decode(found["data"]["settings.json"]))
                settings["store"] = self._store
                settings["clusters"][0] |= {"image": BUSYBOX, "mounts": [str(self.place)]}
                text = json.dumps(settings).encode()
                found["data"]["settings.json"] = base64.b64encode(text).decode()
            case "Deployment":
                self._change(found["spec"]["template"]["spec"])
            case _:
                pass
        return found

    def _change(self, pod: Json) -> None:
        (container,) = pod["containers"]
        pod |= {"hostNetwork": True, "securityContext": AS_ROOT}
        container["image"] = BUSYBOX
        container["command"] = [sys.executable, "-m", "muster"]
        container["args"] = [each for each in container["args"] if "tls" not in each]
        container["args"].remove("--listen=0.0.0.0:7411")
        for name in ("livenessProbe", "readinessProbe", "ports"):
            del container[name]
        container["resources"] = {}
        container["env"] += [
            {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(self.lab.port)},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
        mounts: list[Json] = container["volumeMounts"]
        container["volumeMounts"] = [each for each in mounts if each["name"] != "tls"]
        for each in container["volumeMounts"]:
            if each["name"] == "home":
                each["subPathExpr"] = "$(POD)"
        kept = [each for each in pod["volumes"] if each["name"] in {"tmp", "settings"}]
        ours = {"home": self.place / "homes", "attempts": self.place / "attempts"}
        pod["volumes"] = [*kept, *(_of_machine(name, path) for name, path in ours.items())]
        source = str(Path(muster.__file__).parents[1])
        for number, path in enumerate(sorted({*OF_MACHINE, source})):
            name = f"machine-{number}"
            pod["volumes"].append(_of_machine(name, Path(path)))
            mount = {"name": name, "mountPath": path, "readOnly": True}
            container["volumeMounts"].append(mount)


def _of_machine(name: str, path: Path) -> Json:
    if not path.exists():
        path.mkdir()
    return {"name": name, "hostPath": {"path": str(path.resolve())}}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with kubernetes_lab() as found:
        yield found


@contextlib.contextmanager
def deployed(lab: Lab, postgres: Postgres) -> Generator[Inside]:
    between = Middleman(postgres.socket)
    schema = postgres.new_address().rpartition("=")[2]
    store = f"postgresql://muster@127.0.0.1:{between.port}/postgres?search_path={schema}"
    with folder() as place, contextlib.closing(between):
        made = Inside(place, lab, store)
        try:
            made.start()
            yield made
        finally:
            made.stop()


def test_one_of_two_pods_leads_and_the_other_takes_over_with_jobs_that_go_on(
    lab: Lab, postgres: Postgres
) -> None:
    with deployed(lab, postgres) as inside:
        first = inside.leader()
        job = inside.submits("through-a-kill", lasts_s=25)
        inside.until_begun(job, "through-a-kill")

        holder = inside.holder()
        inside.kill(first)
        killed_at = time.monotonic()
        until(inside.holder, lambda it: it not in {"", holder}, PATIENCE_S)
        took_s = time.monotonic() - killed_at
        second = inside.leader()

        inside.kubectl("-n", "muster", "delete", second, "--wait=false")
        told_at = time.monotonic()
        until(inside.leaders, lambda found: len(found) == 1 and second not in found, PATIENCE_S)
        gave_s = time.monotonic() - told_at

        with inside.client(inside.leader()) as client:
            over = until(lambda: client.job(job), lambda it: it.state == "completed", PATIENCE_S)
        assert over.attempt == 1
        assert (inside.place / "through-a-kill").read_text(encoding="utf-8") == "begun\n"
        assert inside.lease()["leaseTransitions"] >= 2
        # Nobody took it before its time was over, of which two seconds may have passed before.
        assert took_s > LASTS_S - 3
        log.info("led again %.1f s after a kill, %.1f s after an orderly end", took_s, gave_s)


def test_its_account_may_do_no_more_than_it_needs(lab: Lab, postgres: Postgres) -> None:
    with deployed(lab, postgres) as inside:
        assert inside.may("patch", "lease/muster", "-n", "muster")
        assert inside.may("create", "pods", "-n", "muster-jobs")
        for words in (
            ("patch", "lease/other", "-n", "muster"),
            ("patch", "lease/muster", "-n", "kube-system"),
            ("create", "leases", "-n", "kube-system"),
            ("get", "secrets", "-n", "muster"),
            ("create", "pods", "-n", "muster"),
            ("get", "secrets", "-n", "kube-system"),
        ):
            assert not inside.may(*words), words
