"""A user of the kubernetes package: a file of several objects is created, and its Job runs."""

import sys
from pathlib import Path

from kubernetes import client, config, utils, watch

PLACE, IMAGE = sys.argv[1:3]
FILE = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: numbers}}
data: {{lr: "0.1"}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: sweep}}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: {IMAGE}
        command: [sh, -c, "echo $JOB_COMPLETION_INDEX $LR"]
        env:
        - name: LR
          valueFrom: {{configMapKeyRef: {{name: numbers, key: lr}}}}
        resources: {{limits: {{nvidia.com/gpu: "1"}}}}
"""


def main() -> None:
    config.load_kube_config()
    Path("sweep.yaml").write_text(FILE, encoding="utf-8")
    utils.create_from_yaml(client.ApiClient(), "sweep.yaml", namespace=PLACE)
    batch, core = client.BatchV1Api(), client.CoreV1Api()
    watcher = watch.Watch()
    for event in watcher.stream(batch.list_namespaced_job, PLACE, timeout_seconds=120):
        if event["object"].status.succeeded == 2:
            watcher.stop()
    pods = core.list_namespaced_pod(PLACE, label_selector="job-name=sweep").items
    logs = [core.read_namespaced_pod_log(each.metadata.name, PLACE).strip() for each in pods]
    print("logs", *sorted(logs))
    batch.delete_namespaced_job("sweep", PLACE, propagation_policy="Background")
    try:
        utils.create_from_yaml(client.ApiClient(), "sweep.yaml", namespace=PLACE)
    except utils.FailToCreateError as error:
        print("refused", *(each.reason for each in error.api_exceptions))


if __name__ == "__main__":
    main()
