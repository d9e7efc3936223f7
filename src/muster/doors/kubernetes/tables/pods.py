"""Pods as rows: what their containers are doing, in one word."""

from muster.doors.kubernetes.controllers.pods import condition, is_finished, is_leaving, is_ready
from muster.doors.kubernetes.objects.rules import Printing
from muster.doors.kubernetes.objects.value import JsonObject, items, labels_of, name_of, part
from muster.doors.kubernetes.tables.cells import (
    AGE,
    NAME,
    NONE,
    Cell,
    age,
    containers,
    joined,
    shown_labels,
    since,
    text,
    wide,
)


def cells(pod: JsonObject) -> list[Cell]:
    spec, status = part(pod, "spec"), part(pod, "status")
    shown = _Shown(pod)
    addresses = items(pod, "status", "podIPs")
    return [
        name_of(pod),
        f"{shown.ready}/{shown.total}",
        shown.reason,
        shown.restarts(),
        age(pod),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


PODS = Printing(
    columns=(
        NAME,
        text("Ready"),
        text("Status"),
        text("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ),
    cells=cells,
)


def template_cells(template: JsonObject) -> list[Cell]:
    inner = part(template, "template")
    labels = shown_labels(labels_of(inner))
    return [name_of(template), *containers(part(inner, "spec")), labels]


POD_TEMPLATES = Printing(
    columns=(NAME, text("Containers"), text("Images"), text("Pod Labels")), cells=template_cells
)


class _Shown:
    """What is worked out from one container after the other."""

    def __init__(self, pod: JsonObject) -> None:
        spec, status = part(pod, "spec"), part(pod, "status")
        self._restartable = {
            each["name"]
            for each in items(pod, "spec", "initContainers")
            if each.get("restartPolicy") == "Always"
        }
        self._init_count = len(items(pod, "spec", "initContainers"))
        self.total = len(spec.get("containers", [])) + len(self._restartable)
        self.ready = 0
        self.reason: str = status.get("reason") or status.get("phase") or "Unknown"
        scheduled = condition(pod, "PodScheduled")
        if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
            self.reason = "SchedulingGated"
        self._restarts = 0
        self._last_restart = ""
        if not self._sees_init(pod) or _is_initialized(pod):
            self._sees_containers(pod)
        if is_leaving(pod) and status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif is_leaving(pod) and not is_finished(pod):
            self.reason = "Terminating"

    def restarts(self) -> Cell:
        if self._restarts and self._last_restart:
            return joined(f"{self._restarts} (", since(self._last_restart), " ago)")
        return str(self._restarts)

    def _sees_init(self, pod: JsonObject) -> bool:
        """Is the pod still busy with its init containers?"""
        for place, status in enumerate(items(pod, "status", "initContainerStatuses")):
            self._count_restarts(status)
            if _exit_code(status) == 0:
                continue
            if status["name"] in self._restartable and status.get("started"):
                self.ready += bool(status.get("ready"))
                continue
            self.reason = f"Init:{self._init_reason(status, place)}"
            return True
        return False

    def _init_reason(self, status: JsonObject, place: int) -> str:
        if _exit_code(status) is not None:
            return _ended_reason(status)
        waiting = part(status, "state", "waiting").get("reason", "")
        if waiting and waiting != "PodInitializing":
            return waiting
        return f"{place}/{self._init_count}"

    def _sees_containers(self, pod: JsonObject) -> None:
        self._restarts, self._last_restart = 0, ""
        for status in items(pod, "status", "initContainerStatuses"):
            if status["name"] in self._restartable:
                self._count_restarts(status)
        runs, error = False, ""
        for status in reversed(items(pod, "status", "containerStatuses")):
            self._count_restarts(status)
            waiting = part(status, "state", "waiting").get("reason")
            code = _exit_code(status)
            if waiting:
                self.reason = waiting
            elif code is not None:
                self.reason = _ended_reason(status)
                error = self.reason if code else error
            elif status.get("ready") and "running" in part(status, "state"):
                runs = True
                self.ready += 1
        if self.reason == "Completed":
            self.reason = _of_mixed(pod, error, runs=runs)

    def _count_restarts(self, status: JsonObject) -> None:
        self._restarts += status.get("restartCount", 0)
        last = part(status, "lastState", "terminated").get("finishedAt") or ""
        self._last_restart = max(self._last_restart, last)


def _of_mixed(pod: JsonObject, error: str, *, runs: bool) -> str:
    """The word for a pod of which at least one container has completed."""
    if runs and is_ready(pod):
        return "Running"
    if error:
        return error
    return "NotReady" if runs else "Completed"


def _is_initialized(pod: JsonObject) -> bool:
    found = condition(pod, "Initialized")
    return found is not None and found.get("status") == "True"


def _exit_code(status: JsonObject) -> int | None:
    if "terminated" not in part(status, "state"):
        return None
    return part(status, "state", "terminated").get("exitCode", 0)


def _ended_reason(status: JsonObject) -> str:
    ended = part(status, "state", "terminated")
    if ended.get("reason"):
        return str(ended["reason"])
    signal = ended.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"


def _readiness_gates(pod: JsonObject) -> str:
    gates = items(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    found = (condition(pod, each["conditionType"]) for each in gates)
    met = sum(each is not None and each.get("status") == "True" for each in found)
    return f"{met}/{len(gates)}"
