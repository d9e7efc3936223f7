"""The page of tested clients, made from the locked lists and from the names of the tests.

python -m clients.page > docs/howto/slurm-clients.md, with tests on the path.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "howto" / "slurm-clients.md"

HEAD = """\
# Clients of Slurm that are tested with Muster

Each of these is installed as its authors publish it and run, unchanged, against a real Muster
in every build: `make clients` installs them, apart from everything else, and `make test` uses them.
To use one, put [Muster's commands](slurm.md) on the PATH; there is nothing else to set.

| client | version | what is tested |
|---|---|---|
"""

TAIL = """
Small examples to begin with: [examples/clients](../../examples/README.md).

This page is made from the tests:

<!-- not run: it writes this page; tests/clients compares it -->
```bash
PYTHONPATH=tests python -m clients.page > docs/howto/slurm-clients.md
```
"""

CLIENTS = {
    "submitit": "submitit",
    "hydra-submitit-launcher": "hydra",
    "snakemake-executor-plugin-slurm": "snakemake",
    "dask-jobqueue": "dask_jobqueue",
    "parsl": "parsl",
    "psij-python": "psij",
    "torchx": "torchx",
    "lightning": "lightning",
    "executorlib": "executorlib",
    "ipyparallel": "ipyparallel",
    "simple-slurm": "simple_slurm",
    "reframe-hpc": "reframe",
    "reportseff": "reportseff",
    "slurm2sql": "slurm2sql",
    "clusterscope": "clusterscope",
    "turm": "turm",
    "toil": "toil",
    "signac-flow": "signac_flow",
    "radical-saga": "radical_saga",
    "qtoolkit": "qtoolkit",
}
"""What the name of a client's tests begins with."""


def page() -> str:
    """The whole page, as Markdown."""
    rows = "".join(_rows(locked(), sentences()))
    return HEAD + rows + TAIL


def locked() -> dict[str, str]:
    """The version of every package that the lists name."""
    lists = sorted(HERE.glob("requirements-*.txt"))
    texts = [path.read_text(encoding="utf-8") for path in lists]
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", "\n".join(texts), re.MULTILINE))


def sentences() -> list[str]:
    """What each test of a client says, in order."""
    names: list[str] = []
    for path in sorted(HERE.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names += [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name.removeprefix("test_") for name in names if name.startswith("test_")]


def _rows(versions: dict[str, str], said: list[str]) -> Iterator[str]:
    for client, word in CLIENTS.items():
        own = [name.removeprefix(f"{word}_") for name in said if name.startswith(f"{word}_")]
        sentence = re.sub(r"\bgpu", "GPU", "; ".join(own).replace("_", " "))
        yield f"| {client} | {versions[client]} | {sentence} |\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  for a file
