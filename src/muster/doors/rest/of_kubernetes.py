"""Routes about the Kubernetes API: how kubectl gets there."""

from muster.api.site import KubernetesDocument
from muster.doors.rest.operation import Asked, Operation
from muster.doors.units import rfc3339
from muster.model.errors import UnknownError

NOT_SERVED = (
    "This Muster does not serve the Kubernetes API. "
    "Its administrator can have it do so: muster up --kubernetes."
)


async def _entry(asked: Asked) -> KubernetesDocument:
    entry = asked.door.kubernetes
    if entry is None:
        raise UnknownError(NOT_SERVED)
    token, ends = entry.token_for(asked.caller)
    return KubernetesDocument(
        server=entry.server,
        ca=entry.ca.decode(),
        user=asked.caller.user,
        token=token,
        expires_at=rfc3339(ends),
    )


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/kubernetes/token",
        summary="Get an address and a short-lived token for kubectl",
        answer=_entry,
        gives=KubernetesDocument,
        status=201,
    ),
)
