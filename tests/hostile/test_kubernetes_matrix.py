"""Who may do what with which objects of the Kubernetes API: every combination of verb, resource,
namespace and person, and what came of each.

What is refused must say nothing of the object, and leave everything as it was.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from hostile.people import until
from hostile.teams import (
    ADMIN,
    AMY,
    ANN,
    BEN,
    BOSS,
    OF_TEAM,
    STRANGER,
    TEAMS,
    Kube,
    Said,
    deployment,
    kube,
    object_of,
    pod,
    with_metadata,
)
from muster.doors.kubernetes.objects.kinds import KINDS
from muster.doors.kubernetes.objects.value import JsonObject, metadata, part
from muster.doors.kubernetes.serve.watching import Watch
from muster.model.site import Role

MARK = "what-only-its-team-may-know"
EXISTS, MISSING = "first", "no-such"
OWNER = {"team-a": ANN, "team-b": BEN}

NAMES_OF = {
    "nobody": "",
    "a stranger": STRANGER,
    "an administrator": ADMIN,
    "root": "root",
    **{f"{role} of {team}: {name}": name for name, (role, team) in OF_TEAM.items()},
}
LIMITED = ("viewer's token of games", "team-b's token of the administrator")
ACCOUNTS = ("an account of team-a", "an account of team-a that may edit there")
WHO = (*NAMES_OF, *LIMITED, *ACCOUNTS)

READ = ("get", "list", "watch", "old watch", "table", "metadata", "selected")
WRITE = ("create", "update", "json patch", "merge patch", "strategic patch", "apply", "delete")
VERBS = (*READ, *WRITE, "deletecollection")

KIND_OF = {(f"{each.group}/{each.plural}" if each.group else each.plural): each for each in KINDS}
RESOURCES = (
    "pods",
    "pods/log",
    "pods/status",
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "pods/eviction",
    "pods/binding",
    "pods/ephemeralcontainers",
    "pods/resize",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "serviceaccounts/token",
    "services",
    "services/status",
    "events",
    "resourcequotas",
    "resourcequotas/status",
    "limitranges",
    "apps/deployments",
    "apps/deployments/status",
    "apps/deployments/scale",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/statefulsets/status",
    "apps/statefulsets/scale",
    "apps/daemonsets",
    "apps/daemonsets/status",
    "apps/controllerrevisions",
    "autoscaling/horizontalpodautoscalers",
    "autoscaling/horizontalpodautoscalers/status",
    "batch/jobs",
    "batch/cronjobs",
    "coordination.k8s.io/leases",
    "policy/poddisruptionbudgets",
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/rolebindings",
)

VIEWED = set(
    "pods pods/log pods/status configmaps serviceaccounts services services/status events "
    "resourcequotas resourcequotas/status limitranges apps/deployments apps/deployments/status "
    "apps/deployments/scale apps/replicasets apps/controllerrevisions batch/jobs batch/cronjobs "
    "apps/statefulsets apps/statefulsets/status apps/statefulsets/scale "
    "apps/daemonsets apps/daemonsets/status autoscaling/horizontalpodautoscalers "
    "autoscaling/horizontalpodautoscalers/status policy/poddisruptionbudgets".split()
)
EDITED = set(
    "pods configmaps secrets serviceaccounts services events apps/deployments "
    "apps/deployments/scale apps/replicasets batch/jobs batch/cronjobs "
    "apps/statefulsets apps/statefulsets/scale apps/daemonsets "
    "autoscaling/horizontalpodautoscalers "
    "coordination.k8s.io/leases policy/poddisruptionbudgets".split()
)
CONNECTED = {"pods/exec", "pods/attach", "pods/portforward"}
CREATED = {"pods/eviction", "serviceaccounts/token"}
OWNED = CONNECTED | set(
    "pods apps/deployments apps/deployments/scale apps/replicasets batch/jobs "
    "batch/cronjobs apps/statefulsets apps/statefulsets/scale apps/daemonsets".split()
)
RULED = {"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings"}


def may(who: str, verb: str, resource: str, team: str) -> bool:
    """The rights, written down a second time and independently of the code."""
    if resource in {"pods/exec", "pods/attach", "pods/ephemeralcontainers"}:
        is_bound = who == ACCOUNTS[1] and team == "team-a"
        is_theirs = is_bound or (_name(who) == OWNER[team] and who not in LIMITED)
        return who == "root" or (is_theirs and resource != "pods/ephemeralcontainers")
    if who in {"root", "an administrator"}:
        return True
    if who == "team-b's token of the administrator":
        return team == "team-b" and _as_queue_admin(verb, resource)
    if who == "an account of team-a that may edit there":
        return team == "team-a" and _as_editor(verb, resource)
    if who == "viewer's token of games":
        return team == "team-a" and _as_viewer(verb, resource, is_own=True)
    role, of = OF_TEAM.get(_name(who), (None, ""))
    if of != team:
        return False
    is_own = _name(who) == OWNER[team]
    match role:
        case Role.QUEUE_ADMIN:
            return _as_queue_admin(verb, resource)
        case Role.USER:
            return _as_user(verb, resource, is_own=is_own)
        case _:
            return _as_viewer(verb, resource, is_own=False)


def _as_queue_admin(verb: str, resource: str) -> bool:
    return resource in RULED or _as_editor(verb, resource)


def _as_editor(verb: str, resource: str) -> bool:
    if resource in CREATED:
        return verb == "create"
    if resource in CONNECTED:
        return True
    if verb in READ:
        return resource in VIEWED | EDITED
    return resource in EDITED


def _as_user(verb: str, resource: str, *, is_own: bool) -> bool:
    if not _as_editor(verb, resource):
        return False
    if is_own or resource == "serviceaccounts/token":
        return True
    if resource in {"pods/log", "pods/eviction"} | CONNECTED:
        return False
    is_look = verb in READ or verb == "create"
    return is_look or resource not in OWNED


def _as_viewer(verb: str, resource: str, *, is_own: bool) -> bool:
    if resource == "pods/log" and not is_own:
        return False
    return verb in READ and resource in VIEWED


def _name(who: str) -> str:
    return "games" if who == LIMITED[0] else NAMES_OF.get(who, "")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where objects of a resource are, and one of them."""

    resource: str
    team: str

    @property
    def base(self) -> str:
        group, _, plural = self.whole.rpartition("/")
        version = KIND_OF[self.whole].version
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{root}/namespaces/{self.team}/{plural}"

    @property
    def whole(self) -> str:
        """Without its subresource."""
        return self.resource if self.resource in KIND_OF else self.resource.rpartition("/")[0]

    @property
    def below(self) -> str:
        return self.resource.removeprefix(self.whole)


