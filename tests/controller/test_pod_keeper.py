"""Pods say what became of their jobs, whoever else writes them at the same time."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from containers.hidden import path_without_tools
from controller.test_service import ROOT, until
from muster.app.parts import Muster, clock
from muster.controller.queries.queries import Queries
from muster.controller.use_cases.objects import ObjectsWrite, Written
from muster.controller.use_cases.service import Service
from muster.controller.world.journal import Write
from muster.doors.config.default import DEFAULT_SITE
from muster.doors.kubernetes.objects.kinds import NAMESPACE, POD
from muster.doors.kubernetes.objects.value import JsonObject, part
from muster.doors.kubernetes.serve.app import KubernetesApp, kubernetes_app
from muster.doors.kubernetes.serve.call import Target, Writing
from muster.doors.kubernetes.serve.keys import KeyFolder, open_keys
from muster.doors.kubernetes.serve.writing import Author, Request
from muster.model.queue import Queue
from muster.model.value import QueuePath, replace
from muster.settings import Settings

LAB = QueuePath("lab")
ALONE = Queue(path=LAB, images_on_host=True)
SITE = replace(DEFAULT_SITE, queues={**DEFAULT_SITE.queues, LAB: ALONE})
ONE = Author(caller=ROOT)


class Crossed(Service):
    """Before a pod is written, whoever stands first in its row does something."""

    def __init__(self, write: Write, queries: Queries) -> None:
        super().__init__(write, queries)
        self.before: dict[str, list[Callable[[], object]]] = {}

    def write_objects(self, request: ObjectsWrite) -> "Future[tuple[Written, ...]]":
        for each in request.writes:
            row = self.before.get(each.key.name)
            if each.key.resource == POD.plural and row:
                row.pop(0)()
        return super().write_objects(request)


class Lab:
    """A namespace whose pods run as plain processes, and a keeper that is crossed."""

    def __init__(self, muster: Muster, keys: KeyFolder) -> None:
        self.service = Crossed(muster.writer.write, muster.service.queries)
        self._muster = muster
        self._keys = keys
        self.app = self._door()

    def is_kept_by_another(self, meanwhile: Callable[[], object]) -> None:
        """Another process takes over, after something has happened of which nobody told it."""
        self.app.close()
        meanwhile()
        self.app = self._door()

    def _door(self) -> KubernetesApp:
        made = kubernetes_app(self.service, clock, self._keys, "127.0.0.1:0")
        self._muster.accompany(made.keeper)
        return made

    def runs(self, name: str) -> None:
        container = {"name": "c", "image": "any:1", "command": ["sleep", "600"]}
        self.app.api.writer.create(
            self._request(""),
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        )

    def marks(self, name: str) -> None:
        def marked(old: JsonObject | None) -> JsonObject:
            assert old is not None
            return {**old, "metadata": {**old["metadata"], "annotations": {"seen": "yes"}}}

        self.app.api.writer.change(self._request(name), marked)

    def ends_all_jobs(self) -> None:
        live = tuple(self._muster.journal.record.jobs)
        for each in reversed(live):
            self.service.cancel(ROOT, (each,)).result()
        until(lambda: self._muster.journal.record.jobs, lambda jobs: not jobs)

    def phase(self, name: str) -> str:
        pod = self.app.api.view.get(POD, LAB, name)
        return "" if pod is None else str(part(pod, "status").get("phase"))

    def _request(self, name: str) -> Request:
        return Request(
            target=Target(kind=POD, namespace=LAB, name=name),
            writing=Writing(manager="test"),
            author=ONE,
            blueprint=self.app.api.kinds.blueprint(POD),
        )


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("PATH", path_without_tools(tmp_path / "bin"))
    muster = Muster(tmp_path, Settings(store="memory:", nodes=1, gpus="2xA100-40GB"), SITE)
    muster.start()
    made = Lab(muster, open_keys(tmp_path / "kubernetes", "127.0.0.1"))
    try:
        until(lambda: made.app.api.view.find(NAMESPACE, "", LAB), bool)
        yield made
        made.ends_all_jobs()
    finally:
        made.app.close()
        muster.close()


def test_a_pod_that_others_change_keeps_no_other_pod_from_being_told_how_it_ended(
    lab: Lab,
) -> None:
    lab.runs("quiet")
    until(lambda: lab.phase("quiet"), lambda phase: phase == "Running")
    # When the second is written first, both jobs end; when that is told, somebody is quicker.
    lab.service.before["busy"] = [lambda: None, lab.ends_all_jobs, lambda: lab.marks("busy")]

    lab.runs("busy")

    until(lambda: lab.phase("busy"), lambda phase: phase == "Failed")
    until(lambda: lab.phase("quiet"), lambda phase: phase == "Failed")


def test_who_takes_over_finds_the_pods_whose_end_nobody_has_told_yet(lab: Lab) -> None:
    lab.runs("quiet")
    until(lambda: lab.phase("quiet"), lambda phase: phase == "Running")

    lab.is_kept_by_another(lab.ends_all_jobs)

    until(lambda: lab.phase("quiet"), lambda phase: phase == "Failed")
