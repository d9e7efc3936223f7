"""A user of the kubernetes package: a pod with a GPU from its creation to its end, watched."""

import sys

from kubernetes import client, config, watch

PLACE, IMAGE = sys.argv[1:3]
SCRIPT = "echo hello from $NAME; exit 3"


def main() -> None:
    config.load_kube_config()
    core = client.CoreV1Api()
    made = core.create_namespaced_pod(PLACE, pod("hello"))
    print("made", made.metadata.name, made.status.phase)
    phases = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_pod, PLACE, timeout_seconds=120):
        phases.append(event["object"].status.phase)
        if phases[-1] in ("Succeeded", "Failed"):
            watcher.stop()
    print("phases", *dict.fromkeys(phases))
    print("log", core.read_namespaced_pod_log("hello", PLACE).strip())
    ended = core.read_namespaced_pod_status("hello", PLACE)
    print("exit", ended.status.container_statuses[0].state.terminated.exit_code)
    fields = "involvedObject.name=hello"
    told = core.list_namespaced_event(PLACE, field_selector=fields).items
    print("events", *sorted({each.reason for each in told}))
    labelled = core.patch_namespaced_pod("hello", PLACE, {"metadata": {"labels": {"seen": "yes"}}})
    print("labels", labelled.metadata.labels)
    print("selected", len(core.list_namespaced_pod(PLACE, label_selector="seen=yes").items))
    core.delete_namespaced_pod("hello", PLACE, grace_period_seconds=0)
    try:
        core.read_namespaced_pod("nobody", PLACE)
    except client.ApiException as error:
        print("missing", error.status, error.reason)


def pod(name: str) -> client.V1Pod:
    container = client.V1Container(
        name="main",
        image=IMAGE,
        command=["sh", "-c", SCRIPT],
        env=[client.V1EnvVar(name="NAME", value="Python")],
        resources=client.V1ResourceRequirements(limits={"nvidia.com/gpu": "1"}),
    )
    spec = client.V1PodSpec(restart_policy="Never", containers=[container])
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name), spec=spec)


if __name__ == "__main__":
    main()
