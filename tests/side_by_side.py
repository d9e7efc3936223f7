"""Which tests stay together when they run side by side, and which begin first.

A group runs in one process, one test after the other. A file is a group, because its tests share
what they start: daemons, databases, folders. What else is shared, or not shared, stands here.
"""

from fnmatch import fnmatch

import pytest
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs] - it has none
from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

TOGETHER = (
    # Each side plays its sessions once, for all of these tests.
    "tests/differential/*::test_muster_answers_as_slurm_does*",
    "tests/differential/*::test_slurm_says_what_is_kept_of_it*",
    # One Slurm.
    "tests/contracts/backends/*?slurm]",
    # One Kubernetes.
    "tests/contracts/backends/*?kubernetes]",
    # One store of images.
    "tests/containers/*",
    # One Muster, because it takes longer to start than most of them to run.
    "tests/kubernetes_clients/*",
)
"""Patterns of test ids that are one group each."""

ALONE = (
    "tests/doors/slurm/test_transcripts.py::*",
    "tests/live/test_health.py::*",
    "tests/live/test_same_decisions.py::*",
    "tests/live/test_standby.py::*",
    "tests/chaos/*",
    "tests/properties/*",
)
"""Patterns of test ids of which each is a group: it starts by itself all that it needs."""

FIRST = (
    "tests/differential/*",
    "tests/chaos/*",
    "tests/clients/*",
    "tests/kubernetes_clients/*",
    "tests/live/*",
    "tests/doors/*",
    "tests/containers/*",
    "tests/contracts/*",
    "tests/local/*",
    "tests/properties/*",
)
"""The slowest begin first, so that no process has a long group left when the others are done."""


class Groups(LoadScopeScheduling):
    """Hands out groups of tests, in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Producer | None) -> None:
        super().__init__(config, log)
        # Else those with many tests come first, and many tests are seldom slow ones.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(nodeid: str) -> str:
    """Tests with the same group run in one process."""
    for pattern in TOGETHER:
        if fnmatch(nodeid, pattern):
            return pattern
    if any(fnmatch(nodeid, pattern) for pattern in ALONE):
        return nodeid
    return nodeid.partition("::")[0]


def turn(nodeid: str) -> int:
    """Lower ones begin earlier; in what is equal, chance decides, as it does in one process."""
    found = (at for at, pattern in enumerate(FIRST) if fnmatch(nodeid, pattern))
    return next(found, len(FIRST))
