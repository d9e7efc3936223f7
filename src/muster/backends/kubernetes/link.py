"""A cluster as the administrator named it, and how jobs are given to it."""

from muster.backends.kubernetes.manifest import Manner
from muster.model.value import ClusterName, GpuModel, Value


class KubernetesLink(Value):
    """A cluster as the administrator named it.

    site: which Muster this is, in the labels of our pods. seal: what nobody else can make their
    names without. levels: labels of nodes that say where they are, the widest first.
    adopts: pods that its users make for us are given their nodes.
    """

    name: ClusterName
    site: str
    seal: str
    manner: Manner
    models: dict[str, GpuModel] = {}  # noqa: RUF012 -- copied by the value
    levels: tuple[str, ...] = ()
    order: int = 0
    adopts: bool = False
