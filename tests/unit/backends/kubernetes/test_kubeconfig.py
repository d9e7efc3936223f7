"""Which cluster is meant where no kubeconfig is named: that of the pod, if this is one."""

from pathlib import Path

import pytest

from muster.backends.kubernetes.client import Client
from muster.backends.kubernetes.kubeconfig import (
    BadKubeconfigError,
    OurPod,
    access_in_cluster,
    access_of,
    file_to_use,
)
from muster.model.value import replace
from pretend_kubernetes.api import NODES, node, pretend_api


def pod(folder: Path, host: str = "10.96.0.1") -> OurPod:
    """What Kubernetes mounts into every pod that has an account."""
    for name, text in (("token", "first\n"), ("namespace", "muster\n"), ("ca.crt", "")):
        (folder / name).write_text(text, encoding="utf-8")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    return OurPod(environ=environ | {"KUBECONFIG": str(folder / "none")}, account=folder)


def test_a_pod_reaches_its_cluster_by_its_account(tmp_path: Path) -> None:
    access = access_in_cluster(pod(tmp_path))

    assert access.server == "https://10.96.0.1:443"
    assert access.namespace == "muster"
    assert access.token_file == str(tmp_path / "token")
    assert access.verifies


def test_an_address_of_the_longer_kind_is_put_into_brackets(tmp_path: Path) -> None:
    assert access_in_cluster(pod(tmp_path, "fd00::1")).server == "https://[fd00::1]:443"


def test_without_an_account_a_kubeconfig_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(BadKubeconfigError, match="name a kubeconfig"):
        access_in_cluster(OurPod(environ={}, account=tmp_path))


def test_an_account_that_lacks_something_says_so(tmp_path: Path) -> None:
    inside = pod(tmp_path)
    (tmp_path / "ca.crt").unlink()

    with pytest.raises(BadKubeconfigError, match="account of this pod"):
        access_in_cluster(inside)


def test_a_kubeconfig_goes_before_the_account_of_a_pod(tmp_path: Path) -> None:
    inside = pod(tmp_path)
    assert file_to_use(None, inside) == ""

    (tmp_path / "none").touch()

    assert file_to_use(None, inside) == str(tmp_path / "none")
    assert file_to_use(Path("/etc/other"), inside) == "/etc/other"


def test_outside_of_a_pod_the_file_of_kubectl_is_meant_though_it_is_missing(
    tmp_path: Path,
) -> None:
    outside = OurPod(environ={"KUBECONFIG": f"{tmp_path}/none"}, account=tmp_path)

    assert file_to_use(None, outside) == f"{tmp_path}/none"


def test_a_token_that_was_renewed_is_shown_from_then_on(tmp_path: Path) -> None:
    with pretend_api(tmp_path) as (api, kubeconfig):
        api.make(NODES, node("n1", 4))
        token = tmp_path / "token"
        token.write_text("first\n", encoding="utf-8")
        access = replace(access_of(kubeconfig), token="", token_file=str(token))
        client = Client(access)
        client.get(NODES)
        token.write_text("second\n", encoding="utf-8")
        client.get(NODES)
        client.close()

        assert api.tokens[-2:] == ["first", "second"]
