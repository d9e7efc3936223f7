import ast
from collections.abc import Iterator
from typing import get_args

from muster.backends.base import Action
from muster.controller.messages import NotDoneReason
from muster.controller.planner.protocol import Question, Reply
from muster.doors.config.shapes import Shape
from muster.doors.config.tree import Tree
from muster.lifecycle.refusal import Reason
from muster.model.event import Event
from muster.model.forbidden import Forbidden
from muster.model.gpu import Slice
from muster.model.job import EndReason
from muster.model.plan import Decision, Measure
from muster.model.reason import WaitReason
from shape.source import Module, modules

# A default branch would hide the case that somebody forgot.
UNIONS = (
    *(WaitReason, EndReason, Reason, Forbidden, NotDoneReason),
    *(Decision, Measure, Event, Slice, Action),
    *(Question, Reply, Shape, Tree),
)
NAMES = frozenset(each.__name__ for union in UNIONS for each in get_args(union))


def test_a_match_over_one_of_our_unions_has_no_default_branch() -> None:
    found = [f"{module.name}:{line}" for module in modules() for line in defaults(module)]

    assert found == []


def defaults(module: Module) -> Iterator[int]:
    """Lines of default branches beside one that names a member of a union."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Match) and any(_names(case.pattern) for case in node.cases):
            yield from (case.pattern.lineno for case in node.cases if _is_default(case))


def _names(pattern: ast.pattern) -> bool:
    classes = (each.cls for each in ast.walk(pattern) if isinstance(each, ast.MatchClass))
    return any(isinstance(each, ast.Name) and each.id in NAMES for each in classes)


def _is_default(case: ast.match_case) -> bool:
    pattern = case.pattern
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and case.guard is None
