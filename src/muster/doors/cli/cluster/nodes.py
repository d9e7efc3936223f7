"""`muster nodes` and `muster drain`."""

import click

from muster.api.site import DeviceDocument, NodeDocument
from muster.doors.cli.options import example, list_options, node_argument
from muster.doors.cli.screen.printing import say, show_list
from muster.doors.cli.screen.table import Column
from muster.doors.cli.screen.text import jobs_text, listed, memory, number
from muster.doors.cli.surroundings import Call
from muster.model.value import Value


class OnNode(Value):
    """A device and the node that has it."""

    node: str
    pretend: bool
    device: DeviceDocument


@click.command(epilog=example("muster nodes", "muster nodes --devices", "muster nodes -o wide"))
@click.option("--devices", is_flag=True, help="One line for each GPU.")
@list_options
@click.pass_obj
def nodes(call: Call, *, devices: bool) -> None:
    """List nodes: what they have and how much of it is held."""
    found = list(call.client.nodes())
    if not devices:
        show_list(call, found, NODE_COLUMNS, name=lambda node: node.id, none="There are no nodes.")
        return
    each = [
        OnNode(node=node.id, pretend=node.pretend, device=device)
        for node in found
        for device in node.devices
    ]
    show_list(call, each, DEVICE_COLUMNS, name=lambda one: one.device.id, none="There are no GPUs.")


@click.command(epilog=example("muster drain node3 --reason 'new power supply'"))
@node_argument
@click.option("--reason", required=True, help="Why; all users see it.")
@click.pass_obj
def drain(call: Call, node: str, reason: str) -> None:
    """Let a node finish its jobs and take no new ones; `muster resume NODE` ends this."""
    found = call.client.drain(node, reason)
    running = f"; {jobs_text(found.jobs)} still there" if found.jobs else ""
    say(f"node {node} drains{running}")


def gpus(node: NodeDocument) -> str:
    """`3/4 A100-40GB (pretend)`, `3/4 A100-40GB, 1 failed`."""
    models = ",".join(node.gpu_models)
    have = f"{number(node.gpus_used)}/{node.gpus} {models}" if node.gpus else "-"
    failed = sum(not device.healthy for device in node.devices)
    shown = f"{have}, {failed} failed" if failed else have
    return f"{shown} (pretend)" if node.pretend else shown


def reason(node: NodeDocument) -> str:
    """Why it takes no work, and what is wrong with its GPUs."""
    failed = [device for device in node.devices if not device.healthy]
    reasons = [f"GPU {each.index}: {each.reason or 'has failed'}" for each in failed]
    return "; ".join(filter(None, (node.reason, *reasons)))


NODE_COLUMNS: list[Column[NodeDocument]] = [
    Column("NODE", lambda node: node.id),
    Column("STATE", lambda node: node.state, "state"),
    Column("CLUSTER", lambda node: node.cluster, "wide"),
    Column("POOL", lambda node: node.pool, "spare"),
    Column("GPUS", gpus),
    Column("CPUS", lambda node: f"{number(node.cpus_used)}/{number(node.cpus)}", "right"),
    Column(
        "MEMORY",
        lambda node: f"{memory(node.memory_used_mib)}/{memory(node.memory_mib)}",
        "right spare",
    ),
    Column("JOBS", lambda node: str(len(node.jobs)), "right spare"),
    Column(
        "LABELS", lambda node: ",".join(f"{k}={v}" for k, v in sorted(node.labels.items())), "wide"
    ),
    Column("REASON", reason, "flexible"),
]


def _mig(one: OnNode) -> str:
    if one.device.mig is None:
        return "off"
    return ",".join(one.device.mig) or "on, not cut"


DEVICE_COLUMNS: list[Column[OnNode]] = [
    Column("NODE", lambda one: one.node),
    Column("GPU", lambda one: str(one.device.index), "right"),
    Column(
        "MODEL", lambda one: f"{one.device.model} (pretend)" if one.pretend else one.device.model
    ),
    Column("MEMORY", lambda one: memory(one.device.memory_mib), "right"),
    Column("HEALTH", lambda one: "ok" if one.device.healthy else "fail", "state"),
    Column("USED", lambda one: f"{number(one.device.used_milli / 10)}%", "right"),
    Column("MIG", _mig),
    Column("ID", lambda one: one.device.id, "wide"),
    Column("JOBS", lambda one: listed(one.device.jobs), "flexible"),
    Column("REASON", lambda one: one.device.reason, "flexible"),
]
