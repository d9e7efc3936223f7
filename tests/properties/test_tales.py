"""Whatever happens to a cluster, its plans keep to the rules and memory does not change them."""

import os
from random import Random

import pytest

from muster.model.policy import Policy
from properties.tales import Step, Tale, problem, shortest, tell

TALES = int(os.environ.get("TALES", "150"))
"""How many tales are played; each number makes its own, the same one every time."""


@pytest.mark.slow
def test_no_tale_goes_wrong() -> None:
    for number in range(TALES):
        tale = tell(Random(number))  # noqa: S311  a tale must come out again as it was
        wrong = problem(tale)
        assert wrong is None, f"tale {number}: {wrong}\n{shortest(tale)}"


def test_a_tale_that_goes_wrong_is_cut_down_to_what_matters() -> None:
    first, again = Step("submits", ("j1",), {}), Step("submits", ("j1",), {"gpus": 2})
    node, cycle = Step("has_nodes", ("n1",), {"gpus": 4}), Step("goes_on", (), {})

    tale = Tale(Policy(), (node, first, cycle, again, cycle))

    assert shortest(tale).steps == (first, first)
