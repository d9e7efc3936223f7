"""A real Muster that serves the Kubernetes API, and real kubectl beside it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE_S = 180
"""So long a test waits for what must come: long enough for a machine that has much else to do."""
PATIENT = f"--timeout={PATIENCE_S}s"
LONGEST_S = PATIENCE_S + 60
"""A command ends by itself before."""

KUBECTLS = Path(__file__).parents[3] / ".tools" / "kubectls"
"""Other versions of kubectl, as `make kubectls` puts them there: kubectl-1.28 ..."""


def there_is(program: str) -> str:
    """A kubectl to type; the test is skipped where nobody has put that version there."""
    if program != "kubectl" and shutil.which(program, path=KUBECTLS) is None:
        pytest.skip(f"there is no {program}: run make kubectls")
    return program


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True)
class KubernetesHouse:
    """A machine with Muster on it, and a folder in which kubectl is used."""

    root: Path
    podman: str = ""

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def environ(self) -> dict[str, str]:
        strange = ("MUSTER", "KUBE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{KUBECTLS}:{kept['PATH']}",
            "HOME": str(self.root),
            "TZ": "UTC",
            "KUBECONFIG": str(self.root / "kubeconfig"),
            "MUSTER_HOME": str(self.root / "home"),
            "MUSTER_PODMAN_OPTIONS": self.podman,
        }

    def shell(self, line: str, *, stdin: str = "") -> Ran:
        """As if typed."""
        run = subprocess.run(  # noqa: S603  what a test types
            ["/bin/bash", "-c", line],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
            env=self.environ,
            cwd=self.work,
            input=stdin,
        )
        return Ran(code=run.returncode, out=run.stdout, err=run.stderr)

    def kubectl(self, line: str, *, stdin: str = "") -> str:
        """What a kubectl that must go well prints."""
        ran = self.shell(f"kubectl {line}", stdin=stdin)
        assert ran.code == 0, f"kubectl {line}: {ran.out}{ran.err}"
        return ran.out

    def refused(self, line: str, *, stdin: str = "") -> str:
        """What a kubectl that must not go well says."""
        ran = self.shell(f"kubectl {line}", stdin=stdin)
        assert ran.code == 1, f"kubectl {line} ended with {ran.code}: {ran.out}{ran.err}"
        return ran.err

    def keeps_its_token(self) -> None:
        """Use one token from now on: to ask for one each time takes longer than most commands."""
        credential = self.shell("muster kubeconfig --credential")
        token = json.loads(credential.out)["status"]["token"]
        self.kubectl(f"config set-credentials kept --token={token}")
        self.kubectl("config set-context --current --user=kept")

    def has_namespace(self, name: str) -> str:
        """A namespace for one test."""
        self.kubectl(f"create namespace {name}")
        return name


def until(is_so: Callable[[], bool], tells: Callable[[], object] = str) -> None:
    """Wait for it; what `tells` says is said when it never comes."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {tells()}"
        time.sleep(0.05)


TWO_NODES = "--nodes 2 --gpus 4xA100-40GB"


@contextmanager
def kubernetes_house(
    *options: str, podman: str = "", pretend: str = TWO_NODES
) -> Generator[KubernetesHouse]:
    """Muster with pretend nodes, and an entry for kubectl. podman: options for its containers."""
    # Short, because the path of a socket may not be long.
    found = KubernetesHouse(root=Path(tempfile.mkdtemp(prefix="muster-k8s-")), podman=podman)
    found.work.mkdir()
    (found.root / "home").mkdir()
    try:
        served = "--mail-program /bin/true --kubernetes 127.0.0.1:0"
        started = found.shell(f"muster up {pretend} {served} {' '.join(options)}")
        assert started.code == 0, started.out + started.err
        entry = found.shell("muster kubeconfig")
        assert entry.code == 0, entry.err
        found.keeps_its_token()
        yield found
    finally:
        found.shell("muster down")
        shutil.rmtree(found.root, ignore_errors=True)
