import ast

import pytest

from shape.source import contract, modules, unexempted

PURE = frozenset({"model", "schedule", "lifecycle", "launch", "workflow", "metering"})

# What is decided in a package that also has wires.
PURE_PARTS = frozenset({"muster.telemetry.diagnosis", "muster.telemetry.sinks"})

# `hash` of a text and `id` differ from one process to the next, so they are dice.
IMPURE_CALLS = frozenset(
    "__import__ breakpoint eval exec exit hash id input open print quit".split()
)
CLOCK_METHODS = frozenset("now today utcnow".split())

# dotted module name and line's code: the reason why it cannot reach a decision
EXEMPT: dict[str, str] = {}


def test_the_pure_layers_have_no_clock_no_dice_and_no_wires() -> None:
    found = {
        f"{module.name}: {site}": "impure"
        for module in modules()
        if module.package in PURE or is_pure_part(module.name)
        for site in impure_sites(module.tree)
    }

    assert unexempted(found, EXEMPT) == {}


def test_every_pure_layer_is_under_the_import_contract() -> None:
    present = {f"muster.{module.package}" for module in modules() if module.package in PURE}

    assert set(contract("pure")["source_modules"]) == present | PURE_PARTS


def test_every_pure_part_is_there() -> None:
    names = {module.name for module in modules()}

    assert names >= PURE_PARTS


def test_nobody_waits_in_a_way_that_loses_a_cancellation() -> None:
    """Python 3.11's wait_for drops one that comes with the answer; asyncio.timeout does not."""
    assert [module.name for module in modules() if "asyncio.wait_for" in module.text] == []


@pytest.mark.parametrize(
    "code",
    [
        "import time",
        "from os import path",
        "import datetime as dt",
        "def f():\n    import random",
        "open('x')",
        "x = clock.now()",
        "print('hello')",
        "hash('text')",
    ],
)
def test_an_impure_line_is_found(code: str) -> None:
    assert len(impure_sites(ast.parse(code))) == 1


@pytest.mark.parametrize(
    "code",
    ["now = snapshot.now", "import timeit_like", "def __hash__(self): ...", "x.open()", "a.id"],
)
def test_a_pure_line_is_left_alone(code: str) -> None:
    assert impure_sites(ast.parse(code)) == []


def is_pure_part(name: str) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in PURE_PARTS)


def impure_sites(tree: ast.AST) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(tree) if is_impure(node)]


def is_impure(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(is_forbidden(each.name) for each in names)
        case ast.ImportFrom(module=str(name)):
            return is_forbidden(name)
        case ast.Call(func=ast.Name(id=name)):
            return name in IMPURE_CALLS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in CLOCK_METHODS
        case _:
            return False


def is_forbidden(module_name: str) -> bool:
    """The import contract has the list; this looks at the source without following imports."""
    return module_name.partition(".")[0] in contract("pure")["forbidden_modules"]
