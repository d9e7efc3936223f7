"""A device breaks under a job: the job goes elsewhere, nothing lands there until it is mended."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from live.house import GPUS, Process, ended, folder, running, shell, until
from muster import Client
from muster.api.site import NodeDocument
from muster.backends.local.hardware.pretend import break_devices
from muster.model.value import DeviceId
from muster.settings import Settings

pytestmark = pytest.mark.slow

WHY = "Xid 79: the GPU has fallen off the bus"


@contextmanager
def daemon(nodes: int) -> Generator[tuple[Process, Client]]:
    with folder() as place:
        process = Process(place / "home", Settings(nodes=nodes, gpus=GPUS))
        try:
            process.start()
            until(process.leads, bool)
            with process.client() as client:
                until(lambda: len(list(client.nodes())), lambda seen: seen == nodes)
                yield process, client
                live = [job.id for job in client.all_jobs()]
                client.cancel(live)
                ended(client, live)
        finally:
            process.stop()


def sick(node: NodeDocument) -> dict[str, str]:
    return {device.id: device.reason for device in node.devices if not device.healthy}


def broken(process: Process, client: Client, device: str) -> None:
    """Break a device, and wait until that is known."""
    break_devices(process.home, {DeviceId(device): WHY})
    name = device.partition("/")[0]
    until(lambda: sick(client.node(name)), lambda found: found == {device: WHY})


def test_the_job_on_a_broken_device_runs_again_elsewhere() -> None:
    with daemon(nodes=1) as (process, client):
        job = client.submit_document(shell("sleep 600")).id
        held = running(client, job).tasks[0].devices[0].device

        broken(process, client, held)
        number = held.rpartition("/")[2].removeprefix("gpu")
        problem = f"GPU {number} of node pretend1 has failed: {WHY}"
        assert client.status().problems == (problem,)
        again = until(
            lambda: client.job(job), lambda seen: seen.state == "running" and seen.attempt == 2
        )

        reason = again.attempts[0].reason
        assert reason is not None
        assert reason.kind == "node_failed"
        assert again.tasks[0].devices[0].device != held


def test_nothing_new_lands_on_a_broken_device() -> None:
    with daemon(nodes=1) as (process, client):
        broken(process, client, "pretend1/gpu2")

        jobs = [client.submit_document(shell("sleep 600")).id for _ in range(4)]
        taken = {running(client, job).tasks[0].devices[0].device for job in jobs[:3]}
        waits = client.explain(jobs[3])

        assert taken == {"pretend1/gpu0", "pretend1/gpu1", "pretend1/gpu3"}
        assert waits.state == "pending"


def test_undraining_the_node_mends_the_device_and_lets_work_land_on_it() -> None:
    with daemon(nodes=1) as (process, client):
        broken(process, client, "pretend1/gpu0")
        jobs = [client.submit_document(shell("sleep 600")).id for _ in range(4)]
        for job in jobs[:3]:
            running(client, job)

        client.undrain("pretend1")

        assert running(client, jobs[3]).tasks[0].devices[0].device == "pretend1/gpu0"
        assert sick(client.node("pretend1")) == {}


def test_what_runs_on_the_other_devices_of_the_node_goes_on() -> None:
    with daemon(nodes=1) as (process, client):
        jobs = [client.submit_document(shell("sleep 600")).id for _ in range(2)]
        devices = [running(client, job).tasks[0].devices[0].device for job in jobs]

        broken(process, client, devices[0])

        assert client.job(jobs[1]).state == "running"
        assert client.job(jobs[1]).attempt == 1
