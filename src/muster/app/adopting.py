"""Pods that users make on other clusters as jobs of a running Muster."""

from collections.abc import Iterable, Mapping

from muster.app.parts import Muster, clock
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.doors.kubernetes.adopting.adopter import Adopter
from muster.doors.kubernetes.adopting.port import Adopted
from muster.doors.kubernetes.adopting.port import OtherCluster as AdoptingCluster
from muster.model.value import ClusterName, QueuePath, UserName
from muster.settings import KubernetesCluster, OtherCluster


def adopter(known: Iterable[OtherCluster], muster: Muster) -> Adopter:
    """What makes jobs of those that users of these clusters make."""
    adopts = {
        ClusterName(each.name): _adopted(each.adopts)
        for each in known
        if isinstance(each, KubernetesCluster) and each.adopts
    }

    def clusters() -> list[AdoptingCluster]:
        """Those that there are while this process leads."""
        found = tuple(muster.backends.values())
        pods = [each.adoption for each in found if isinstance(each, KubernetesBackend)]
        return [each for each in pods if each is not None]

    return Adopter(muster.service, clusters, adopts, clock)


def _adopted(said: Mapping[str, str]) -> dict[str, Adopted]:
    """Who is not named is called as the namespace is."""
    found: dict[str, Adopted] = {}
    for namespace, text in said.items():
        queue, _, user = text.partition(":")
        found[namespace] = Adopted(queue=QueuePath(queue), user=UserName(user or namespace))
    return found
