"""What the installation knows of itself, for `muster doctor`."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.app.engines import caution_of, manner_of, seen
from muster.app.recovery import ADVICE, listed
from muster.backends.kept import attempts_kept, was_used
from muster.backends.local.hardware.machine import find_machine
from muster.backends.local.isolation import cgroup, container
from muster.client.address import own_home
from muster.doors.cli.daemon.port import Check, DoctorOptions, DoctorReport, Level
from muster.model.errors import MusterError
from muster.settings import (
    BadSettingsError,
    KubernetesCluster,
    OtherCluster,
    Settings,
    clusters_of,
    jobs_home,
    read_settings,
    sqlite_file,
    store_url,
)
from muster.stores.sqlite import examined


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
    containers = container_check(container.tools_found(), is_root=os.geteuid() == 0)
    checks = (
        _database(home, settings),
        containers,
        *_walls(),
        *_checks(home, settings),
        *map(_cluster, clusters_of(home, settings)),
    )
    return DoctorReport(home=home, store=store, checks=checks)


def _database(home: Path, settings: Settings) -> Check:
    path, jobs = sqlite_file(home, settings), jobs_home(home, settings)
    if path is None:
        return Check(name="database", level=Level.OK, text="PostgreSQL; the server says how it is")
    if home.exists() and home.stat().st_uid != os.geteuid():
        text = f"{path} belongs to another user, as it should"
        return Check(name="database", level=Level.OK, text=text)
    if not path.exists() and not was_used(jobs):
        return Check(name="database", level=Level.OK, text="none here yet; muster up makes it")
    if not path.exists():
        return Check(name="database", level=Level.FAIL, text=f"{path} is gone", advice=ADVICE)
    return _examined(path, jobs)


def _cluster(cluster: OtherCluster) -> Check:
    """One that is used besides this machine."""
    kind, _ = manner_of(cluster)
    name = f"cluster {cluster.name}"
    try:
        found = seen(cluster)
    except BadSettingsError as error:
        text, _, advice = str(error).partition("; ")
        return Check(name=name, level=Level.FAIL, text=text, advice=advice)
    gpus = sum(len(node.devices) for node in found)
    text = f"{kind}: {len(found)} nodes with {gpus} GPUs answer"
    if isinstance(cluster, KubernetesCluster) and not cluster.image:
        advice = "name one with muster cluster add --image, or jobs must name theirs"
        text = f"{text}; scripts without an image do not run there"
        return Check(name=name, level=Level.WARN, text=text, advice=advice)
    if caution := caution_of(cluster):
        said, _, advice = caution.partition("; ")
        return Check(name=name, level=Level.WARN, text=f"{text}; {said}", advice=advice)
    return Check(name=name, level=Level.OK, text=text)


def container_check(found: Mapping[str, bool], *, is_root: bool) -> Check:
    """What runs images here. found: tools by their paths, and whether each can be used now."""
    usable = ", ".join(path for path, is_up in found.items() if is_up)
    if is_root and Path(usable.partition(",")[0]).name == "docker":
        text = f"{usable}, whose daemon mounts working folders by their path; pods with a "
        text += "hostPath or subPath are refused"
        advice = "install podman where users do not trust each other: see docs/security.md"
        return Check(name="containers", level=Level.WARN, text=text, advice=advice)
    if all(found.values()) and found:
        has_pods = any(map(container.runs_pods, found))
        text = usable if has_pods else f"{usable}; pods of the Kubernetes API take podman or docker"
        return Check(name="containers", level=Level.OK, text=text)
    if found:
        text = f"docker is installed, but its daemon does not answer at {container.DOCKER_SOCKET}"
        text += f"; jobs use {usable}" if usable else "; jobs with --image are refused"
        advice = "start it, for instance with systemctl start docker, or remove docker"
        return Check(name="containers", level=Level.WARN, text=text, advice=advice)
    advice = "install podman, docker or apptainer if jobs shall use --image"
    return Check(
        name="containers", level=Level.WARN, text="no container tool is there", advice=advice
    )


def _walls() -> Iterator[Check]:
    """What keeps jobs apart here, found out by trying."""
    if os.geteuid() != 0:
        text = "Muster does not run as root: all jobs are this user's, and nothing keeps them apart"
        yield Check(name="walls", level=Level.OK, text=text)
        return
    roots = cgroup.roots(f"muster-doctor-{os.getpid()}")
    try:
        why_not = cgroup.why_no_wall(roots)
    finally:
        cgroup.give_up(roots)
    advice = "see docs/security.md for what each wall needs"
    for problem in (*roots.problems, *filter(None, [why_not])):
        yield Check(name="walls", level=Level.WARN, text=problem, advice=advice)
    if why_not is None:
        text = "the kernel keeps each job to the GPUs that it was given"
        yield Check(name="walls", level=Level.OK, text=text)
    if not roots.problems:
        text = "the kernel keeps the limits of memory, CPUs and processes"
        yield Check(name="walls", level=Level.OK, text=text)


def _examined(path: Path, jobs: Path) -> Check:
    try:
        found = examined(path)
    except MusterError as error:
        text, _, advice = str(error).partition("; ")
        return Check(name="database", level=Level.FAIL, text=text, advice=advice)
    unknown = sorted({kept.job for kept in attempts_kept(jobs) if kept.job >= found.next_job})
    if unknown:
        text = f"{path} does not know jobs that run ({listed(unknown)})"
        return Check(name="database", level=Level.FAIL, text=text, advice=ADVICE)
    if found.version == 0 and was_used(jobs):
        text = f"{path} is empty, but {jobs} was in use"
        return Check(name="database", level=Level.FAIL, text=text, advice=ADVICE)
    return Check(name="database", level=Level.OK, text=f"{path} is whole and can be written")


def _checks(home: Path, settings: Settings) -> Iterator[Check]:
    if settings.only_clusters:
        yield Check(name="hardware", level=Level.OK, text="no jobs on this machine, as you said")
        return
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
