"""A user of Airflow: the tasks of this DAG are pods; one ends well, and the one after it fails."""

import os

import pendulum
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG


def task(name: str, line: str) -> KubernetesPodOperator:
    return KubernetesPodOperator(
        task_id=name,
        namespace=os.environ["PLACE"],
        image=os.environ["IMAGE"],
        cmds=["sh", "-c"],
        arguments=[line],
        container_resources={"limits": {"nvidia.com/gpu": "1"}},
        get_logs=True,
        on_finish_action="keep_pod",
        in_cluster=False,
        startup_timeout_seconds=120,
    )


with DAG("training", start_date=pendulum.datetime(2026, 1, 1), schedule=None):
    task("train", "echo trained $HOSTNAME") >> task("check", "echo it is bad; exit 4")
