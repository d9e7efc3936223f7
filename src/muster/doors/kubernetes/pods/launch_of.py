"""What the containers of a pod run, and what they find around them, as Muster keeps it. Pure.

What is known of the pod when it is made is put in here; what is secret is only named.
"""

import json
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING
from typing import Any

from muster.doors.kubernetes.objects.value import (
    JsonObject,
    annotations_of,
    items,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    part,
)
from muster.doors.kubernetes.pods import quantities
from muster.doors.kubernetes.pods.resources import is_gpu, is_sidecar
from muster.model.pod import (
    CheckpointSeen,
    Container,
    EmptyFolder,
    Exec,
    FileOf,
    Files,
    GrpcHealth,
    HostFolder,
    HttpGet,
    KeyOf,
    KeysAsFiles,
    Mount,
    OfNode,
    PodLaunch,
    Probe,
    Pull,
    Restart,
    Said,
    Sleep,
    SourceKind,
    Stage,
    TcpConnect,
    Text,
    TextsAsFiles,
    TokenFile,
    Variable,
    VariablesOf,
    Volume,
)
from muster.model.resources import Resources

READINESS = "muster.io/readiness"
"""An annotation: with `checkpoint`, a container is ready when it has written one since it began."""

_PULLS = {"Always": Pull.ALWAYS, "IfNotPresent": Pull.IF_MISSING, "Never": Pull.NEVER}
_RESTARTS = {"Always": Restart.ALWAYS, "OnFailure": Restart.ON_FAILURE, "Never": Restart.NEVER}
_OF_NODE = {
    "spec.nodeName": "name",
    "status.hostIP": "ip",
    "status.hostIPs": "ip",
    "status.podIP": "pod_ip",
    "status.podIPs": "pod_ip",
}
_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['(.+)'\]")
_MIB = 1_024**2
_LONGEST_HOSTNAME = 63


def pod_launch(pod: JsonObject) -> PodLaunch:
    """All containers of the pod, those first that come first."""
    spec, meta = part(pod, "spec"), metadata(pod)
    inits = [
        _container(pod, each, Stage.SIDECAR if is_sidecar(each) else Stage.INIT)
        for each in items(spec, "initContainers")
    ]
    mains = [_container(pod, each, Stage.MAIN) for each in items(spec, "containers")]
    return PodLaunch(
        namespace=namespace_of(pod),
        name=name_of(pod),
        uid=str(meta.get("uid") or ""),
        containers=(*inits, *mains),
        volumes=tuple(_volume(pod, each) for each in items(spec, "volumes")),
        restart=_RESTARTS[spec.get("restartPolicy", "Always")],
        grace_s=max(0, int(spec.get("terminationGracePeriodSeconds", 30))),
        account=str(spec.get("serviceAccountName") or "default"),
        hostname=_hostname(pod),
        aliases=tuple(
            (str(name), str(each.get("ip")))
            for each in items(spec, "hostAliases")
            for name in items(each, "hostnames")
        ),
        groups=tuple(map(int, items(spec, "securityContext", "supplementalGroups"))),
        volume_group=part(spec, "securityContext").get("fsGroup"),
    )


def _hostname(pod: JsonObject) -> str:
    """No longer than a kernel takes; names of pods may be."""
    spec = part(pod, "spec")
    named = str(spec.get("hostnameOverride") or spec.get("hostname") or name_of(pod))
    return named[:_LONGEST_HOSTNAME].rstrip("-.")


def _container(pod: JsonObject, own: JsonObject, stage: Stage) -> Container:
    limits, around = part(own, "resources", "limits"), _around(pod, own)
    command = items(own, "command")
    return Container(
        name=str(own["name"]),
        image=str(own.get("image") or ""),
        stage=stage,
        entrypoint=tuple(map(str, command)) if command else None,
        args=tuple(map(str, items(own, "args"))),
        env=tuple(
            Variable(name=str(each["name"]), value=_said(pod, own, each))
            for each in items(own, "env")
        ),
        env_of=tuple(map(_bulk, items(own, "envFrom"))),
        workdir=own.get("workingDir") or None,
        mounts=tuple(map(_mount, items(own, "volumeMounts"))),
        pull=_PULLS[own.get("imagePullPolicy", "IfNotPresent")],
        cpu_milli=quantities.milli(limits["cpu"]) if "cpu" in limits else 0,
        memory_mib=quantities.mib(limits["memory"]) if "memory" in limits else 0,
        after_start=_hook(part(own, "lifecycle", "postStart"), own),
        before_stop=_hook(part(own, "lifecycle", "preStop"), own),
        stop_signal=part(own, "lifecycle").get("stopSignal"),
        startup=_probe(own, "startupProbe"),
        liveness=_probe(own, "livenessProbe"),
        readiness=_readiness(pod, own, stage),
        message_path=str(own.get("terminationMessagePath") or "/dev/termination-log"),
        message_of_log=own.get("terminationMessagePolicy") == "FallbackToLogsOnError",
        stdin=bool(own.get("stdin")),
        stdin_once=bool(own.get("stdinOnce")),
        tty=bool(own.get("tty")),
        read_only=bool(around.get("readOnlyRootFilesystem")),
        not_root=bool(around.get("runAsNonRoot")),
        user=around.get("runAsUser"),
        group=around.get("runAsGroup"),
        asks=_asks(own),
    )


