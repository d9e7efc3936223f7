import ast
from pathlib import Path

from shape.counts import counts, cycles, files, helper_callers, imports, table, with_table


def test_a_helper_has_as_many_callers_as_places_that_use_it() -> None:
    tree = ast.parse(
        "def _once(n): return _once(n - 1)\n"
        "def _twice(): return _once(3)\n"
        "class A:\n"
        "    def _never(self): return _twice()\n"
        "    def open(self): return _twice()\n"
    )

    assert list(helper_callers(tree)) == [1, 2, 0]


def test_cycles_are_groups_of_modules_that_reach_each_other() -> None:
    graph = {
        "a": frozenset({"b"}),
        "b": frozenset({"a", "c"}),
        "c": frozenset({"d"}),
        "d": frozenset({"c"}),
        "e": frozenset({"a"}),
    }

    assert cycles(graph) == [frozenset("ab"), frozenset("cd")]


def test_an_import_for_types_alone_is_told_apart(tmp_path: Path) -> None:
    written(tmp_path, "a.py", "from typing import TYPE_CHECKING\nfrom house import b\n")
    written(tmp_path, "b.py", "if TYPE_CHECKING:\n    from house.a import A\n")

    found = files(tmp_path)

    assert cycles(imports(found, for_types=False)) == []
    assert cycles(imports(found, for_types=True)) == [frozenset({"house.a", "house.b"})]


def test_class_names_count_when_two_classes_have_them(tmp_path: Path) -> None:
    written(tmp_path, "a.py", "class Line: ...\nclass Only: ...\n")
    written(tmp_path, "b.py", "class Line: ...\n")

    found = counts(files(tmp_path))

    assert found["class names used more than once"] == "1 (2 classes)"
    assert (found["files"], found["lines"]) == ("2", "3")


def test_a_table_takes_the_place_of_the_one_on_a_page() -> None:
    new = table({"before": {"files": "2"}, "after": {"files": "1"}})

    page = with_table("# Counts\n\n| old |\n| --- |\n\nThe end.\n", new)

    assert page == (
        "# Counts\n\n|  | before | after |\n| --- | ---: | ---: |\n| files | 2 | 1 |\n\nThe end.\n"
    )


def written(checkout: Path, name: str, text: str) -> None:
    path = checkout / "src" / "house" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
