"""What the installation knows of itself, for `muster doctor`."""

from collections.abc import Iterator
from pathlib import Path

from muster.backends.local.hardware.machine import find_machine
from muster.client.address import own_home
from muster.doors.cli.daemon.port import Check, DoctorOptions, DoctorReport, Level
from muster.model.errors import MusterError
from muster.settings import Settings, read_settings, store_url


def doctor_report(options: DoctorOptions) -> DoctorReport:
    """The settings that are kept, and what is found on the machine."""
    home = (options.home or own_home()).resolve()
    try:
        settings = read_settings(home)
    except PermissionError:
        text = f"the settings in {home} belong to another user, as they should"
        check = Check(name="settings", level=Level.OK, text=text)
        return DoctorReport(home=home, store="", checks=(check,))
    store = store_url(home, settings).partition("@")[2] or store_url(home, settings)
    return DoctorReport(home=home, store=store, checks=tuple(_checks(home, settings)))


def _checks(home: Path, settings: Settings) -> Iterator[Check]:
    if settings.racks:
        text = f"{sum(rack.count for rack in settings.racks)} pretend nodes from a file"
        yield Check(name="hardware", level=Level.OK, text=text)
        return
    if settings.nodes is not None or settings.gpus is not None:
        text = f"{settings.nodes or 1} pretend nodes with {settings.gpus or 'no GPUs'}"
        yield Check(name="hardware", level=Level.OK, text=text)
        return
    try:
        machine = find_machine(home)
    except (MusterError, OSError) as error:
        advice = "run muster up with --nodes 1 to try things out without it"
        yield Check(name="hardware", level=Level.FAIL, text=str(error), advice=advice)
        return
    for node in machine.nodes():
        gpus = ", ".join(device.model for device in node.devices) or "no GPUs"
        text = f"{node.id}: {node.cpu_milli // 1_000} CPUs, {node.memory_mib} MiB, {gpus}"
        yield Check(name="hardware", level=Level.OK, text=text)
    for remark in machine.remarks():
        yield Check(name="GPUs", level=Level.OK, text=remark)
    machine.close()