def _asks(own: JsonObject) -> Resources:
    """As the pod's whole is counted: of memory its limit, where that is more."""
    requests, limits = (part(own, "resources", which) for which in ("requests", "limits"))
    gpus = [int(quantities.amount(requests[each])) for each in requests if is_gpu(each)]
    memory = [each["memory"] for each in (requests, limits) if "memory" in each]
    return Resources(
        cpu_milli=quantities.milli(requests.get("cpu", "0")),
        memory_mib=max(map(quantities.mib, memory), default=0),
        gpu_milli=1_000 * sum(gpus),
    )


def _around(pod: JsonObject, own: JsonObject) -> JsonObject:
    """The container's security, over the pod's."""
    return {**part(pod, "spec", "securityContext"), **part(own, "securityContext")}


def _said(pod: JsonObject, own: JsonObject, variable: JsonObject) -> Said:
    source = part(variable, "valueFrom")
    if not source:
        return Text(value=str(variable.get("value") or ""))
    for name, kind in (
        ("configMapKeyRef", SourceKind.CONFIG_MAP),
        ("secretKeyRef", SourceKind.SECRET),
    ):
        if name in source:
            found = part(source, name)
            return KeyOf(
                kind=kind,
                name=str(found.get("name")),
                key=str(found.get("key")),
                optional=bool(found.get("optional")),
            )
    return _shown(pod, own, source)


def _shown(pod: JsonObject, own: JsonObject, source: JsonObject) -> Said:
    """A field of the pod, or an amount of a container."""
    if "resourceFieldRef" in source:
        return _amount(pod, own, part(source, "resourceFieldRef"))
    path = str(part(source, "fieldRef").get("fieldPath"))
    if path in _OF_NODE:
        return OfNode(what=_OF_NODE[path])
    return Text(value=field_text(pod, path))


def field_text(pod: JsonObject, path: str) -> str:
    """A field of the pod as variables and files show it."""
    found = _SUBSCRIPT.fullmatch(path)
    mapped: Mapping[str, Mapping[str, str]] = {
        "metadata.labels": labels_of(pod),
        "metadata.annotations": annotations_of(pod),
    }
    if found is not None:
        return str(mapped[found[1]].get(found[2], ""))
    if path in mapped:
        return "\n".join(
            f"{key}={json.dumps(value)}" for key, value in sorted(mapped[path].items())
        )
    at: Any = pod
    for name in path.split("."):
        at = part({"": at}, "").get(name)
    return "" if at is None else str(at)


def _amount(pod: JsonObject, own: JsonObject, reference: JsonObject) -> Said:
    """Rounded up to a multiple of the divisor; without a limit, what the node has."""
    which, _, resource = str(reference.get("resource")).partition(".")
    named = reference.get("containerName")
    container = own if not named else _named(pod, str(named))
    asked = part(container, "resources", which).get(resource)
    divisor = quantities.amount(reference.get("divisor", "0")) or quantities.amount("1")
    if asked is None and which == "limits" and resource in ("cpu", "memory"):
        scale = 1_000 if resource == "cpu" else 1
        return OfNode(what=resource, divisor=int(divisor * scale))
    amount = quantities.amount(asked if asked is not None else "0")
    return Text(value=str((amount / divisor).to_integral_value(ROUND_CEILING)))


def _named(pod: JsonObject, name: str) -> JsonObject:
    spec = part(pod, "spec")
    every = (*items(spec, "containers"), *items(spec, "initContainers"))
    nothing: JsonObject = {}
    return next((each for each in every if each.get("name") == name), nothing)


def _bulk(source: JsonObject) -> VariablesOf:
    is_secret = "secretRef" in source
    found = part(source, "secretRef" if is_secret else "configMapRef")
    return VariablesOf(
        kind=SourceKind.SECRET if is_secret else SourceKind.CONFIG_MAP,
        name=str(found.get("name")),
        prefix=str(source.get("prefix") or ""),
        optional=bool(found.get("optional")),
    )


def _mount(mount: JsonObject) -> Mount:
    expression = str(mount.get("subPathExpr") or "")
    return Mount(
        volume=str(mount.get("name")),
        path=str(mount.get("mountPath")),
        read_only=bool(mount.get("readOnly")),
        part=expression or str(mount.get("subPath") or ""),
        expands=bool(expression),
    )


