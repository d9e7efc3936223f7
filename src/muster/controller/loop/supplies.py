"""What pods are supplied with when they run: whoever keeps ConfigMaps and Secrets says."""

from collections.abc import Callable, Mapping, Sequence

from muster.backends.base import Supplies
from muster.model.pod import PodLaunch

FindSupplies = Callable[[PodLaunch], Supplies]


class SupplySource:
    """Asked when an attempt begins; it knows nothing until somebody does."""

    def __init__(self) -> None:
        self._find: FindSupplies | None = None

    def use(self, find: FindSupplies) -> None:
        """From now on this is asked."""
        self._find = find

    def of(self, pods: Sequence[PodLaunch]) -> Supplies:
        """All that the pods of an attempt name; where two mean the same, as the first has it."""
        if self._find is None:
            return {}
        found: dict[str, Mapping[str, bytes] | None] = {}
        for pod in reversed(pods):
            found |= self._find(pod)
        return found