def body_of(place: Place, name: str) -> JsonObject:
    kind = KIND_OF[place.whole]
    own = {"apiVersion": kind.api_version, "kind": kind.kind}
    meta = {"name": name, "annotations": {"note": MARK}}
    match place.whole:
        case "pods":
            return with_metadata(pod(name), **meta)
        case "apps/deployments":
            return with_metadata(deployment(name), **meta)
        case _:
            return {**own, "metadata": meta, **_FIELDS.get(place.whole, {})}


_TEMPLATE = {
    "metadata": {"labels": {"app": "first"}},
    "spec": {**pod("x")["spec"], "restartPolicy": "Never"},
}
_FIELDS: dict[str, JsonObject] = {
    "configmaps": {"data": {"key": MARK}},
    "secrets": {"stringData": {"key": MARK}},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "events": {"involvedObject": {"kind": "Pod", "name": "x"}, "reason": "R", "message": MARK},
    "resourcequotas": {"spec": {"hard": {"pods": "1k"}}},
    "limitranges": {"spec": {"limits": []}},
    "apps/replicasets": {
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "first"}},
            "template": {**_TEMPLATE, "spec": pod("x")["spec"]},
        }
    },
    "apps/statefulsets": {
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "first"}},
            "template": {**_TEMPLATE, "spec": pod("x")["spec"]},
        }
    },
    "apps/daemonsets": {
        "spec": {
            "selector": {"matchLabels": {"app": "first"}},
            "template": {
                **_TEMPLATE,
                "spec": {**pod("x")["spec"], "nodeSelector": {"no": "such"}},
            },
        }
    },
    "autoscaling/horizontalpodautoscalers": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            "maxReplicas": 2,
        }
    },
    "apps/controllerrevisions": {"revision": 1, "data": {"a": MARK}},
    "batch/jobs": {"spec": {"suspend": True, "template": _TEMPLATE}},
    "batch/cronjobs": {
        "spec": {
            "schedule": "0 0 1 1 *",
            "suspend": True,
            "jobTemplate": {"spec": {"template": _TEMPLATE}},
        }
    },
    "coordination.k8s.io/leases": {"spec": {"holderIdentity": MARK}},
    "policy/poddisruptionbudgets": {"spec": {"selector": {"matchLabels": {"app": "none"}}}},
    "rbac.authorization.k8s.io/roles": {"rules": []},
    "rbac.authorization.k8s.io/rolebindings": {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": EXISTS,
        },
        "subjects": [],
    },
}


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
LABELLED = {"metadata": {"labels": {"x": "y"}}}
PATCHES: dict[str, tuple[str, object]] = {
    "json patch": (
        "json-patch+json",
        [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}],
    ),
    "merge patch": ("merge-patch+json", LABELLED),
    "strategic patch": ("strategic-merge-patch+json", LABELLED),
}


