"""The page of tested clients of Kubernetes.

python -m kubernetes_clients.page > docs/howto/kubernetes-clients.md, with tests on the path.
"""

import re
from pathlib import Path

from clients.listing import ClientsPage

HERE = Path(__file__).parent

HEAD = """\
# Clients of Kubernetes that are tested with Muster

Each of these is installed as its authors publish it, and run, unchanged, against a real Muster
in every build: `make clients` installs them, apart from everything else, and `make test` uses them.
helm is built from its Go modules. Pods run in real containers.
To use one, have `muster kubeconfig` write [the entry](kubernetes.md); there is nothing else to set.
kubectl has tests of its own, with several of its versions.

| client | version | what is tested |
|---|---|---|
"""

TAIL = """
Worth knowing:

- kr8s warns that it does not know Kubernetes 1.36 yet, as it does with a real one, and goes on.
- dask-kubernetes' operator gives workers the name of the scheduler's Service, which pods cannot
  resolve. Name the scheduler in the workers' `args`, such as `tcp://127.0.0.1:8786`: pods share the
  network of their machine.
- kubernetes_asyncio sends a patch of a custom object as a JSON patch unless it is given
  `_content_type="application/merge-patch+json"`, here as anywhere.

This page is made from the tests:

<!-- not run: it writes this page; tests/kubernetes_clients compares it -->
```bash
PYTHONPATH=tests python -m kubernetes_clients.page > docs/howto/kubernetes-clients.md
```
"""

CLIENTS = {
    "kubernetes": "kubernetes",
    "kubernetes-asyncio": "asyncio",
    "lightkube": "lightkube",
    "kr8s": "kr8s",
    "kopf": "kopf",
    "dask-kubernetes": "dask",
    "schemathesis": "schemathesis",
    "apache-airflow-providers-cncf-kubernetes": "airflow",
    "helm": "helm",
}
"""What the name of a client's tests begins with."""


def helm_version() -> str:
    """The one that is built."""
    module = (HERE / "helm" / "go.mod").read_text(encoding="utf-8")
    return re.findall(r"^require helm.sh/helm/v3 v(\S+)$", module, re.MULTILINE)[0]


KUBERNETES = ClientsPage(
    tests=HERE,
    file=HERE.parent.parent / "docs" / "howto" / "kubernetes-clients.md",
    head=HEAD,
    tail=TAIL,
    clients=CLIENTS,
    others={"helm": helm_version()},
)

if __name__ == "__main__":
    print(KUBERNETES.text(), end="")  # noqa: T201  for a file
