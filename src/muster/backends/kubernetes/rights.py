"""What Muster must be allowed to do on a cluster, and what of it it may not."""

from collections.abc import Collection, Iterable

from muster.backends.kubernetes.client import Client

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

EVERYWHERE = (
    ("list", "nodes"),
    ("watch", "nodes"),
    ("list", "pods"),
    ("watch", "pods"),
)
"""Verbs and resources in all namespaces: what others hold is read, and nothing else."""

IN_ITS_NAMESPACES = (
    ("get", "pods"),
    ("create", "pods"),
    ("delete", "pods"),
    ("create", "pods/binding"),
    *(("create", f"pods/{each}") for each in ("exec", "attach", "portforward")),
    ("get", "pods/log"),
    ("patch", "secrets"),
    *((verb, kind) for kind in ("secrets", "services") for verb in ("get", "create", "delete")),
)


WHERE_PODS_ARE_ADOPTED = (
    ("get", "pods"),
    ("patch", "pods"),
    ("patch", "pods/status"),
    ("delete", "pods"),
    ("create", "pods/binding"),
    ("create", "pods/exec"),
    ("get", "pods/log"),
    ("patch", "jobs.batch"),
)


def lacking_rights(
    client: Client, namespaces: Iterable[str], adopted: Collection[str] = ()
) -> list[str]:
    """`create pods in namespace jobs`: what we must do, and may not."""
    wanted = [(verb, kind, "") for verb, kind in EVERYWHERE]
    wanted += [(verb, kind, place) for place in namespaces for verb, kind in IN_ITS_NAMESPACES]
    wanted += [(verb, "jobs.batch", "") for verb in ("list", "watch") if adopted]
    wanted += [(verb, kind, place) for place in adopted for verb, kind in WHERE_PODS_ARE_ADOPTED]
    return [_words(*each) for each in wanted if not _may(client, *each)]


def _may(client: Client, verb: str, kind: str, namespace: str) -> bool:
    named, _, part = kind.partition("/")
    resource, _, group = named.partition(".")
    asked = {"verb": verb, "resource": resource, "group": group}
    asked |= {"subresource": part, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: text for name, text in asked.items() if text}},
    }
    return bool(client.create(_REVIEWS, review)["status"].get("allowed"))


def _words(verb: str, kind: str, namespace: str) -> str:
    return f"{verb} {kind} in namespace {namespace}" if namespace else f"{verb} {kind} everywhere"
