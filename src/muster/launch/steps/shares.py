"""What an attempt has of one node, for its steps to share."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class NodeShare:
    """What a component of an attempt has of one node; 0 MiB means that memory has no limit.

    component: of a heterogeneous job; each has shares of its own, even on the same node.
    gpus: by the names that CUDA knows; indices: by their numbers on the node.
    env: what tasks there need to get at the GPUs.
    cpu_ids: its CPUs by their numbers on the node, where they are known.
    """

    node: str
    cpus: int
    component: int = 0
    memory_mib: int = 0
    gpu_milli: int = 0
    gpus: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cpu_ids: tuple[int, ...] = ()
