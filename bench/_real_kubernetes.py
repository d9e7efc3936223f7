"""A real etcd and kube-apiserver on loopback, as `make kubernetes` built them."""

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

from bench._http import Server, is_ready
from bench._musters import until

TOKEN = "of-the-benchmark"  # noqa: S105 -- nobody else can reach it
PROGRAMS = ("etcd", "kube-apiserver")


def programs() -> Path:
    """Where they are; RuntimeError says how to get them."""
    named = os.environ.get("MUSTER_KUBERNETES")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "muster"
    folders = [Path(named)] if named else sorted(cache.glob("kubernetes-*"))
    for folder in folders:
        if all((folder / name).exists() for name in PROGRAMS):
            return folder
    raise RuntimeError("there is no kube-apiserver to compare with: run `make kubernetes` first")


@contextlib.contextmanager
def real_kubernetes() -> Generator[Server]:
    """The API server with its usual settings, and etcd that syncs what it writes."""
    built = programs()
    with tempfile.TemporaryDirectory(prefix="kubernetes-") as made:
        folder = Path(made)
        client, peer, port = _free_port(), _free_port(), _free_port()
        _keys(folder)
        etcd = [
            str(built / "etcd"),
            f"--data-dir={folder}/data",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--log-level=error",
        ]
        api = [
            str(built / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{client}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={folder}/certificates",
            f"--token-auth-file={folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder}/accounts.key",
            f"--service-account-signing-key-file={folder}/accounts.key",
            "--endpoint-reconciler-type=none",
            # Its accounts are made by a controller that does not run here.
            "--disable-admission-plugins=ServiceAccount",
        ]
        server = Server(host="127.0.0.1", port=port, token=TOKEN)
        with _running(etcd, folder / "etcd.log"), _running(api, folder / "api.log"):
            if not until(lambda: is_ready(server), 0.5, 180):
                raise RuntimeError((folder / "api.log").read_text(encoding="utf-8")[-2_000:])
            yield server


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Generator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)  # noqa: S603 -- named above
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def _keys(folder: Path) -> None:
    (folder / "tokens.csv").write_text(f"{TOKEN},bench,1,system:masters\n", encoding="utf-8")
    key = folder / "accounts.key"
    subprocess.run(  # noqa: S603 -- openssl, with a path of ours
        ["/usr/bin/openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True
    )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