def tried(api: Kube, token: str, verb: str, place: Place) -> Said:
    """What somebody is answered who tries it. What may be done is done on trial."""
    one = f"{place.base}/{EXISTS}{place.below}"
    all_of_them = one if place.below else place.base
    if verb in READ:
        return looked(api, token, verb, one, all_of_them)
    whole = body_of(place, EXISTS)
    match verb:
        case "create":
            body = {} if place.below else body_of(place, "second")
            return api.ask(token, "POST", f"{all_of_them}?dryRun=All", body)
        case "update":
            return api.ask(token, "PUT", f"{one}?dryRun=All", whole)
        case "delete":
            return api.ask(token, "DELETE", f"{one}?dryRun=All")
        case "deletecollection":
            return api.ask(token, "DELETE", f"{all_of_them}?dryRun=All")
        case _:
            applied = {**whole, "metadata": {"name": EXISTS, "labels": {"x": "y"}}}
            media, body = PATCHES.get(verb, ("apply-patch+yaml", applied))
            path = f"{one}?dryRun=All&fieldManager=m&force=true"
            raw = json.dumps(body).encode()
            return api.ask(token, "PATCH", path, raw, content_type=f"application/{media}")


def looked(api: Kube, token: str, verb: str, one: str, all_of_them: str) -> Said:
    match verb:
        case "get":
            return api.ask(token, "GET", one)
        case "list":
            return api.ask(token, "GET", all_of_them)
        case "watch":
            return api.ask(token, "GET", f"{all_of_them}?watch=true")
        case "old watch":
            return api.ask(token, "GET", one.replace("/namespaces/", "/watch/namespaces/"))
        case "table":
            return api.ask(token, "GET", f"{one}?includeObject=Object", accept=TABLE)
        case "metadata":
            return api.ask(token, "GET", all_of_them, accept=METADATA)
        case _:
            return api.ask(token, "GET", f"{all_of_them}?fieldSelector=metadata.name={EXISTS}")


