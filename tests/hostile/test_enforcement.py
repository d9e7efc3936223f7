"""What a placement says of its limit is what keeps it: no wall is claimed that is not ours."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.app.parts import clock
from muster.backends.base import Backend
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.client import Client
from muster.backends.kubernetes.kubeconfig import Access as KubernetesAccess
from muster.backends.kubernetes.link import KubernetesLink
from muster.backends.kubernetes.manifest import Manner
from muster.backends.slurm.backend import SlurmBackend, SlurmLink
from muster.backends.slurm.commands import Access, Commands
from muster.model.gpu import Enforcement, enforcement
from muster.model.value import ClusterName

NAME = ClusterName("elsewhere")


def slurm(folder: Path) -> Backend:
    link = SlurmLink(name=NAME, site="here")
    return SlurmBackend(link, Commands(Access()), folder, threading.Event().set, clock)


def kubernetes(folder: Path) -> Backend:
    """Where NVIDIA's runtime is the usual one, a pod has all GPUs by a variable of its own."""
    link = KubernetesLink(name=NAME, site="here", seal="s", manner=Manner(namespace="default"))
    client = Client(KubernetesAccess(server="https://127.0.0.1:1"))
    return KubernetesBackend(link, client, folder, threading.Event().set, clock)


@pytest.mark.parametrize("made", [slurm, kubernetes])
def test_walls_of_other_clusters_are_not_claimed(
    made: Callable[[Path], Backend], tmp_path: Path
) -> None:
    walled = made(tmp_path).cluster.abilities.device_wall

    assert enforcement(None, walled=walled) is Enforcement.NONE
