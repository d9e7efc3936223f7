"""A token that may less than its owner: through the Kubernetes API, too, it may no more."""

from collections.abc import Iterator

import pytest

from hostile.teams import ADMIN, ANN, Kube, kube, object_of, pod
from muster.controller.messages import Caller
from muster.controller.use_cases.tokens import TokenRequest
from muster.doors.kubernetes.objects.value import JsonObject
from muster.model.site import Role
from muster.model.value import Duration, QueuePath, UserName

TEAM_A, TEAM_B = "/api/v1/namespaces/team-a", "/api/v1/namespaces/team-b"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
HOUR = Duration(3_600_000)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """Bindings let Ann do everything in both teams, and the administrator everywhere."""
    with kube(tmp_path_factory.mktemp("home")) as made:
        for space in ("team-a", "team-b"):
            path = f"{RIGHTS}/namespaces/{space}/rolebindings"
            made.made("root", path, bound_to("RoleBinding", "admin"))
            made.made("root", f"/api/v1/namespaces/{space}/secrets", object_of("Secret", "first"))
        for name, role in ((ANN, "view"), (ADMIN, "cluster-admin")):
            binding = bound_to("ClusterRoleBinding", role, name)
            made.made("root", f"{RIGHTS}/clusterrolebindings", binding)
        yield made


def bound_to(kind: str, role: str, name: str = ANN) -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": f"{name}-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }


def limited(api: Kube, role: Role, queue: str | None = None) -> str:
    return f"Bearer {api.limited_token(ANN, role, queue)}"


def test_a_viewers_token_is_a_viewer_also_where_a_binding_gives_more(api: Kube) -> None:
    token = limited(api, Role.VIEWER, "team-a")

    assert api.ask(ANN, "GET", f"{TEAM_A}/secrets/first").code == 200
    assert api.ask(token, "GET", f"{TEAM_A}/pods").code == 200
    assert api.ask(token, "GET", f"{TEAM_A}/secrets/first").code == 403
    assert api.ask(token, "POST", f"{TEAM_A}/pods", pod("more")).code == 403
    assert api.ask(token, "DELETE", f"{TEAM_A}/secrets/first").code == 403


def test_a_users_token_gives_no_rights_away(api: Kube) -> None:
    token, path = limited(api, Role.USER, "team-a"), f"{RIGHTS}/namespaces/team-a/rolebindings"
    binding = bound_to("RoleBinding", "edit")

    assert api.ask(ANN, "POST", f"{path}?dryRun=All", binding).code == 201
    assert api.ask(token, "POST", f"{path}?dryRun=All", binding).code == 403


def test_what_a_binding_gives_everywhere_a_viewers_token_only_sees(api: Kube) -> None:
    token = f"Bearer {api.limited_token(ADMIN, Role.VIEWER, None)}"
    space = object_of("Namespace", "more")

    assert api.ask(ADMIN, "POST", "/api/v1/namespaces?dryRun=All", space).code == 201
    assert api.ask(token, "POST", "/api/v1/namespaces?dryRun=All", space).code == 403
    assert api.ask(token, "GET", f"{TEAM_B}/secrets/first").code == 403
    assert api.ask(token, "GET", f"{TEAM_B}/pods").code == 200


def test_a_token_of_one_queue_reaches_no_other_by_a_binding(api: Kube) -> None:
    token = limited(api, Role.USER, "team-a")

    assert api.ask(token, "GET", f"{TEAM_A}/secrets/first").code == 200
    assert api.ask(token, "GET", f"{TEAM_B}/secrets/first").code == 403
    assert api.ask(token, "GET", "/api/v1/pods").code == 403


def test_a_small_token_does_not_ask_as_a_greater_account(api: Kube) -> None:
    api.made("root", f"{TEAM_A}/serviceaccounts", object_of("ServiceAccount", "mighty"))
    mighty = bound_to("ClusterRoleBinding", "cluster-admin")
    mighty["subjects"] = [{"kind": "ServiceAccount", "name": "mighty", "namespace": "team-a"}]
    api.made("root", f"{RIGHTS}/clusterrolebindings", mighty)
    whom = {"impersonate_user": "system:serviceaccount:team-a:mighty"}
    secret = f"{TEAM_B}/secrets/first"

    assert api.ask(ANN, "GET", secret, None, **whom).code == 200
    assert api.ask(limited(api, Role.USER, "team-a"), "GET", secret, None, **whom).code == 403


def test_what_was_made_with_a_token_ends_with_it(api: Kube) -> None:
    api.made("root", f"{TEAM_A}/serviceaccounts", object_of("ServiceAccount", "builder"))
    ann = Caller(user=UserName(ANN), door="test")
    wish = TokenRequest(user=ann.user, role=Role.USER, queue=QueuePath("team-a"), lifetime=HOUR)
    made = api.muster.service.make_token(ann, wish).result()
    path = f"{TEAM_A}/serviceaccounts/builder/token"

    answered = api.made(f"Bearer {made.secret}", path, {"spec": {"expirationSeconds": 86_400}})
    token = f"Bearer {answered['status']['token']}"

    assert api.ask(token, "GET", "/version").code == 200
    api.muster.service.revoke(ann, made.token.id).result()
    assert api.ask(token, "GET", "/version").code == 401


@pytest.mark.parametrize("seconds", ["x", [], {}, 1e400, -1, True, 10**30], ids=repr)
def test_how_long_a_token_is_to_last_is_a_number(api: Kube, seconds: object) -> None:
    asked = {"spec": {"expirationSeconds": seconds}}
    said = api.ask("root", "POST", f"{TEAM_A}/serviceaccounts/builder/token", asked)

    assert said.code in {400, 404, 422} or said.body["spec"]["expirationSeconds"] <= 86_400
