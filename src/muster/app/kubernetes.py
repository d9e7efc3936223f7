"""The Kubernetes door of a running Muster, put together."""

from dataclasses import dataclass
from pathlib import Path

from muster.app.parts import clock
from muster.controller.loop.supplies import FindSupplies, SourceOf
from muster.controller.messages import Caller
from muster.controller.use_cases.service import Service
from muster.doors.kubernetes.serve.app import keys_folder, kubernetes_app
from muster.doors.kubernetes.serve.job_pods import JobPods
from muster.doors.kubernetes.serve.keys import KeyFolder, open_keys
from muster.doors.kubernetes.serve.pod_keeper import PodKeeper
from muster.doors.kubernetes.serve.pod_supplies import source_of
from muster.doors.kubernetes.serve.reconciling import Reconciler
from muster.doors.kubernetes.serve.tokens import Signer
from muster.doors.kubernetes.serve.visiting import SPDY
from muster.doors.rest.serve import Beside, Tcp, tcp_socket
from muster.model.value import Instant
from muster.settings import KubernetesListen


@dataclass(frozen=True, kw_only=True)
class Entry:
    """How to reach the API."""

    server: str
    ca: bytes
    signer: Signer

    def token_for(self, caller: Caller) -> tuple[str, Instant]:
        """A token with the caller's own rights, and when it ends."""
        return self.signer.for_person(caller, clock())


@dataclass(frozen=True, kw_only=True)
class KubernetesDoor:
    """What is served, and how to reach it."""

    beside: Beside
    entry: Entry
    controllers: Reconciler
    keeper: PodKeeper
    job_pods: JobPods
    supplies: FindSupplies
    source_of: SourceOf


def kubernetes_door(
    home: Path, listen: KubernetesListen, service: Service, shared: Path
) -> KubernetesDoor:
    """The door, on a port that is open already; requests are answered when it is served.

    shared: the home of the Muster that this one stands by for, whose keys are its own as well.
    """
    keys = open_keys(keys_folder(shared), listen.host, keys_folder(home))
    tcp = _tcp(listen, keys)
    listening = tcp_socket(tcp)
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    address = f"{host}:{listening.getsockname()[1]}"
    try:
        app = kubernetes_app(service, clock, keys, address)
    except BaseException:
        listening.close()
        raise
    entry = Entry(server=f"https://{address}", ca=keys.ca, signer=Signer(keys.signing))
    return KubernetesDoor(
        beside=Beside(
            app=app, tcp=tcp, listening=listening, upgrades=frozenset({SPDY.lower().encode()})
        ),
        entry=entry,
        controllers=app.reconciler,
        keeper=app.keeper,
        job_pods=app.job_pods,
        supplies=app.supplies.of,
        source_of=source_of,
    )


def _tcp(listen: KubernetesListen, keys: KeyFolder) -> Tcp:
    return Tcp(
        host=listen.host,
        port=listen.port,
        certificate=str(keys.certificate),
        key=str(keys.key),
    )
