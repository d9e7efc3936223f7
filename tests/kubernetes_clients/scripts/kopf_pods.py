"""An operator that watches pods: it marks those that ask for it, and tells how they ended."""

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    settings.posting.level = 20
    settings.persistence.finalizer = "muster.example.org/kopf"


@kopf.on.event("v1", "pods", labels={"watched": "yes"})
def seen(type: str, name: str, status: dict[str, object], **_: object) -> None:
    print("seen", name, type, status.get("phase"), flush=True)


@kopf.on.create("v1", "pods", labels={"watched": "yes"})
def made(name: str, patch: kopf.Patch, body: kopf.Body, **_: object) -> None:
    patch.metadata.labels["marked"] = "yes"
    kopf.event(body, type="Normal", reason="Marked", message=f"{name} is watched")
    print("made", name, flush=True)


@kopf.on.delete("v1", "pods", labels={"watched": "yes"})
def gone(name: str, **_: object) -> None:
    print("gone", name, flush=True)
