"""Whose processes a pod's are: nobody is somebody else by writing objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.people import spec, until
from hostile.teams import (
    ADMIN,
    AMY,
    ANN,
    BEN,
    BOSS,
    Kube,
    deployment,
    kube,
    object_of,
    pod,
    with_metadata,
)
from muster.controller.messages import Caller
from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.errors import ForbiddenError
from muster.model.value import QueuePath, UserName, replace

PODS = "/api/v1/namespaces/team-a/pods"
CONFIG_MAPS = "/api/v1/namespaces/team-a/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/team-a/deployments"
CREATOR = "muster.io/creator"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        yield made


def owner(obj: dict[str, object]) -> dict[str, object]:
    meta = obj["metadata"]
    assert isinstance(meta, dict)
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def anonymous(**more: Any) -> JsonObject:
    """A pod whose name is no other's."""
    return {**pod("", **more), "metadata": {"generateName": "more-"}}


def test_a_pod_is_its_creators(api: Kube) -> None:
    api.made(ANN, PODS, pod("own"))

    assert api.user_of("team-a", "own") == ANN


def test_who_names_another_creator_is_still_themselves(api: Kube) -> None:
    api.made(ANN, PODS, with_metadata(pod("claimed"), annotations={CREATOR: "root"}))

    assert api.user_of("team-a", "claimed") == ANN


def test_an_owner_of_ones_own_making_makes_nobody_else_of_one(api: Kube) -> None:
    written = with_metadata(object_of("ConfigMap", "forged"), annotations={CREATOR: "root"})
    forged = api.made(ANN, CONFIG_MAPS, written)
    api.made(ANN, PODS, with_metadata(pod("of-forged"), ownerReferences=[owner(forged)]))

    assert api.user_of("team-a", "of-forged") == ANN


def test_an_owner_that_is_not_there_makes_nobody_else_of_one(api: Kube) -> None:
    nobody = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "y"}
    claimed: dict[str, object] = {
        "ownerReferences": [{**nobody, "controller": True}],
        "annotations": {CREATOR: "root"},
    }
    made = api.made(ANN, PODS, with_metadata(pod("of-nothing"), **claimed))

    assert api.user_of_uid(made["metadata"]["uid"]) == ANN


def test_a_pod_under_somebody_elses_workload_is_its_creators(api: Kube) -> None:
    theirs = api.made(AMY, DEPLOYMENTS, deployment("amys"))
    api.made(ANN, PODS, with_metadata(pod("guest"), ownerReferences=[owner(theirs)]))

    assert api.user_of("team-a", "guest") == ANN


def test_pods_of_a_workload_are_its_creators(api: Kube) -> None:
    api.made(AMY, DEPLOYMENTS, deployment("honest"))
    names = until(lambda: api.pods_of("team-a", "honest"), bool)

    assert api.user_of("team-a", names[0]) == AMY


def test_a_workload_cannot_be_given_away_by_an_annotation(api: Kube) -> None:
    api.made(ANN, DEPLOYMENTS, deployment("given"))
    patch = {"metadata": {"annotations": {CREATOR: "root"}}, "spec": {"replicas": 2}}
    said = api.ask(ANN, "PATCH", f"{DEPLOYMENTS}/given", patch, content_type=MERGE)
    names = until(lambda: api.pods_of("team-a", "given"), lambda found: len(found) == 2)

    assert CREATOR not in said.body["metadata"].get("annotations", {})
    assert {api.user_of("team-a", each) for each in names} == {ANN}


@pytest.mark.parametrize("who", [BOSS, ADMIN])
def test_who_may_change_workloads_does_not_say_what_others_run(api: Kube, who: str) -> None:
    api.made(AMY, DEPLOYMENTS, deployment(f"of-amy-{who}"))
    path = f"{DEPLOYMENTS}/of-amy-{who}"
    container = {"name": "c", "image": "busybox", "command": ["steal"]}
    stolen = {"spec": {"template": {"spec": {"containers": [container]}}}}

    assert api.ask(who, "PATCH", path, stolen, content_type=MERGE).code == 403
    assert api.ask(who, "PATCH", path, {"spec": {"replicas": 0}}, content_type=MERGE).code == 200
    assert api.ask(AMY, "PATCH", path, stolen, content_type=MERGE).code == 200
    again = {"spec": {"replicas": 1, **stolen["spec"]}}
    assert api.ask("root", "PATCH", path, again, content_type=MERGE).code == 200
    names = until(lambda: api.pods_of("team-a", f"of-amy-{who}"), bool)
    assert api.user_of("team-a", names[0]) == AMY


def test_acting_for_somebody_is_not_being_them(api: Kube) -> None:
    said = api.ask(ADMIN, "POST", PODS, pod("as-root"), impersonate_user="root")

    assert said.code == 403
    assert api.ask(ADMIN, "GET", PODS, impersonate_user=ANN).code == 200


def test_nobody_volunteers_another_for_the_accounts_of_a_namespace(api: Kube) -> None:
    name = {"metadata": {"annotations": {"muster.io/person": "root"}}}
    said = api.ask(ADMIN, "PATCH", "/api/v1/namespaces/team-a", name, content_type=MERGE)

    assert said.code == 403
    own = {"metadata": {"annotations": {"muster.io/person": ADMIN}}}
    path = "/api/v1/namespaces/team-a"
    assert api.ask(ADMIN, "PATCH", path, own, content_type=MERGE).code == 200


