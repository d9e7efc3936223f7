"""A real node of a Kubernetes for tests: kubelet, containerd and runc, with pretend GPUs.

Several live on one machine: each has a mount namespace (/var/lib/kubelet is its own there), a
control group, a subnet and a containerd. containerd is in the namespace of its kubelet, because it
must see the volumes that the kubelet mounts.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubernetes_real.daemons import Daemon, free_port, until
from kubernetes_real.images import PAUSE

_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the nodes of one Kubernetes share. subnet: the second and third part are the node's."""

    name: str
    programs: Path
    folder: Path
    keys: Path
    kubeconfig: Path
    images: Sequence[Path]
    gpus: int
    subnet: int


class Node:
    def __init__(self, site: Site, number: int) -> None:
        self.name = f"muster-node{number}"
        self._site, self._number = site, number
        self._folder = site.folder / self.name
        self._group = f"{site.name}-{number}"
        (self._folder / "varlib" / "device-plugins").mkdir(parents=True)
        (self._folder / "cni").mkdir()
        self._write_files()
        self._holder = self._daemon("namespace", *self._in_namespace())
        self._containerd: Daemon | None = None
        self._kubelet: Daemon | None = None
        self._plugin: Daemon | None = None

    def start(self) -> None:
        Path("/var/lib/kubelet").mkdir(exist_ok=True)
        for group in self._group_folders():
            group.mkdir(exist_ok=True)
            _inherit_cpus(group)
        self._holder.start()
        until(self._is_apart, "a mount namespace")
        self._start_containerd()
        for image in self._site.images:
            self._ctr("images", "import", str(image))
        self._start_kubelet()

    def crash(self) -> None:
        """As if the power was cut: the daemons die, and all that they started."""
        for each in (self._kubelet, self._plugin, self._containerd):
            if each is not None:
                each.kill()
        for pid in (*self._shims(), *self._inside()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def revive(self) -> None:
        self._start_containerd()
        self._start_kubelet()

    def stop(self) -> None:
        if self._kubelet is not None:
            self._kubelet.stop()
        self.crash()
        self._holder.kill()
        for folder in self._group_folders():
            with contextlib.suppress(OSError):
                _remove_group(folder)

    def kubelet_log(self) -> str:
        return "" if self._kubelet is None else self._kubelet.tail()

    def _start_containerd(self) -> None:
        socket = self._folder / "containerd.sock"
        socket.unlink(missing_ok=True)
        self._containerd = self._entered(
            "containerd", "containerd", "-c", self._folder / "config.toml"
        )
        self._containerd.start()
        until(self._answers, "containerd")

    def _start_kubelet(self) -> None:
        site, folder = self._site, self._folder
        self._kubelet = self._entered(
            "kubelet",
            site.programs / "kubelet",
            *("--kubeconfig", site.kubeconfig),
            *("--config", folder / "kubelet.yaml"),
            *("--root-dir", folder / "kubelet"),
            *("--hostname-override", self.name),
        )
        self._kubelet.start()
        plugins = "/var/lib/kubelet/device-plugins"
        self._plugin = self._entered("plugin", site.programs / "pretendgpus", plugins, site.gpus)
        self._plugin.start()

    def _in_namespace(self) -> tuple[str, ...]:
        inside = (
            "mount --make-rprivate / && "
            f"mount --bind {self._folder}/varlib /var/lib/kubelet && "
            f"touch {self._folder}/apart && exec sleep infinity"
        )
        return ("unshare", "--mount", "sh", "-c", inside)

    def _is_apart(self) -> bool:
        return self._holder.demand_alive() and (self._folder / "apart").exists()

    def _entered(self, name: str, *words: object) -> Daemon:
        return self._daemon(name, "nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", *words)

    def _daemon(self, name: str, *words: object) -> Daemon:
        return Daemon(words, self._folder / f"{name}.log")

    def _answers(self) -> bool:
        assert self._containerd is not None
        self._containerd.demand_alive()
        asked = ["ctr", "-a", str(self._folder / "containerd.sock"), "version"]
        return subprocess.run(asked, check=False, capture_output=True).returncode == 0  # noqa: S603

    def _ctr(self, *words: str) -> None:
        address = str(self._folder / "containerd.sock")
        subprocess.run(  # noqa: S603
            ["ctr", "-a", address, "-n", "k8s.io", *words],  # noqa: S607
            check=True,
            capture_output=True,
        )

    def _write_files(self) -> None:
        (self._folder / "config.toml").write_text(self._containerd_toml(), encoding="ascii")
        kubelet = json.dumps(self._kubelet_settings())
        (self._folder / "kubelet.yaml").write_text(kubelet, encoding="ascii")
        network = json.dumps(self._network())
        (self._folder / "cni" / "10-pods.conflist").write_text(network, encoding="ascii")

    def _containerd_toml(self) -> str:
        folder = self._folder
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        return f"""version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/containerd.sock"
[{cri}]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
[{cri}.containerd]
  snapshotter = "overlayfs"
[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[{cri}.cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{folder}/cni"
"""

    def _kubelet_settings(self) -> dict[str, object]:
        keys, folder = self._site.keys, self._folder
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": free_port(),
            "healthzPort": free_port(),
            "authentication": {
                "anonymous": {"enabled": False},
                "x509": {"clientCAFile": str(keys / "ca.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._group}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
            "podLogsDir": str(folder / "logs"),
            "tlsCertFile": str(keys / "kubelet.crt"),
            "tlsPrivateKeyFile": str(keys / "kubelet.key"),
            # A machine that is nearly full is no reason to end the pods of a test.
            "evictionHard": {"memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            # A dead node is noticed soon.
            "nodeLeaseDurationSeconds": 8,
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "5s",
        }

    def _network(self) -> dict[str, object]:
        subnet = f"10.{self._site.subnet}.{self._number}.0/24"
        addresses = {
            "type": "host-local",
            "dataDir": str(self._folder / "addresses"),
            "subnet": subnet,
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        plugin = {"type": "ptp", "ipMasq": False, "ipam": addresses}
        return {"cniVersion": "0.4.0", "name": self._group, "plugins": [plugin]}

    def _group_folders(self) -> tuple[Path, ...]:
        if (_GROUPS / "cgroup.controllers").exists():
            return (_GROUPS / self._group,)
        return tuple(
            each / self._group
            for each in sorted(_GROUPS.iterdir())
            if each.is_dir() and not each.is_symlink() and (each / "cgroup.procs").exists()
        )

    def _shims(self) -> Iterator[int]:
        """What stands between containerd and its containers."""
        mark = str(self._folder / "containerd.sock").encode()
        for each in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (each / "cmdline").read_bytes() if each.name.isdecimal() else b""
                if b"containerd-shim" in words and mark in words:
                    yield int(each.name)

    def _inside(self) -> Iterator[int]:
        for folder in self._group_folders():
            for path in folder.rglob("cgroup.procs"):
                with contextlib.suppress(OSError):
                    yield from map(int, path.read_text(encoding="ascii").split())


def _inherit_cpus(group: Path) -> None:
    """A new group of cpuset (v1) has no CPUs until it is given some."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        above = group.parent / name
        if above.exists() and (group / name).exists():
            (group / name).write_text(above.read_text(encoding="ascii"), encoding="ascii")


def _remove_group(folder: Path) -> None:
    for each in sorted(folder.rglob("*"), key=lambda path: -len(path.parts)):
        if each.is_dir():
            each.rmdir()
    folder.rmdir()
