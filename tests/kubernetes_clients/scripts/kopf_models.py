"""An operator with a kind of its own: a Model is trained by a Job, and its status says how far."""

import kopf
from kubernetes_asyncio import client, config

GROUP = "models.example.org"


@kopf.on.startup()
async def connect(**_: object) -> None:
    await config.load_kube_config()


@kopf.on.create(GROUP, "v1", "models")
async def train(spec: kopf.Spec, name: str, namespace: str, patch: kopf.Patch, **_: object) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"train-{name}"}}
    container = {
        "name": "main",
        "image": spec["image"],
        "command": ["sh", "-c", f"echo trained for {spec['epochs']}"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job["spec"] = {"template": template}
    kopf.adopt(job)
    async with client.ApiClient() as connection:
        await client.BatchV1Api(connection).create_namespaced_job(namespace, job)
    patch.status["phase"] = "Training"


@kopf.on.field("batch", "v1", "jobs", field="status.succeeded", new=1)
async def trained(namespace: str, meta: kopf.Meta, **_: object) -> None:
    owner = meta["ownerReferences"][0]
    if owner["kind"] != "Model":
        return
    async with client.ApiClient() as connection:
        custom = client.CustomObjectsApi(connection)
        await custom.patch_namespaced_custom_object_status(
            GROUP,
            "v1",
            namespace,
            "models",
            owner["name"],
            {"status": {"phase": "Trained"}},
            _content_type="application/merge-patch+json",
        )


@kopf.on.field(GROUP, "v1", "models", field="spec.epochs")
def longer(old: int | None, new: int, body: kopf.Body, **_: object) -> None:
    if old is not None:
        kopf.event(body, type="Normal", reason="Longer", message=f"{old} to {new} epochs")