def verbs_of(resource: str) -> tuple[str, ...]:
    """Those that make sense there: what a part of an object does not know is not tried."""
    if resource in CREATED | {"pods/binding"}:
        return ("create",)
    if resource in CONNECTED:
        return ("get", "create")
    if resource == "pods/log":
        return ("get",)
    if "/" in resource and resource not in KIND_OF:
        return ("get", "update", "json patch", "merge patch", "apply")
    return VERBS


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with kube(tmp_path_factory.mktemp("home")) as made:
        person = json.dumps({"metadata": {"annotations": {"muster.io/person": ANN}}}).encode()
        media = {"content_type": "application/merge-patch+json"}
        made.ask("root", "PATCH", "/api/v1/namespaces/team-a", person, **media)
        for team, resource in product(TEAMS, RESOURCES):
            place = Place(resource=resource, team=team)
            if not place.below:
                who = OWNER[team] if resource in EDITED else "root"
                made.made(who, place.base, body_of(place, EXISTS))
        until(lambda: _revisions(made), lambda count: count == len(TEAMS) * _REVISED)
        yield made


_REVISED = 3
"""Controllers keep a revision of the StatefulSet and of the DaemonSet beside the one made here."""


def _revisions(made: Kube) -> int:
    return sum(each.key.resource == "controllerrevisions" for each in made.app.api.view.every())


@pytest.fixture(scope="module")
def tokens(api: Kube) -> dict[str, str]:
    found = {who: f"Bearer {api.token(name)}" if name else "" for who, name in NAMES_OF.items()}
    found[LIMITED[0]] = f"Bearer {api.limited_token('games', Role.VIEWER, 'team-a')}"
    found[LIMITED[1]] = f"Bearer {api.limited_token(ADMIN, Role.ADMIN, 'team-b')}"
    accounts = "/api/v1/namespaces/team-a/serviceaccounts"
    api.made("root", accounts, object_of("ServiceAccount", "editor"))
    binding: JsonObject = {
        **body_of(Place(resource="rbac.authorization.k8s.io/rolebindings", team="team-a"), "edit"),
        "subjects": [{"kind": "ServiceAccount", "name": "editor", "namespace": "team-a"}],
    }
    binding["roleRef"] = {**part(binding, "roleRef"), "kind": "ClusterRole", "name": "edit"}
    api.made("root", "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings", binding)
    for who, name in zip(ACCOUNTS, (EXISTS, "editor"), strict=True):
        made = api.made("root", f"{accounts}/{name}/token", {})
        found[who] = f"Bearer {made['status']['token']}"
    return found


@pytest.mark.parametrize("resource", RESOURCES)
def test_everybody_is_answered_as_the_rights_say(
    api: Kube, tokens: dict[str, str], resource: str
) -> None:
    before = said_by_people(api)
    unexpected: list[str] = []
    for who, team, verb in product(WHO, TEAMS, verbs_of(resource)):
        said = tried(api, tokens[who], verb, Place(resource=resource, team=team))
        is_refused = said.code in {401, 403}
        if isinstance(said.body, Watch):
            said = Said(code=200, body=None, text="")
        if is_refused == may(who, verb, resource, team):
            unexpected.append(f"{who}: {verb} {resource} in {team}: {said.code} {said.text[:200]}")
        if is_refused and MARK in said.text:
            unexpected.append(f"{who} was told: {said.text}")
        if said.code >= 500:
            unexpected.append(f"{who}: {verb} {resource}: {said.text}")

    assert unexpected == []
    assert said_by_people(api) == before


def said_by_people(api: Kube) -> dict[str, object]:
    """Everything in the namespaces of the teams, without what controllers write."""
    view, found = api.app.api.view, dict[str, object]()
    for kept in view.every():
        if kept.key.namespace in TEAMS and kept.key.resource != "events":
            obj = view.read(kept)
            name = f"{kept.key.resource} {kept.key.namespace}/{kept.key.name}"
            meta = [metadata(obj).get(each) for each in ("uid", "labels", "deletionTimestamp")]
            found[name] = (meta, obj.get("spec"), obj.get("data"))
    return found


