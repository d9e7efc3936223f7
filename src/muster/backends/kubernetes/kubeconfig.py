"""Which API server a kubeconfig means, and how it is convinced of who we are."""

import base64
import binascii
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from muster.model.value import Value


class BadKubeconfigError(Exception):
    """The kubeconfig does not say what is needed; the text says what."""


class Program(Value):
    """A program that prints a token, as the clouds have them."""

    words: tuple[str, ...]
    env: Mapping[str, str] = {}
    version: str = "client.authentication.k8s.io/v1"


class Access(Value):
    """How one cluster is reached. Certificates and keys are PEM texts.

    token_file: read again and again, because what it holds is renewed.
    """

    server: str
    namespace: str = "default"
    authority: str = ""
    verifies: bool = True
    server_name: str = ""
    token: str = ""
    token_file: str = ""
    certificate: str = ""
    key: str = ""
    program: Program | None = None


def access_of(path: Path, context: str = "") -> Access:
    """What the file says of this context, or of its current one.

    It may name programs, which are run as we are: nobody else may change it.
    """
    others = changed_by(path)
    if others:
        why = f"{others}, and what {path} names is run as root: give it to root (chown, chmod 600)"
        raise BadKubeconfigError(why)
    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadKubeconfigError(f"{path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise BadKubeconfigError(f"{path} is no kubeconfig")
    return _access(cast("dict[str, Any]", document), context, path.parent)


def changed_by(path: Path) -> str:
    """Who could change the file besides root; empty for nobody, and where we are not root."""
    if os.geteuid() != 0:
        return ""
    whole = Path(os.path.abspath(path))
    for each in (whole, *whole.parents, *(real := whole.resolve()).parents, real):
        try:
            found = each.stat()
        except OSError:
            continue
        if found.st_uid != 0:
            return f"{each} belongs to uid {found.st_uid}"
        is_shared = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid)
        if is_shared and not (each.is_dir() and found.st_mode & stat.S_ISVTX):
            return f"{each} can be written by others"
    return ""


_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_OF_KUBECTL = "~/.kube/config"


class OurPod(Value):
    """What a pod finds around it that has an account."""

    environ: Mapping[str, str]
    account: Path = _ACCOUNT

    @property
    def has_account(self) -> bool:
        return bool(self.environ.get(_HOST)) and (self.account / "token").exists()


def file_to_use(named: Path | None, pod: OurPod) -> str:
    """The kubeconfig that is named, else kubectl's; none in a pod that has an account instead."""
    usual = Path(pod.environ.get("KUBECONFIG", "").partition(":")[0] or _OF_KUBECTL).expanduser()
    if named is None and not usual.exists() and pod.has_account:
        return ""
    return str((named or usual).expanduser().absolute())


def access_to(path: str, context: str, pod: OurPod) -> Access:
    """By the kubeconfig at this path; without one, by the account of the pod that this runs in."""
    return access_of(Path(path), context) if path else access_in_cluster(pod)


def access_in_cluster(pod: OurPod) -> Access:
    """As a pod that has an account reaches the cluster that it is in."""
    if not pod.has_account:
        raise BadKubeconfigError("this is no pod with an account; name a kubeconfig")
    host, port = pod.environ[_HOST], pod.environ.get(_PORT, "443")
    named = f"[{host}]" if ":" in host else host
    try:
        return Access(
            server=f"https://{named}:{port}",
            namespace=(pod.account / "namespace").read_text(encoding="utf-8").strip(),
            authority=(pod.account / "ca.crt").read_text(encoding="utf-8"),
            token_file=str(pod.account / "token"),
        )
    except OSError as error:
        raise BadKubeconfigError(f"the account of this pod cannot be read: {error}") from None


def _access(document: dict[str, Any], context: str, folder: Path) -> Access:
    chosen = context or document.get("current-context") or ""
    if not chosen:
        raise BadKubeconfigError("the kubeconfig has no current context; name one with --context")
    named = _entry(document, "contexts", "context", chosen)
    cluster = _entry(document, "clusters", "cluster", str(named.get("cluster", "")))
    user = _entry(document, "users", "user", str(named.get("user", "")))
    if not cluster.get("server"):
        raise BadKubeconfigError(f"cluster {named.get('cluster')} has no server")
    token_file = user.get("tokenFile") or ""
    return Access(
        server=str(cluster["server"]).rstrip("/"),
        namespace=named.get("namespace") or "default",
        authority=_text(cluster, "certificate-authority", folder),
        verifies=not cluster.get("insecure-skip-tls-verify", False),
        server_name=cluster.get("tls-server-name") or "",
        token=user.get("token") or "",
        token_file=str(folder / token_file) if token_file else "",
        certificate=_text(user, "client-certificate", folder),
        key=_text(user, "client-key", folder),
        program=_program(user.get("exec")),
    )


def _entry(document: Mapping[str, Any], kind: str, inside: str, name: str) -> dict[str, Any]:
    for each in document.get(kind) or ():
        if each.get("name") == name:
            return each.get(inside) or {}
    known = ", ".join(str(each.get("name")) for each in document.get(kind) or ()) or "none"
    raise BadKubeconfigError(f"the kubeconfig has no {inside} {name}; it has: {known}")


def _text(section: Mapping[str, Any], name: str, folder: Path) -> str:
    """`name-data` in base64, or the file that `name` is."""
    data, path = section.get(f"{name}-data"), section.get(name)
    try:
        if data:
            return base64.b64decode(data).decode()
        return (folder / path).read_text(encoding="utf-8") if path else ""
    except (OSError, UnicodeDecodeError, binascii.Error) as error:
        raise BadKubeconfigError(f"{name} cannot be read: {error}") from None


def _program(section: Mapping[str, Any] | None) -> Program | None:
    if not section:
        return None
    pairs = section.get("env") or ()
    return Program(
        words=(section["command"], *(section.get("args") or ())),
        env={each["name"]: each["value"] for each in pairs},
        version=section.get("apiVersion", "client.authentication.k8s.io/v1"),
    )
