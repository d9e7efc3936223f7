"""A user of kubernetes_asyncio: several pods at once, watched to their end, with their logs."""

import asyncio
import sys

from kubernetes_asyncio import client, config, watch

PLACE, IMAGE = sys.argv[1:3]
NAMES = ("a", "b", "c")


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as connection:
        core = client.CoreV1Api(connection)
        await asyncio.gather(*(core.create_namespaced_pod(PLACE, pod(name)) for name in NAMES))
        ended = await phases(core)
        print("ended", *(f"{name}={ended[name]}" for name in NAMES))
        logs = await asyncio.gather(*(core.read_namespaced_pod_log(name, PLACE) for name in NAMES))
        print("logs", *(log.strip() for log in logs))
        await core.delete_collection_namespaced_pod(PLACE, grace_period_seconds=0)
        print("left", len((await core.list_namespaced_pod(PLACE)).items))
        await job(client.BatchV1Api(connection))


async def phases(core: client.CoreV1Api) -> dict[str, str]:
    found: dict[str, str] = {}
    async with watch.Watch() as watcher:
        async for event in watcher.stream(core.list_namespaced_pod, PLACE, timeout_seconds=120):
            found[event["object"].metadata.name] = event["object"].status.phase
            if all(found.get(name) in ("Succeeded", "Failed") for name in NAMES):
                watcher.stop()
    return found


async def job(batch: client.BatchV1Api) -> None:
    """A job that is suspended, and then is not."""
    spec = {"suspend": True, "template": {"spec": pod("job")["spec"]}}
    await batch.create_namespaced_job(PLACE, {"metadata": {"name": "job"}, "spec": spec})
    async with watch.Watch() as watcher:
        async for event in watcher.stream(batch.list_namespaced_job, PLACE, timeout_seconds=120):
            status = event["object"].status
            found = [each.type for each in status.conditions or () if each.status == "True"]
            if found == ["Suspended"]:
                print("suspended")
                await batch.patch_namespaced_job("job", PLACE, {"spec": {"suspend": False}})
            elif "Complete" in found:
                print("complete", status.succeeded)
                watcher.stop()


def pod(name: str) -> dict[str, object]:
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", f"echo {name}"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


if __name__ == "__main__":
    asyncio.run(main())
