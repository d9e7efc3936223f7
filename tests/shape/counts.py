"""Counts of the source code that show its shape, side by side for any number of checkouts.

`make counts CHECKOUTS="../before ."` prints the table;
with `PAGE=docs/counts.md` it also takes the place of the table on that page.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Graph = Mapping[str, frozenset[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class File:
    """One Python file: the dotted name it is imported by, its folder, and what is in it."""

    name: str
    folder: Path
    lines: int
    tree: ast.Module


def files(checkout: Path) -> list[File]:
    """Every Python file under `src`."""
    source = checkout / "src"
    return [_file(path, source) for path in sorted(source.rglob("*.py"))]


def counts(found: list[File]) -> dict[str, str]:
    """What is counted, by the words that the table has for it."""
    names = Counter(node.name for node in _nodes(found) if isinstance(node, ast.ClassDef))
    twice = {name: times for name, times in names.items() if times > 1}
    helpers = [each for file in found for each in helper_callers(file.tree)]
    once = sum(callers == 1 for callers in helpers)
    folders = Counter(file.folder for file in found)
    real = cycles(imports(found, for_types=False))
    every = cycles(imports(found, for_types=True))
    return {
        "files": f"{len(found):,}",
        "lines": f"{sum(file.lines for file in found):,}",
        "files in the fullest folder": f"{max(folders.values(), default=0):,}",
        "class names used more than once": f"{len(twice):,} ({sum(twice.values()):,} classes)",
        "helpers (private functions)": f"{len(helpers):,}",
        "helpers with exactly one caller": f"{once:,} ({once / max(1, len(helpers)):.0%})",
        "import cycles at run time": _groups(real),
        "import cycles with imports for types": _groups(every),
    }


def helper_callers(tree: ast.Module) -> Iterator[int]:
    """How many places use each private function or method of a module.

    Private names are used in their own module alone.
    A function that calls itself is not its own caller.
    """
    helpers = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Function) and node.name.startswith("_") and not node.name.endswith("__")
    ]
    used = Counter(_names(tree))
    for helper in helpers:
        yield used[helper.name] - Counter(_names(helper))[helper.name]


def imports(found: Iterable[File], *, for_types: bool) -> Graph:
    """Which modules each module imports, inside functions too; for type checkers alone if asked."""
    listed = list(found)
    known = {file.name for file in listed}
    return {
        file.name: frozenset(_imported(file, known, for_types=for_types)) - {file.name}
        for file in listed
    }


def cycles(graph: Graph) -> list[frozenset[str]]:
    """The groups of modules that reach each other, each as large as it is."""
    if not _has_cycle(graph):
        return []
    reached = {name: _reached(graph, name) for name in graph}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return sorted(groups, key=sorted)


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """In Markdown: a row for each count, a column for each checkout."""
    rows = [["", *columns], ["---", *("---:" for _ in columns)]]
    words = list(next(iter(columns.values())))
    rows += [[word, *(column[word] for column in columns.values())] for word in words]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(page: str, new: str) -> str:
    """The page with another table where its first one was."""
    lines = page.splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.startswith("|"))
    after = next(
        (at for at, line in enumerate(lines) if at > first and not line.startswith("|")), len(lines)
    )
    return "".join([*lines[:first], new, *lines[after:]])


def main() -> None:
    parser = argparse.ArgumentParser(prog="counts", description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path()])
    parser.add_argument("--page", type=Path, help="replace the table of this page")
    asked = parser.parse_args()
    heads = ["before", "after"] if len(asked.checkouts) == 2 else map(str, asked.checkouts)
    columns = {head: counts(files(each)) for head, each in zip(heads, asked.checkouts, strict=True)}
    if asked.page:
        page = asked.page.read_text(encoding="utf-8")
        asked.page.write_text(with_table(page, table(columns)), encoding="utf-8")
    sys.stdout.write(table(columns))


def _file(path: Path, source: Path) -> File:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(source).with_suffix("").parts
    return File(
        name=".".join(part for part in parts if part != "__init__"),
        folder=path.parent,
        lines=len(text.splitlines()),
        tree=ast.parse(text, filename=str(path)),
    )


def _nodes(found: Iterable[File]) -> Iterator[ast.AST]:
    return (node for file in found for node in ast.walk(file.tree))


def _groups(found: list[frozenset[str]]) -> str:
    return f"{len(found)} ({sum(map(len, found))} files)" if found else "0"


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case _:
                pass


def _imported(file: File, known: set[str], *, for_types: bool) -> Iterator[str]:
    for node in _statements(file.tree, for_types=for_types):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in known)
            case ast.ImportFrom(module=str(module), names=names):
                wholes = [f"{module}.{each.name}" for each in names]
                found = {whole if whole in known else module for whole in wholes}
                yield from found & known
            case _:
                pass


def _statements(node: ast.AST, *, for_types: bool) -> Iterator[ast.AST]:
    """Everything below a node, without what only a type checker sees unless that is asked for."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_for_types(child.test) and not for_types:
            for other in child.orelse:
                yield from (other, *_statements(other, for_types=for_types))
        else:
            yield child
            yield from _statements(child, for_types=for_types)


def _is_for_types(test: ast.expr) -> bool:
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case _:
            return False


def _has_cycle(graph: Graph) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


def _reached(graph: Graph, start: str) -> frozenset[str]:
    seen: set[str] = set()
    ahead = list(graph[start])
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead.extend(graph[name])
    return frozenset(seen)


if __name__ == "__main__":
    main()