def test_who_looks_after_all_does_not_change_what_everybody_runs(api: Kube) -> None:
    group = "admissionregistration.k8s.io/v1"
    path = f"/apis/{group}/mutatingwebhookconfigurations"
    hook = {"apiVersion": group, "kind": "MutatingWebhookConfiguration"}
    wanted: JsonObject = {**hook, "metadata": {"name": "mine"}, "webhooks": []}

    assert api.ask(ADMIN, "POST", path, wanted).code == 403
    assert api.ask("root", "POST", path, wanted).code == 201


def test_pods_of_accounts_are_the_person_whom_the_namespace_names(api: Kube) -> None:
    path = "/api/v1/namespaces/team-b"
    name = {"metadata": {"annotations": {"muster.io/person": "news"}}}
    assert api.ask("root", "PATCH", path, name, content_type=MERGE).code == 200
    account = {"impersonate_user": "system:serviceaccount:team-b:default"}
    pods = f"{path}/pods"
    said = api.ask("root", "POST", pods, pod("of-account"), **account)
    assert said.code == 403
    grant = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "accounts"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "edit",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "team-b"}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-b/rolebindings"
    api.made("root", bindings, grant)
    said = api.ask("root", "POST", pods, pod("of-account"), **account)
    assert said.code == 201, said.text

    assert api.user_of("team-b", "of-account") == "news"


@pytest.mark.parametrize(
    "more",
    [
        {"hostNetwork": True},
        {"hostPID": True},
        {"hostIPC": True},
        {"securityContext": {"runAsUser": 0}},
        {"securityContext": {"runAsGroup": 0}},
        {"securityContext": {"supplementalGroups": [0]}},
        {"securityContext": {"sysctls": [{"name": "kernel.core_pattern", "value": "|/bin/sh"}]}},
        {"volumes": [{"name": "v", "hostPath": {"path": "/root"}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/proc/1/root/root"}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/home/../root"}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "relative"}}]},
    ],
    ids=str,
)
def test_nobody_asks_for_more_than_they_are(api: Kube, more: dict[str, object]) -> None:
    for dry_run in ("", "?dryRun=All"):
        said = api.ask(ANN, "POST", PODS + dry_run, anonymous(**more))
        assert said.code in {403, 422}, said.text


def test_a_link_is_what_it_leads_to(api: Kube, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o011)
    hidden = tmp_path / "hidden"
    (hidden / "open").mkdir(parents=True)
    hidden.chmod(0o700)
    link = tmp_path / "link"
    link.symlink_to(hidden / "open")
    volume = {"name": "v", "hostPath": {"path": str(link)}}
    said = api.ask(ANN, "POST", PODS, anonymous(volumes=[volume]))

    assert said.code == 403, said.text


@pytest.mark.parametrize(
    "security",
    [
        {"privileged": True},
        {"runAsUser": 0},
        {"runAsGroup": 0},
        {"capabilities": {"add": ["SYS_ADMIN"]}},
        {"capabilities": {"add": ["ALL"]}},
    ],
    ids=str,
)
@pytest.mark.parametrize("place", ["containers", "initContainers"])
def test_no_container_has_more_than_its_creator(
    api: Kube, security: dict[str, object], place: str
) -> None:
    own = {"name": "bad", "image": "busybox", "command": ["true"], "securityContext": security}
    plain = {"name": "c", "image": "busybox", "command": ["true"]}
    lists = {"containers": [plain], place: [own]}
    said = api.ask(ANN, "POST", PODS, anonymous(**lists))

    assert said.code in {403, 422}, said.text


def test_a_person_without_an_account_here_runs_nothing(api: Kube) -> None:
    everyone = "/api/v1/namespaces/default/pods"
    wanted = pod(
        "ghost", containers=[{"name": "c", "image": "b", "securityContext": {"privileged": True}}]
    )
    said = api.ask("no-such-person", "POST", everyone, wanted)

    assert said.code == 403, said.text


def test_a_pod_is_in_the_queue_of_its_namespace(api: Kube) -> None:
    elsewhere = with_metadata(pod("elsewhere"), annotations={"muster.io/queue": "team-b"})
    said = api.ask(ADMIN, "POST", PODS, elsewhere)

    assert said.code in {403, 422}, said.text


def test_a_class_that_one_may_not_use_is_refused(api: Kube) -> None:
    said = api.ask(ANN, "POST", PODS, pod("vip", priorityClassName="high"))

    assert said.code == 403, said.text


def test_no_job_of_another_door_claims_to_be_a_pod(api: Kube) -> None:
    uid = api.made(ANN, PODS, pod("victim"))["metadata"]["uid"]
    claimed = spec(user=UserName(BEN), labels={"kubernetes/uid": uid}, queue=QueuePath("team-b"))
    caller = Caller(user=UserName(BEN), door="test")
    submit, update = api.muster.service.submit, api.muster.service.update
    with pytest.raises(ForbiddenError, match="only Muster sets it"):
        submit(caller, claimed).result()

    own = submit(caller, replace(claimed, labels={}), held=True).result().jobs[0]
    with pytest.raises(ForbiddenError, match="only Muster sets it"):
        update(caller, own, lambda given: replace(given, labels=claimed.labels)).result()


pytestmark = pytest.mark.slow
