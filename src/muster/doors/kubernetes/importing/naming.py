"""What queues are called where all of them have names of their own. Pure."""

from collections import Counter
from collections.abc import Iterable

from muster.doors.kubernetes.pods.pod_of import slug
from muster.model.value import QueuePath


def names_of(paths: Iterable[QueuePath]) -> dict[QueuePath, str]:
    """The last part of each path, or all of it where two would be called the same."""
    known = tuple(paths)
    last = {path: slug(path.rpartition("/")[2]) for path in known}
    counts = Counter(last.values())
    return {path: last[path] if counts[last[path]] == 1 else slug(path) for path in known}
