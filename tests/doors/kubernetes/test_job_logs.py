"""`kubectl logs` of a job of another door, asked in this process of a Muster that runs it."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

from hostile.people import until
from hostile.teams import AMY, ANN, BEN, BOSS, Kube, kube
from muster.controller.messages import Caller
from muster.doors.kubernetes.serve.pod_logs import LogStream
from muster.model.job import Ask, JobSpec, TaskGroup
from muster.model.launch import Launch
from muster.model.value import ClassName, JobId, QueuePath, UserName

POD = "/api/v1/namespaces/team-a/pods"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        made.muster.accompany(made.app.job_pods)
        yield made


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    """One of Ann's, which her jobs can reach."""
    if os.geteuid() != 0:
        pytest.skip("only a Muster of root runs jobs of other people")
    with tempfile.TemporaryDirectory(prefix="muster-ann-") as made:
        shutil.chown(made, ANN)
        yield made


def submitted(api: Kube, folder: str, script: str) -> JobId:
    """A job of Ann's, as sbatch submits it."""
    spec = JobSpec(
        name="told",
        user=UserName(ANN),
        queue=QueuePath("team-a"),
        job_class=ClassName(""),
        groups=(TaskGroup(each=Ask(cpu_milli=100)),),
        launch=Launch(argv=("sh", "-c", script), workdir=folder),
    )
    caller = Caller(user=UserName(ANN), door="slurm")
    return api.muster.service.submit(caller, spec).result().jobs[0]


def path_in(api: Kube, job: JobId, phase: str) -> str:
    """Where its first pod is, once it is in this phase."""

    def found() -> tuple[str, str]:
        pods = api.ask("root", "GET", f"{POD}?labelSelector=muster.io/job={job}").body["items"]
        return next(
            ((each["metadata"]["name"], each["status"]["phase"]) for each in pods), ("", "")
        )

    name, _ = until(found, lambda seen: seen[1] == phase)
    return f"{POD}/{name}"


def read(api: Kube, who: str, path: str) -> bytes:
    """All of a log."""
    stream = api.ask(who, "GET", path).body
    assert isinstance(stream, LogStream), stream

    async def parts() -> list[bytes]:
        return [stream.first(), *[part async for part in stream.rest(asyncio.Event())]]

    return b"".join(asyncio.run(parts()))


@pytest.fixture(scope="module")
def ended(api: Kube, folder: str) -> str:
    job = submitted(api, folder, r"printf 'one\ntwo\n10%%\r20%%\nlast'")
    return path_in(api, job, "Succeeded")


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("", b"one\ntwo\n10%\r20%\nlast"),
        ("?follow=true", b"one\ntwo\n10%\r20%\nlast"),
        ("?tailLines=2", b"10%\r20%\nlast"),
        ("?tailLines=0", b""),
        ("?limitBytes=5", b"one\nt"),
        ("?container=main", b"one\ntwo\n10%\r20%\nlast"),
    ],
)
def test_the_pod_of_a_job_of_another_door_has_its_log(
    api: Kube, ended: str, asked: str, shown: bytes
) -> None:
    assert read(api, ANN, f"{ended}/log{asked}") == shown


@pytest.mark.parametrize(("who", "code"), [(BOSS, 200), (AMY, 403), (BEN, 403)])
def test_the_log_is_for_those_whom_muster_logs_shows_it(
    api: Kube, ended: str, who: str, code: int
) -> None:
    said = api.ask(who, "GET", f"{ended}/log")

    assert said.code == code, said.text


def test_who_is_bound_in_the_namespace_is_no_owner_of_the_job(api: Kube, ended: str) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "looks"},
        "roleRef": role,
        "subjects": [{"apiGroup": role["apiGroup"], "kind": "User", "name": AMY}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings"
    api.made("root", bindings, binding)

    stream = api.ask(AMY, "GET", f"{ended}/log").body

    assert isinstance(stream, LogStream)
    with pytest.raises(Exception, match="only they and their administrators"):
        stream.first()
    assert api.ask("root", "DELETE", f"{bindings}/looks").code == 200


@pytest.mark.parametrize("asked", ["timestamps=true", "sinceSeconds=5"])
def test_times_of_lines_are_not_to_be_had(api: Kube, ended: str, asked: str) -> None:
    said = api.ask(ANN, "GET", f"{ended}/log?{asked}")

    assert said.code == 400
    assert "leave out --timestamps, --since" in said.body["message"]


def test_the_log_is_followed_until_the_job_ends(api: Kube, folder: str) -> None:
    job = submitted(
        api, folder, "trap 'echo over; exit' TERM; echo begun; while :; do sleep 0.1; done"
    )
    path = path_in(api, job, "Running")
    until(lambda: read(api, ANN, f"{path}/log"), lambda seen: seen == b"begun\n")
    stream = api.ask(ANN, "GET", f"{path}/log?follow=true").body

    async def followed() -> bytes:
        found = stream.first()
        api.muster.service.cancel(Caller(user=UserName(ANN), door="slurm"), (job,)).result()
        async for part in stream.rest(asyncio.Event()):
            found += part
        return found

    # Its shell may say that it was terminated.
    lines = asyncio.run(followed()).splitlines()
    assert (lines[0], lines[-1]) == (b"begun", b"over")


def test_who_may_delete_the_pod_of_their_job_cancels_it(api: Kube, folder: str) -> None:
    path = path_in(api, submitted(api, folder, "sleep 600"), "Running")

    assert api.ask(AMY, "DELETE", path).code == 403
    said = api.ask(ANN, "DELETE", path)

    assert said.code in (200, 202), said.text
    until(lambda: api.ask("root", "GET", path).code, lambda code: code == 404)
