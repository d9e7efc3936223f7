"""Who hears of what devices do: everybody in the events, and jobs of their own devices."""

from controller.desk import Desk, node
from muster.controller.loop.devices import NOT_SAID, with_devices
from muster.doors.rest.words import happened
from muster.model.event import DeviceErred, DeviceJudged, JobStruck, NodeSeen
from muster.model.gpu import DeviceState
from muster.model.value import DeviceId, Instant, NodeId, replace

AT = Instant(1)


def erred(device: str, xid: int = 31) -> DeviceErred:
    return DeviceErred(at=AT, node=NodeId("n1"), device=DeviceId(device), xid=xid)


def test_a_job_is_told_of_the_errors_of_its_own_devices() -> None:
    desk = Desk(nodes=1, gpus=2)
    job = desk.submits(gpus=1, lasts=600)
    desk.lets_pass(10)
    (held,) = (each.device for each in desk.holds()[job].placements[0].devices)
    other = next(f"n1/gpu{index}" for index in range(2) if held != f"n1/gpu{index}")

    own = list(with_devices(erred(held), None, desk.holds()))
    others = list(with_devices(erred(other), None, desk.holds()))
    anybodys = list(with_devices(erred(NOT_SAID), None, desk.holds()))

    struck = JobStruck(at=AT, job=job, attempt=1, node=NodeId("n1"), device=held, xid=31)
    assert own == [erred(held), struck]
    assert others == [erred(other)]
    assert anybodys[1:] == [replace(struck, device=NOT_SAID)]
    assert happened(struck) == (
        f"GPU {held} of node n1, which it holds, reported "
        "Xid 31: a kernel used memory that is not its own; NVIDIA's advice: restart the program."
    )


def test_it_is_told_once_that_a_device_is_trusted_less_or_more() -> None:
    well = node("n1", 2)
    first, second = well.devices
    suspect = replace(first, judged=DeviceState.SUSPECT, reason="Xid 63")
    worse = replace(well, devices=(suspect, second))

    found = list(with_devices(NodeSeen(at=AT, node=worse), well, {}))
    again = list(with_devices(NodeSeen(at=AT, node=worse), worse, {}))
    better = list(with_devices(NodeSeen(at=AT, node=well), worse, {}))
    new = list(with_devices(NodeSeen(at=AT, node=well), None, {}))

    judged = DeviceJudged(
        at=AT, node=NodeId("n1"), device=first.id, state=DeviceState.SUSPECT, why="Xid 63"
    )
    assert found[1:] == [judged]
    assert happened(judged) == "GPU n1/gpu0 of node n1 is suspect: Xid 63."
    assert (again[1:], new[1:]) == ([], [])
    assert better[1:] == [replace(judged, state=DeviceState.WELL, why="")]


def test_errors_and_judgements_are_kept_in_the_log() -> None:
    desk = Desk(nodes=1, gpus=1)

    desk.applies(erred("n1/gpu0"))

    assert desk.record.nodes[NodeId("n1")].devices[0].healthy
