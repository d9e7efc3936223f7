"""The repository as the shape tests see it: files, modules, and exemptions with a reason."""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One Python file under src."""

    name: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The layer it belongs to: `schedule` for `muster.schedule.plan`, empty for `muster`."""
        return self.name.partition(".")[2].partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Named:
    """A class or function and the dotted name it goes by in an exemption."""

    name: str
    node: Function | ast.ClassDef


@cache
def modules() -> tuple[Module, ...]:
    return tuple(_module(path) for path in sorted(SRC.rglob("*.py")))


def definitions(module: Module) -> Iterator[Named]:
    """Every class and function of a module, nested ones included."""
    yield from _inside(module.tree, module.name)


def unexempted(found: Mapping[str, object], exempt: Mapping[str, str]) -> dict[str, object]:
    """What breaks a rule without leave, and exemptions that give no reason or are not needed."""
    stale = {name: "exempted, but no longer needs to be" for name in exempt if name not in found}
    silent = {name: "exempted without a reason" for name, why in exempt.items() if not why.strip()}
    return {name: what for name, what in found.items() if name not in exempt} | stale | silent


@cache
def contract(contract_id: str) -> dict[str, Any]:
    """One import contract from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if each["id"] == contract_id)


def _module(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(SRC).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    return Module(name=name, text=text, tree=ast.parse(text, filename=str(path)))


def _inside(node: ast.AST, prefix: str) -> Iterator[Named]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}"
            yield Named(name=name, node=child)
            yield from _inside(child, name)
        else:
            yield from _inside(child, prefix)
