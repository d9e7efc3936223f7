"""Files of pretend nodes."""

from pathlib import Path

import pytest

from muster.backends.local.hardware.machine import find_machine
from muster.backends.local.hardware.racks import BadNodesError, pretend_racks, racks_from

TWO_TEAMS = """
- {names: [node01, node02], gpus: 4xA100-40GB, cpus: 64, memory_gib: 512, pool: team-a}
- {nodes: 2, gpus: 2xT4-16GB, pool: team-b, where: [r1], labels: {disk: ssd}}
- {nodes: 1}
- {nodes: 1}
"""


def test_racks_have_the_names_pools_and_places_they_are_given(tmp_path: Path) -> None:
    nodes = find_machine(tmp_path, pretend_racks(racks_from(TWO_TEAMS))).nodes()

    assert [(node.id, node.pool, len(node.devices)) for node in nodes] == [
        ("node01", "team-a", 4),
        ("node02", "team-a", 4),
        ("team-b-1", "team-b", 2),
        ("team-b-2", "team-b", 2),
        ("pretend1", "local", 0),
        ("pretend2", "local", 0),
    ]
    assert (nodes[0].cpu_milli, nodes[0].memory_mib) == (64_000, 512 * 1_024)
    assert (nodes[2].where, nodes[2].labels["disk"]) == (("r1",), "ssd")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes: 4", "write a list like"),
        ("[]", "at least"),
        ("- {names: [a, a]}", "two nodes are called a"),
        ("- {name: x, nodes: 2}\n- {names: [x2]}", "two nodes are called x2"),
        ("- {nodes: 1, pol: b}", "pol"),
        ("- {", "write a list like"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(BadNodesError, match=said):
        racks_from(text)
