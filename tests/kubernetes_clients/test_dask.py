import pytest

from containers.images import IMAGE
from kubernetes_clients.desk import SCRIPTS, Desk

pytestmark = pytest.mark.slow


def test_dask_computes_on_workers_that_its_operator_starts_and_adds(desk: Desk) -> None:
    (package,) = desk.environment.glob("lib/python*/site-packages/dask_kubernetes")
    kinds = package / "operator/deployment/helm/dask-kubernetes-operator/crds"
    desk.house.kubectl(f"apply -f {kinds}")
    beside = str(SCRIPTS / "dask_pending.py")
    operator = ("kopf", "run", "-m", "dask_kubernetes.operator.controller", beside)

    with desk.beside(*operator, "--namespace", desk.place, "--standalone") as said:
        script = str(SCRIPTS / "dask_cluster.py")
        ran = desk.tries("python", script, desk.place, IMAGE, str(desk.environment))

    seen = "" if ran.code == 0 else desk.kubectl("get daskclusters,pods,events -o wide")
    assert ran.code == 0, f"{ran.out}{ran.err}{said.read_text()}{seen}"
    assert {"sum 45", "workers 2", "scaled 3"} <= set(ran.out.splitlines())
