import ast
from collections.abc import Iterator
from typing import get_args

from muster.controller.messages import NotDoneReason
from muster.lifecycle.refusal import Reason
from muster.model.forbidden import Forbidden
from muster.model.job import EndReason
from muster.model.plan import Decision, Measure
from muster.model.reason import WaitReason
from shape.source import Module, modules

# Where these are told apart, a default branch would hide the case that somebody forgot.
UNIONS = (WaitReason, EndReason, Decision, Measure, Reason, Forbidden, NotDoneReason)
NAMES = frozenset(each.__name__ for union in UNIONS for each in get_args(union))


def test_what_tells_reasons_and_decisions_apart_has_no_default_branch() -> None:
    found = [f"{module.name}:{line}" for module in modules() for line in defaults(module)]

    assert found == []


def defaults(module: Module) -> Iterator[int]:
    """Lines of default branches beside one that names a reason or a decision."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Match) and any(_names(case.pattern) for case in node.cases):
            yield from (case.pattern.lineno for case in node.cases if _is_default(case))


def _names(pattern: ast.pattern) -> bool:
    classes = (each.cls for each in ast.walk(pattern) if isinstance(each, ast.MatchClass))
    return any(isinstance(each, ast.Name) and each.id in NAMES for each in classes)


def _is_default(case: ast.match_case) -> bool:
    pattern = case.pattern
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and case.guard is None
