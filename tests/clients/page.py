"""The page of tested clients, made from the locked lists and from the names of the tests.

python -m clients.page > docs/howto/slurm-clients.md, with tests on the path.
"""

from pathlib import Path

from clients.listing import ClientsPage

HERE = Path(__file__).parent

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
    "job-defense-shield": "job_defense_shield",
    "slurm2sql": "slurm2sql",
    "clusterscope": "clusterscope",
    "turm": "turm",
    "toil": "toil",
    "signac-flow": "signac_flow",
    "radical-saga": "radical_saga",
    "qtoolkit": "qtoolkit",
}
"""What the name of a client's tests begins with."""


SLURM = ClientsPage(
    tests=HERE,
    file=HERE.parent.parent / "docs" / "howto" / "slurm-clients.md",
    head=HEAD,
    tail=TAIL,
    clients=CLIENTS,
)

if __name__ == "__main__":
    print(SLURM.text(), end="")  # noqa: T201  for a file