@pytest.mark.parametrize("resource", [each for each in RESOURCES if each in KIND_OF])
def test_nobody_sees_both_teams_but_who_looks_after_all(
    api: Kube, tokens: dict[str, str], resource: str
) -> None:
    wide = Place(resource=resource, team="x").base.replace("/namespaces/x", "")
    old = wide.replace("/v1/", "/v1/watch/").replace("/v2/", "/v2/watch/")
    paths = (
        wide,
        f"{wide}?watch=true",
        old,
        f"{wide}?fieldSelector=metadata.namespace=team-a",
        f"{wide}?limit=1",
        wide.replace("/v1/", "/v1/namespaces//"),
    )
    for who, path in product(WHO, paths):
        said = api.ask(tokens[who], "GET", path)
        is_allowed = who in {"root", "an administrator"}
        assert (said.code not in {401, 403, 404}) == is_allowed, (who, path, said.text[:300])


CLUSTER_WIDE = (
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/api/v1/watch/namespaces",
)


@pytest.mark.parametrize("path", CLUSTER_WIDE)
def test_what_is_of_all_is_for_those_who_look_after_all(
    api: Kube, tokens: dict[str, str], path: str
) -> None:
    for who, method in product(WHO, ("GET", "POST", "DELETE")):
        if who in {"root", "an administrator"}:
            continue
        said = api.ask(tokens[who], method, path, {} if method == "POST" else None)
        assert said.code in {401, 403}, (who, method, said.text)


@pytest.mark.parametrize("who", [ANN, AMY, BOSS, "mail"])
def test_a_team_sees_its_own_namespace_and_no_other(api: Kube, who: str) -> None:
    assert api.ask(who, "GET", "/api/v1/namespaces/team-a").code == 200
    assert api.ask(who, "GET", "/api/v1/namespaces/team-b").code == 403
    for path in ("team-b/finalize", "team-a/finalize", "team-b", "team-a", "team-b/status"):
        said = api.ask(who, "PUT", f"/api/v1/namespaces/{path}", object_of("Namespace", "team-a"))
        assert said.code == 403, said.text


async def _lines(watch: Watch) -> list[bytes]:
    ending = asyncio.Event()
    ending.set()
    return [line async for line in watch.lines(ending)]


def test_a_watch_of_one_object_begins_with_that_object(api: Kube) -> None:
    watch = api.ask(ANN, "GET", "/api/v1/watch/namespaces/team-a").body
    assert isinstance(watch, Watch)

    seen = b"".join(asyncio.run(_lines(watch)))

    assert b"team-a" in seen
    assert b"team-b" not in seen
    assert b"kube-system" not in seen


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../team-b/first",
        "..%2fteam-b%2fsecrets%2ffirst",
        "..%252f..%252fteam-b%252fsecrets%252ffirst",
        "%2e%2e/%2e%2e/team-b/secrets/first",
        "FIRST",
        "first/",
        "first//",
        "first%00",
        "./first",
        ";first",
    ],
)
def test_no_name_leads_into_another_namespace(api: Kube, name: str) -> None:
    for who in (ANN, BOSS):
        for base in ("/api/v1/namespaces/team-a/secrets", "/api/v1//namespaces/team-b/secrets"):
            said = api.ask(who, "GET", f"{base}/{name}")
            assert said.code in {403, 404} or '"namespace":"team-a"' in said.text, said.text


@pytest.mark.parametrize("who", [ANN, BOSS, STRANGER, ""])
@pytest.mark.parametrize(
    "headers",
    [
        {"impersonate_user": "root"},
        {"impersonate_user": BEN},
        {"impersonate_user": "x", "impersonate_group": "system:masters"},
        {"impersonate_group": "system:masters"},
        {"impersonate_user": "system:serviceaccount:team-b:first"},
        {"impersonate_user": "system:admin"},
        {"impersonate_user": "muster"},
        {"impersonate_user": "x", "impersonate_uid": "0"},
        {"impersonate_user": "x", "impersonate_extra_scopes": "all"},
    ],
    ids=str,
)
def test_nobody_acts_for_whom_they_may_not(api: Kube, who: str, headers: dict[str, str]) -> None:
    said = api.ask(who, "GET", "/api/v1/namespaces/team-b/secrets/first", None, **headers)

    assert said.code in {400, 403}, said.text
    assert MARK not in said.text


