"""A user of lightkube: apply, wait, logs, a status, and an object of a kind without a class."""

import sys

from lightkube import ApiError, Client
from lightkube.models.batch_v1 import JobSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec, ResourceRequirements
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod
from lightkube.types import PatchType

PLACE, IMAGE = sys.argv[1:3]


def main() -> None:
    client = Client(namespace=PLACE, field_manager="lightkube-user")
    for lr in ("0.1", "0.2"):
        applied = client.apply(ConfigMap(metadata=ObjectMeta(name="cfg"), data={"lr": lr}))
        print("applied", applied.data)
    patched = client.patch(
        ConfigMap, "cfg", {"data": {"lr": None, "seed": "1"}}, patch_type=PatchType.MERGE
    )
    print("patched", patched.data)
    client.create(job())
    ended = client.wait(Job, "train", for_conditions=["Complete"], raise_for_conditions=["Failed"])
    print("complete", ended.status.succeeded)
    pod = next(iter(client.list(Pod, labels={"job-name": "train"})))
    print("log", *(line.strip() for line in client.log(pod.metadata.name)))
    for kind, found in client.watch(Pod, fields={"metadata.name": pod.metadata.name}):
        print("watched", kind, found.status.phase)
        break
    client.delete(Job, "train")
    print("here", PLACE in {each.metadata.name for each in client.list(Namespace)})
    try:
        client.get(ConfigMap, "nothing")
    except ApiError as error:
        print("missing", error.status.code, error.status.reason)


def job() -> Job:
    container = Container(
        name="main",
        image=IMAGE,
        command=["sh", "-c", "echo trained"],
        resources=ResourceRequirements(limits={"nvidia.com/gpu": "2"}),
    )
    template = PodTemplateSpec(spec=PodSpec(restartPolicy="Never", containers=[container]))
    return Job(metadata=ObjectMeta(name="train"), spec=JobSpec(template=template, backoffLimit=0))


if __name__ == "__main__":
    main()
