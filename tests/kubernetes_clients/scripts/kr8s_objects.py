"""A user of kr8s: pods, waiting, logs, a deployment that is scaled, and nodes."""

import sys

import kr8s
from kr8s.objects import Deployment, Pod

PLACE, IMAGE = sys.argv[1:3]


def main() -> None:
    api = kr8s.api(namespace=PLACE)
    print("version", api.version()["gitVersion"])
    pod = Pod(made("Pod", "v1", "one", pod_spec("echo hi", "Never")), api=api)
    pod.create()
    pod.wait("jsonpath='{.status.phase}'=Succeeded", timeout=120)
    print("log", *pod.logs())
    pod.label({"seen": "yes"})
    print(
        "selected",
        *(each.name for each in kr8s.get("pods", namespace=PLACE, label_selector={"seen": "yes"})),
    )
    pod.delete()
    deployment = Deployment(web(), api=api)
    deployment.create()
    deployment.wait("condition=Available", timeout=120)
    deployment.scale(2)
    deployment.wait("jsonpath='{.status.readyReplicas}'=2", timeout=120)
    print("ready", deployment.status.readyReplicas, len(list(deployment.pods())))
    deployment.delete(propagation_policy="Foreground")
    nodes = list(kr8s.get("nodes"))
    print("gpus", *(each.status.capacity["nvidia.com/gpu"] for each in nodes))
    try:
        Pod.get("nothing", namespace=PLACE)
    except kr8s.NotFoundError:
        print("missing")


def made(kind: str, version: str, name: str, spec: dict[str, object]) -> dict[str, object]:
    place = {"name": name, "namespace": PLACE}
    return {"apiVersion": version, "kind": kind, "metadata": place, "spec": spec}


def pod_spec(line: str, restart: str) -> dict[str, object]:
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", line]}
    return {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }


def web() -> dict[str, object]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec("sleep 600", "Always")}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return made("Deployment", "apps/v1", "web", spec)


if __name__ == "__main__":
    main()
