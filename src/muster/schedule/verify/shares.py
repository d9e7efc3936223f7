"""What a task is given is what its group asked for."""

from collections.abc import Iterator

from muster.model.gpu import Device, GpuAsk, Mig, TimeShare, enforcement
from muster.model.job import gpu_milli
from muster.model.resources import Resources
from muster.schedule.verify.additions import Task
from muster.schedule.verify.case import Case
from muster.schedule.verify.violation import Violation


def amounts_are_the_ask(case: Case) -> Iterator[Violation]:
    """`amount` equals what the group's ask comes to on that GPU model."""
    for addition in case.placed:
        for task in addition.tasks:
            each, amount = task.group.each, task.placement.amount
            milli = _asked_milli(each.gpus, task)
            if (
                amount.cpu_milli == each.cpu_milli
                and amount.memory_mib == each.memory_mib
                and amount.gpu_milli == milli
            ):
                continue
            asked = Resources(cpu_milli=each.cpu_milli, memory_mib=each.memory_mib, gpu_milli=milli)
            text = f"It asks for {_words(asked)} on {task.node.id} and is given {_words(amount)}."
            yield Violation(rule="amount", subject=f"job {task.job.id}", text=text)


def devices_are_the_ask(case: Case) -> Iterator[Violation]:
    """As many shares as asked for, of that slice, kept as it is kept, on devices that suit.

    They are devices of that node, healthy, of an accepted model and with the memory asked for.
    Whole GPUs, MPS shares and time shares of one task are on distinct devices.
    """
    for addition in case.placed:
        for task in addition.tasks:
            gpus = task.group.each.gpus
            if gpus is None and not task.placement.devices:
                continue
            for text in _share_faults(task, gpus or GpuAsk(count=0), case):
                yield Violation(rule="devices", subject=f"job {task.job.id}", text=text)


def _asked_milli(gpus: GpuAsk | None, task: Task) -> int:
    # A time share of no replicas cannot be counted.
    if gpus is not None and isinstance(gpus.slice, TimeShare) and gpus.slice.replicas < 1:
        return -1
    return gpu_milli(gpus, task.model)


def _words(amount: Resources) -> str:
    return f"{amount.cpu_milli} CPU milli, {amount.memory_mib} MiB, {amount.gpu_milli} GPU milli"


def _share_faults(task: Task, gpus: GpuAsk, case: Case) -> Iterator[str]:
    shares, node = task.placement.devices, task.node.id
    if len(shares) != gpus.count:
        yield f"A task on {node} has {len(shares)} device shares and asks for {gpus.count}."
    named = {share.device for share in shares}
    if len(task.devices) != len(named):
        yield f"Node {node} has {len(task.devices)} of the {len(named)} devices that are named."
    if not isinstance(gpus.slice, Mig) and len(named) < len(shares):
        yield f"A task on {node} has {len(shares)} GPUs or shares on {len(named)} devices."
    cluster = case.snapshot.clusters.get(task.node.cluster)
    kept = enforcement(gpus.slice, walled=cluster is None or cluster.abilities.device_wall)
    for share in shares:
        if share.slice != gpus.slice:
            yield f"Device {share.device} gives {share.slice} instead of {gpus.slice}."
        if share.enforced is not kept:
            yield f"Device {share.device} says that {share.enforced} keeps it, and {kept} does."
    for device in task.devices:
        yield from _device_faults(device, gpus)


def _device_faults(device: Device, gpus: GpuAsk) -> Iterator[str]:
    if not device.healthy:
        yield f"Device {device.id} is not healthy."
    if gpus.models and device.model not in gpus.models:
        yield f"Device {device.id} is a {device.model}, not one of {', '.join(gpus.models)}."
    if device.memory_mib < gpus.min_memory_mib:
        yield f"Device {device.id} has {device.memory_mib} MiB of {gpus.min_memory_mib} asked for."
