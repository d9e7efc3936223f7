import json

import pytest

from containers.images import IMAGE
from kubernetes_clients.desk import SCRIPTS, Desk

pytestmark = pytest.mark.slow


def test_airflow_runs_the_tasks_of_a_dag_as_pods_and_sees_one_fail(airflow: Desk) -> None:
    site = {
        "AIRFLOW_HOME": str(airflow.folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(SCRIPTS / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PLACE": airflow.place,
        "IMAGE": IMAGE,
    }
    airflow.uses("airflow", "db", "migrate", **site)

    ran = airflow.tries("airflow", "dags", "test", "training", **site)

    told = ran.out + ran.err
    assert "[base] trained train-" in told, told
    assert "[base] it is bad" in told, told
    assert "DagRun failed" in told, told
    pods = json.loads(airflow.kubectl("get pods -o json"))["items"]
    ended = {each["metadata"]["labels"]["task_id"]: each["status"]["phase"] for each in pods}
    assert ended == {"train": "Succeeded", "check": "Failed"}
    assert all(each["metadata"]["labels"]["already_checked"] == "True" for each in pods)
