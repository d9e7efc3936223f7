"""What pods are supplied with when they run: ConfigMaps, Secrets, and tokens of their accounts."""

import base64
from collections.abc import Callable, Mapping

from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, POD, SECRET, SERVICE_ACCOUNT
from muster.doors.kubernetes.objects.value import JsonObject, part
from muster.doors.kubernetes.pods.defaults import ROOT_CA
from muster.doors.kubernetes.serve.tokens import ISSUER, AccountToken, Bound, Signer
from muster.doors.kubernetes.serve.view import ObjectView
from muster.launch.pods.variables import source_key, wanted_sources
from muster.model.kept_object import ObjectKey
from muster.model.pod import PodLaunch, SourceKind
from muster.model.value import Instant

TOKEN_S = 24 * 3_600
"""A token is not renewed while a pod runs, so that it lasts as long as most of them do.

It ends with the pod.
"""


_READABLE = {CONFIG_MAP.plural: SourceKind.CONFIG_MAP, SECRET.plural: SourceKind.SECRET}


def source_of(key: ObjectKey) -> str | None:
    """How pods name this object, if it is one that they can read."""
    kind = None if key.group else _READABLE.get(key.resource)
    return None if kind is None else source_key(kind, key.name)


class PodSupplies:
    """Looks up what pods name."""

    def __init__(
        self, view: ObjectView, signer: Signer, clock: Callable[[], Instant], ca: bytes
    ) -> None:
        self._view = view
        self._signer = signer
        self._clock = clock
        self._ca = ca

    def of(self, pod: PodLaunch) -> Mapping[str, Mapping[str, bytes] | None]:
        """By name; None for what is not there."""
        return {name: self._found(name, pod) for name in wanted_sources(pod)}

    def _found(self, source: str, pod: PodLaunch) -> Mapping[str, bytes] | None:
        kind, _, name = source.partition("/")
        if kind == "token":
            return self._token(pod, name)
        if kind == "configmap" and name == ROOT_CA:
            return {"ca.crt": self._ca}
        found = self._view.get(SECRET if kind == "secret" else CONFIG_MAP, pod.namespace, name)
        return None if found is None else _held(found, is_secret=kind == "secret")

    def _token(self, pod: PodLaunch, audience: str) -> Mapping[str, bytes] | None:
        account = self._view.get(SERVICE_ACCOUNT, pod.namespace, pod.account)
        if account is None:
            return None
        wish = AccountToken(
            audiences=(audience or ISSUER,),
            seconds=TOKEN_S,
            bound=Bound(kind=POD, name=pod.name, uid=pod.uid),
        )
        token, _ = self._signer.for_account(account, wish, self._clock())
        return {"token": token.encode()}


def _held(obj: JsonObject, *, is_secret: bool) -> dict[str, bytes]:
    plain = {key: str(text) for key, text in part(obj, "data").items()}
    if is_secret:
        return {key: base64.b64decode(text) for key, text in plain.items()}
    raw = {key: base64.b64decode(str(text)) for key, text in part(obj, "binaryData").items()}
    return {**{key: text.encode() for key, text in plain.items()}, **raw}
