"""What Pod Security refuses: a pod has the rights of the person who created it, and no others."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from muster.doors.kubernetes.objects.errors import StatusError, forbidden
from muster.doors.kubernetes.objects.kinds import POD
from muster.doors.kubernetes.objects.value import JsonObject, items, name_of, part
from muster.model.value import Value

_DEFAULT_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID "
    "SETPCAP SETUID SYS_CHROOT".split()
)
_BASELINE, _RESTRICTED = "baseline", "restricted"


class Identity(Value):
    """Who the processes of a pod are."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Violation(Value):
    """One rule that a pod breaks: its name, what breaks it, and the level that it belongs to."""

    rule: str
    detail: str
    level: str = _BASELINE


MayRead = Callable[[str], bool]
"""May the person read what lies at this path of the machine?"""


def refusal(pod: JsonObject, who: Identity, may_read: MayRead) -> StatusError | None:
    """Why the pod may not be, in the words of Pod Security; None where it may."""
    found = tuple(violations(part(pod, "spec"), who, may_read))
    if not found:
        return None
    level = _RESTRICTED if any(each.level == _RESTRICTED for each in found) else _BASELINE
    told = ", ".join(f"{each.rule} ({each.detail})" for each in found)
    return forbidden(POD, name_of(pod), f'violates PodSecurity "{level}:latest": {told}')


def violations(spec: JsonObject, who: Identity, may_read: MayRead) -> Iterator[Violation]:
    """Every rule that it breaks."""
    hosts = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    if hosts:
        detail = ", ".join(f"{name}=true" for name in hosts)
        yield Violation(rule="host namespaces", detail=detail)
    yield from _privileged(spec)
    yield from _capabilities(spec)
    yield from _host_paths(spec, may_read)
    sysctls = [str(each.get("name")) for each in items(spec, "securityContext", "sysctls")]
    if sysctls:
        yield Violation(rule="forbidden sysctls", detail=", ".join(sysctls))
    if who.uid:
        # Root may become anybody: that takes rights away, and gives none.
        yield from _users(spec, who)
        yield from _groups(spec, who)


def _containers(spec: JsonObject) -> list[Any]:
    return [*items(spec, "initContainers"), *items(spec, "containers")]


def _named(word: str, found: Sequence[str]) -> str:
    plural = "" if len(found) == 1 else "s"
    return f"{word}{plural} " + ", ".join(f'"{each}"' for each in found)


def _privileged(spec: JsonObject) -> Iterator[Violation]:
    found = [
        str(each.get("name"))
        for each in _containers(spec)
        if part(each, "securityContext").get("privileged")
    ]
    if found:
        detail = f"{_named('container', found)} must not set securityContext.privileged=true"
        yield Violation(rule="privileged", detail=detail)


def _capabilities(spec: JsonObject) -> Iterator[Violation]:
    added = {str(each.get("name")): _added_capabilities(each) for each in _containers(spec)}
    found = [name for name, more in added.items() if more]
    if found:
        every = sorted({each for more in added.values() for each in more})
        listed = ", ".join(f'"{each}"' for each in every)
        detail = f"{_named('container', found)} must not include {listed} in securityContext."
        yield Violation(rule="non-default capabilities", detail=f"{detail}capabilities.add")


def _added_capabilities(container: JsonObject) -> set[str]:
    added = map(str, items(container, "securityContext", "capabilities", "add"))
    return set(added) - _DEFAULT_CAPABILITIES


def _host_paths(spec: JsonObject, may_read: MayRead) -> Iterator[Violation]:
    found = [
        str(each.get("name"))
        for each in items(spec, "volumes")
        if "hostPath" in each and not may_read(str(part(each, "hostPath").get("path")))
    ]
    if found:
        yield Violation(rule="hostPath volumes", detail=_named("volume", found))


def _users(spec: JsonObject, who: Identity) -> Iterator[Violation]:
    told = [
        f"{whose} must not set runAsUser={uid}"
        for whose, uid in _set(spec, "runAsUser")
        if uid != who.uid
    ]
    if told:
        yield Violation(
            rule="runAsUser",
            detail=f"{', '.join(told)}: its processes have uid {who.uid}",
            level=_RESTRICTED,
        )


def _groups(spec: JsonObject, who: Identity) -> Iterator[Violation]:
    own = {who.gid, *who.groups}
    told = [
        f"{whose} must not set runAsGroup={gid}"
        for whose, gid in _set(spec, "runAsGroup")
        if gid not in own
    ]
    told += [
        f"pod must not set supplementalGroups={gid}"
        for gid in items(spec, "securityContext", "supplementalGroups")
        if gid not in own
    ]
    if told:
        yield Violation(rule="runAsGroup", detail=", ".join(told), level=_RESTRICTED)


def _set(spec: JsonObject, name: str) -> Iterator[tuple[str, int]]:
    """Who sets it, and to what."""
    own = part(spec, "securityContext").get(name)
    if own is not None:
        yield "pod", own
    for each in _containers(spec):
        wanted = part(each, "securityContext").get(name)
        if wanted is not None:
            yield f'container "{each.get("name")}"', wanted
