"""A real Kubernetes on this machine: control plane and nodes, started and ended by a test."""

import contextlib
import json
import os
import secrets
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

from kubernetes_real.certificates import Authority, write_pair
from kubernetes_real.daemons import Daemon, free_port, until
from kubernetes_real.images import make_images
from kubernetes_real.node import Node, Site

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
NEEDED = ("containerd", "ctr", "runc", "gcc", "busybox", "unshare", "nsenter")
WANTED = "MUSTER_REAL_KUBERNETES"
_HOSTS = Path("/etc/hosts")
_BUILD = Path(__file__).with_name("build.sh")


def missing() -> str:
    """Why there can be no real Kubernetes here; nothing if there can."""
    if os.environ.get(WANTED) == "no":
        return f"{WANTED}=no says so"
    if os.geteuid() != 0:
        return "only root can start a Kubernetes of its own"
    lacking = [each for each in NEEDED if shutil.which(each) is None]
    if lacking:
        return f"{', '.join(lacking)} missing; tests/kubernetes_real/install.sh installs them"
    found = built()
    if found is None:
        return "its programs are not built; make kubernetes builds them"
    return ""


def built() -> Path | None:
    """Where the programs are, if they were built: nothing is built here."""
    said = subprocess.run(  # noqa: S603 -- our own script
        ["bash", _BUILD, "where"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    folder = Path(said.stdout.strip())
    there = all((folder / each).exists() for each in (*PROGRAMS, "pretendgpus"))
    return folder if said.returncode == 0 and there else None


class Lab:
    """etcd, the API server, its controllers and scheduler, and nodes with pretend GPUs."""

    def __init__(self, folder: Path, programs: Path, nodes: int, gpus: int) -> None:
        self._folder, self._programs = folder, programs
        self.keys = folder / "keys"
        self.keys.mkdir()
        self.port, self._etcd_port = free_port(), free_port()
        self.token = secrets.token_hex(16)
        self.kubeconfig = folder / "kubeconfig"
        self._write_keys()
        self.daemons = {
            "etcd": self._daemon("etcd", *self._etcd()),
            "kube-apiserver": self._daemon("kube-apiserver", *self._apiserver()),
            "kube-controller-manager": self._daemon(
                "kube-controller-manager", *self._controllers()
            ),
            "kube-scheduler": self._daemon("kube-scheduler", *self._scheduler()),
        }
        site = Site(
            name=folder.name,
            programs=programs,
            folder=folder,
            keys=self.keys,
            kubeconfig=self.kubeconfig,
            images=make_images(folder) if nodes else (),
            gpus=gpus,
            subnet=130 + secrets.randbelow(120),
        )
        self.nodes = tuple(Node(site, number) for number in range(1, nodes + 1))
        self._gpus = gpus

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.daemons["etcd"].start()
        self.start_apiserver()
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.daemons[name].start()
        until(lambda: self._has("/api/v1/namespaces/default/serviceaccounts/default"), "accounts")
        for node in self.nodes:
            node.start()
        until(self._nodes_are_ready, "nodes")

    def start_apiserver(self) -> None:
        self.daemons["kube-apiserver"].start()
        until(lambda: self.daemons["kube-apiserver"].demand_alive() and self._has("/readyz"), "it")

    def stop(self) -> None:
        """etcd last: an API server whose etcd is gone does not end."""
        for node in self.nodes:
            node.stop()
        for daemon in reversed(self.daemons.values()):
            daemon.stop()

    def ask(self, path: str, body: object = None, method: str = "") -> Any:
        """Ask the API server as its administrator."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        asked = urllib.request.Request(  # noqa: S310 -- our own server
            self.server + path,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers,
            method=method or ("GET" if body is None else "POST"),
        )
        trust = ssl.create_default_context(cafile=str(self.keys / "ca.crt"))
        with urllib.request.urlopen(asked, context=trust, timeout=20) as answer:  # noqa: S310
            said = answer.read()
        return json.loads(said) if said[:1] in b"{[" else said.decode()

    def _has(self, path: str) -> bool:
        try:
            self.ask(path)
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _nodes_are_ready(self) -> bool:
        try:
            found = self.ask("/api/v1/nodes")["items"]
        except (urllib.error.URLError, OSError):
            return False
        return sum(_is_ready(node, self._gpus) for node in found) == len(self.nodes)

    def _write_keys(self) -> None:
        authority = Authority(self.keys)
        authority.signs("apiserver", hosts=("localhost", "127.0.0.1", "10.96.0.1"))
        authority.signs("kubelet", hosts=("localhost", *(f"muster-node{n}" for n in range(1, 9))))
        authority.signs("kubelet-client", group="system:masters")
        write_pair(self.keys, "accounts")
        lines = (
            f'{self.token},admin,admin,"system:masters"',
            f"{self.token}-c,system:kube-controller-manager,controllers",
            f"{self.token}-s,system:kube-scheduler,scheduler",
        )
        (self.keys / "tokens.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
        self.write_kubeconfig(self.kubeconfig, self.token)
        self.write_kubeconfig(self.keys / "controllers.kubeconfig", f"{self.token}-c")
        self.write_kubeconfig(self.keys / "scheduler.kubeconfig", f"{self.token}-s")

    def write_kubeconfig(self, path: Path, token: str, port: int = 0) -> None:
        """port: of whatever stands before the API server."""
        server = f"https://127.0.0.1:{port or self.port}"
        cluster = {"server": server, "certificate-authority": str(self.keys / "ca.crt")}
        made = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
            "current-context": "lab",
        }
        path.write_text(json.dumps(made), encoding="ascii")

    def _daemon(self, name: str, *words: object) -> Daemon:
        return Daemon((self._programs / name, *words), self._folder / f"{name}.log")

    def _etcd(self) -> tuple[str, ...]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        return (
            f"--data-dir={self._folder}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )

    def _apiserver(self) -> tuple[str, ...]:
        keys = self.keys
        return (
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--advertise-address=10.255.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={keys}/apiserver.crt",
            f"--tls-private-key-file={keys}/apiserver.key",
            f"--client-ca-file={keys}/ca.crt",
            f"--token-auth-file={keys}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys}/accounts.pub",
            f"--service-account-signing-key-file={keys}/accounts.key",
            f"--kubelet-client-certificate={keys}/kubelet-client.crt",
            f"--kubelet-client-key={keys}/kubelet-client.key",
            "--kubelet-preferred-address-types=Hostname",
            "--allow-privileged=true",
            "--profiling=false",
        )

    def _controllers(self) -> tuple[str, ...]:
        kubeconfig = self.keys / "controllers.kubeconfig"
        return (
            *_as(kubeconfig),
            f"--service-account-private-key-file={self.keys}/accounts.key",
            f"--root-ca-file={self.keys}/ca.crt",
            # Without it its controllers are forbidden everything.
            "--use-service-account-credentials=true",
            "--node-monitor-grace-period=12s",
            "--node-monitor-period=1s",
        )

    def _scheduler(self) -> tuple[str, ...]:
        return _as(self.keys / "scheduler.kubeconfig")


@contextlib.contextmanager
def laboratory(*, nodes: int = 2, gpus: int = 4) -> Generator[Lab]:
    """A Kubernetes that is ready, and nothing left of it."""
    programs = built()
    assert programs is not None, missing()
    folder = Path(tempfile.mkdtemp(prefix="muster-k8s-"))
    folder.chmod(0o755)
    lab = Lab(folder, programs, nodes, gpus)
    try:
        with _known_hosts(node.name for node in lab.nodes):
            lab.start()
            yield lab
    finally:
        lab.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _known_hosts(names: Any) -> Generator[None]:
    """The API server finds kubelets by the names of their nodes."""
    # Each Kubernetes has lines of its own: another one that ends takes only one of each away.
    lines = [f"127.0.0.1 {name}\n" for name in names]
    with _HOSTS.open("a", encoding="utf-8") as file:
        file.writelines(lines)
    try:
        yield
    finally:
        now = _HOSTS.read_text(encoding="utf-8")
        for line in lines:
            now = now.replace(line, "", 1)
        # In place: where it is mounted into a container it cannot be replaced.
        _HOSTS.write_text(now, encoding="utf-8")


def _as(kubeconfig: Path) -> tuple[str, ...]:
    options = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return (
        *(f"--{each}={kubeconfig}" for each in options),
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
    )


def _is_ready(node: Any, gpus: int) -> bool:
    status = node["status"]
    ready = any(
        each["type"] == "Ready" and each["status"] == "True" for each in status["conditions"]
    )
    return ready and int(status.get("allocatable", {}).get("nvidia.com/gpu", 0)) == gpus