def _hook(action: JsonObject, own: JsonObject) -> Exec | HttpGet | TcpConnect | Sleep | None:
    if not action:
        return None
    if "sleep" in action:
        return Sleep(seconds=int(part(action, "sleep").get("seconds", 0)))
    return _action(action, own)


def _action(action: JsonObject, own: JsonObject) -> Exec | HttpGet | TcpConnect:
    if "exec" in action:
        return Exec(argv=tuple(map(str, items(action, "exec", "command"))))
    if "tcpSocket" in action:
        tcp = part(action, "tcpSocket")
        return TcpConnect(port=_port(tcp.get("port"), own), host=str(tcp.get("host") or ""))
    http = part(action, "httpGet")
    return HttpGet(
        port=_port(http.get("port"), own),
        path=str(http.get("path") or "/"),
        host=str(http.get("host") or ""),
        secure=http.get("scheme") == "HTTPS",
        headers=tuple(
            (str(each.get("name")), str(each.get("value"))) for each in items(http, "httpHeaders")
        ),
    )


def _port(port: Any, own: JsonObject) -> int:
    """A number, or the name of one of the container's ports; 0 where there is no such."""
    if isinstance(port, int):
        return port
    ports = {str(each.get("name")): int(each["containerPort"]) for each in items(own, "ports")}
    return int(port) if str(port).isdecimal() else ports.get(str(port), 0)


def _probe(own: JsonObject, name: str) -> Probe | None:
    written = part(own, name)
    if not written:
        return None
    grpc = part(written, "grpc")
    return Probe(
        action=_health(grpc) if grpc else _action(written, own),
        delay_s=int(written.get("initialDelaySeconds", 0)),
        period_s=int(written.get("periodSeconds", 10)),
        timeout_s=int(written.get("timeoutSeconds", 1)),
        successes=int(written.get("successThreshold", 1)),
        failures=int(written.get("failureThreshold", 3)),
        grace_s=written.get("terminationGracePeriodSeconds"),
    )


def _health(grpc: JsonObject) -> GrpcHealth:
    return GrpcHealth(port=int(grpc.get("port", 0)), service=str(grpc.get("service") or ""))


def _readiness(pod: JsonObject, own: JsonObject, stage: Stage) -> Probe | None:
    asked = annotations_of(pod).get(READINESS)
    if asked == "checkpoint" and stage is Stage.MAIN and "readinessProbe" not in own:
        return Probe(action=CheckpointSeen(), period_s=1)
    return _probe(own, "readinessProbe")


def _volume(pod: JsonObject, volume: JsonObject) -> Volume:
    return Volume(name=str(volume["name"]), source=_source(pod, volume))


def _source(pod: JsonObject, volume: JsonObject) -> EmptyFolder | HostFolder | Files:
    if "hostPath" in volume:
        host = part(volume, "hostPath")
        return HostFolder(path=str(host.get("path")), must_be=str(host.get("type") or ""))
    for name in ("configMap", "secret", "downwardAPI"):
        if name in volume:
            own = part(volume, name)
            mode = int(own.get("defaultMode", 0o644))
            return Files(sources=(_projection(pod, {name: own}),), mode=mode)
    if "projected" in volume:
        own = part(volume, "projected")
        sources = tuple(_projection(pod, each) for each in items(own, "sources"))
        return Files(sources=sources, mode=int(own.get("defaultMode", 0o644)))
    return EmptyFolder(in_memory=part(volume, "emptyDir").get("medium") == "Memory")


def _projection(pod: JsonObject, source: JsonObject) -> KeysAsFiles | TextsAsFiles | TokenFile:
    if "serviceAccountToken" in source:
        own = part(source, "serviceAccountToken")
        return TokenFile(
            path=str(own.get("path")),
            audience=str(own.get("audience") or ""),
            seconds=int(own.get("expirationSeconds", 3_600)),
        )
    if "downwardAPI" in source:
        files = items(source, "downwardAPI", "items")
        return TextsAsFiles(
            files=tuple(
                FileOf(path=str(each["path"]), value=_shown(pod, {}, each), mode=each.get("mode"))
                for each in files
            )
        )
    is_secret = "secret" in source
    own = part(source, "secret" if is_secret else "configMap")
    kind = SourceKind.SECRET if is_secret else SourceKind.CONFIG_MAP
    name = str(own.get("secretName") or own.get("name"))
    return KeysAsFiles(
        kind=kind,
        name=name,
        files=tuple(
            FileOf(
                path=str(each["path"]),
                value=KeyOf(kind=kind, name=name, key=str(each["key"])),
                mode=each.get("mode"),
            )
            for each in items(own, "items")
        ),
        optional=bool(own.get("optional")),
    )
