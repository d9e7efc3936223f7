"""A user of the kubernetes package: a kind of their own, by a client that learns kinds."""

import sys

from kubernetes import client, config, dynamic

PLACE, GROUP = sys.argv[1:3]
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["epochs"],
            "properties": {"epochs": {"type": "integer", "minimum": 1}},
        },
        "status": {"type": "object", "properties": {"done": {"type": "integer"}}},
    },
}


def main() -> None:
    config.load_kube_config()
    learner = dynamic.DynamicClient(client.ApiClient())
    kinds = learner.resources.get(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
    )
    kinds.create(body=definition())
    list(until_established(kinds))
    learner.resources.invalidate_cache()
    trainings = learner.resources.get(api_version=f"{GROUP}/v1", kind="Training")
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Training",
        "metadata": {"name": "bert"},
        "spec": {"epochs": 3},
    }
    trainings.create(body=body, namespace=PLACE)
    applied = trainings.server_side_apply(
        body={**body, "metadata": {"name": "bert", "labels": {"by": "me"}}},
        namespace=PLACE,
        field_manager="me",
        force_conflicts=True,
    )
    print("applied", applied.metadata.labels.by, applied.spec.epochs)
    done = trainings.status.patch(
        name="bert",
        namespace=PLACE,
        body={"status": {"done": 2}},
        content_type="application/merge-patch+json",
    )
    print("done", done.status.done, done.spec.epochs)
    for event in trainings.watch(namespace=PLACE, timeout=180):
        print("watched", event["type"], event["object"].metadata.name)
        break
    try:
        trainings.create(body={**body, "spec": {"epochs": 0}}, namespace=PLACE)
    except dynamic.exceptions.UnprocessibleEntityError as error:
        print("refused", error.summary().splitlines()[0])
    trainings.delete(name="bert", namespace=PLACE)
    kinds.delete(name=f"trainings.{GROUP}")


def definition() -> dict[str, object]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
    }
    names = {"kind": "Training", "plural": "trainings", "singular": "training"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"trainings.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def until_established(kinds: object):
    for event in kinds.watch(name=f"trainings.{GROUP}", timeout=180):
        yield event["type"]
        found = event["object"].status.conditions or []
        if any(each.type == "Established" and each.status == "True" for each in found):
            return


if __name__ == "__main__":
    main()