def test_an_account_of_ones_own_namespace_may_no_more_than_it_is_bound_to(api: Kube) -> None:
    account = {"impersonate_user": "system:serviceaccount:team-a:first"}
    for namespace in TEAMS:
        path = f"/api/v1/namespaces/{namespace}/secrets/first"
        assert api.ask(ANN, "GET", path, None, **account).code == 403


@pytest.mark.parametrize("audience", ["muster", "https://elsewhere", ""])
def test_a_token_of_an_account_is_never_a_persons(api: Kube, audience: str) -> None:
    path = "/api/v1/namespaces/team-a/serviceaccounts/first/token"
    asked = {"spec": {"audiences": [audience] if audience else []}}
    token = api.made(ANN, path, asked)["status"]["token"]
    who = api.ask(
        f"Bearer {token}",
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )

    if audience:
        assert who.code == 401
    else:
        assert who.body["status"]["userInfo"]["username"] == "system:serviceaccount:team-a:first"


def test_a_token_ends_with_the_pod_that_it_is_bound_to(api: Kube) -> None:
    pods = "/api/v1/namespaces/team-a/pods"
    uid = api.made(ANN, pods, pod("bound"))["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "bound", "uid": uid}
    path = "/api/v1/namespaces/team-a/serviceaccounts/first/token"
    asked = {"spec": {"boundObjectRef": bound}}
    token = f"Bearer {api.made(ANN, path, asked)['status']['token']}"
    assert api.ask(token, "GET", "/version").code == 200

    api.ask(ANN, "DELETE", f"{pods}/bound?gracePeriodSeconds=0")
    until(lambda: api.ask(ANN, "GET", f"{pods}/bound").code, lambda code: code == 404)

    assert api.ask(token, "GET", "/version").code == 401
    assert api.ask(ANN, "POST", path, asked).code == 404
    assert api.ask(ANN, "POST", path, {"spec": {"boundObjectRef": {"kind": "Node"}}}).code == 422


def test_who_looks_after_one_team_asks_about_no_rights_in_another(api: Kube) -> None:
    path = "/apis/authorization.k8s.io/v1/namespaces/team-a/localsubjectaccessreviews"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "LocalSubjectAccessReview",
        "spec": {
            "user": BEN,
            "resourceAttributes": {"namespace": "team-b", "verb": "get", "resource": "secrets"},
        },
    }
    said = api.ask(BOSS, "POST", path, review)

    assert said.code in {400, 422}, said.text


def test_an_owner_in_another_namespace_owns_nothing(api: Kube) -> None:
    theirs = api.ask("root", "GET", "/api/v1/namespaces/team-b/configmaps/first").body
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": EXISTS}
    mine = with_metadata(
        object_of("ConfigMap", "claims"),
        ownerReferences=[{**owner, "uid": theirs["metadata"]["uid"]}],
    )
    api.made(ANN, "/api/v1/namespaces/team-a/configmaps", mine)
    gone = "/api/v1/namespaces/team-a/configmaps/claims"
    until(lambda: api.ask(ANN, "GET", gone).code, lambda code: code == 404)

    assert api.ask(BEN, "GET", "/api/v1/namespaces/team-b/configmaps/first").code == 200


def test_nobody_gives_away_what_they_do_not_have(api: Kube) -> None:
    base = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "everything"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    }
    binding = body_of(Place(resource="rbac.authorization.k8s.io/rolebindings", team="team-a"), "b")
    binding["roleRef"] = {**binding["roleRef"], "kind": "ClusterRole", "name": "cluster-admin"}
    binding["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": BOSS}]

    assert api.ask(BOSS, "POST", f"{base}/roles", role).code == 403
    assert api.ask(BOSS, "POST", f"{base}/rolebindings", binding).code == 403


pytestmark = pytest.mark.slow
