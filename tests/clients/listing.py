"""A page of tested clients, made from the locked lists and from the names of the tests."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

OF_THE_PAGE = ("the_page_", "every_client_")
"""Tests that are of no client."""


@dataclass(frozen=True, kw_only=True)
class ClientsPage:
    """One page. clients: what the names of a client's tests begin with.

    tests: the folder of the tests and of the lists. others: versions that no list names.
    """

    tests: Path
    file: Path
    head: str
    tail: str
    clients: Mapping[str, str]
    others: Mapping[str, str] = field(default_factory=dict[str, str])

    def text(self) -> str:
        """The whole page, as Markdown."""
        return self.head + "".join(self._rows()) + self.tail

    def sentences(self) -> list[str]:
        """What each test of a client says, in order."""
        names: list[str] = []
        for path in sorted(self.tests.glob("test_*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names += [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        said = [name.removeprefix("test_") for name in names if name.startswith("test_")]
        return [name for name in said if not name.startswith(OF_THE_PAGE)]

    def demand_complete(self) -> None:
        """AssertionError if a client has no test, or a test no client."""
        said = self.sentences()
        of = {
            word: [name for name in said if name.startswith(f"{word}_")]
            for word in self.clients.values()
        }
        assert [word for word, own in of.items() if not own] == []
        assert sorted(name for own in of.values() for name in own) == sorted(said)

    def _locked(self) -> dict[str, str]:
        """The version of every package that the lists name."""
        lists = sorted(self.tests.glob("requirements-*.txt"))
        texts = [path.read_text(encoding="utf-8") for path in lists]
        return dict(re.findall(r"^([\w.-]+)==([\w.]+)", "\n".join(texts), re.MULTILINE))

    def _rows(self) -> Iterator[str]:
        versions, said = {**self._locked(), **self.others}, self.sentences()
        for client, word in self.clients.items():
            own = [name.removeprefix(f"{word}_") for name in said if name.startswith(f"{word}_")]
            sentence = re.sub(r"\bgpu", "GPU", "; ".join(own).replace("_", " "))
            yield f"| {client} | {versions[client]} | {sentence} |\n"
