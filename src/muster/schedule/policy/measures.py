"""What is done beside the decisions: jobs preempted, devices cut again, elastic jobs grown."""

from muster.model.gpu import Device
from muster.model.plan import Measure, Repartition, Start
from muster.schedule.policy.decide import Decider
from muster.schedule.policy.grow import grown
from muster.schedule.policy.search import CycleState
from muster.schedule.room.ledger import Ledger
from muster.schedule.room.slices import in_order
from muster.schedule.state.follow import PlannerState


def measures(kept: PlannerState, cycle: CycleState, decider: Decider) -> tuple[Measure, ...]:
    """In the order in which a controller should take them."""
    resizes = grown(kept, cycle)
    starts = [each for each in decider.decided.values() if isinstance(each, Start)]
    return (*decider.preempted, *_repartitions(starts, cycle.ledger), *resizes)


def _repartitions(starts: list[Start], ledger: Ledger) -> list[Repartition]:
    """Devices whose layout is not yet what the jobs that start there need."""
    found: dict[str, Repartition] = {}
    for start in starts:
        for placement in start.placements:
            room = ledger.rooms[placement.node]
            for share in placement.devices:
                place, device = _device(room.node.devices, share.device)
                state = room.devices[place]
                layout = None if device.mig is None else in_order(device.mig)
                if state is None or state.layout == layout:
                    continue
                found.setdefault(
                    device.id,
                    Repartition(
                        node=room.node.id,
                        device=device.id,
                        instances=state.layout,
                        for_job=start.job,
                    ),
                )
    return list(found.values())


def _device(devices: tuple[Device, ...], wanted: str) -> tuple[int, Device]:
    return next((place, each) for place, each in enumerate(devices) if each.id == wanted)
