from muster.doors.kubernetes.objects.rbac import Act, RoleBook, User, missing
from muster.doors.kubernetes.objects.roles import first_bindings, first_cluster_roles
from muster.doors.kubernetes.objects.value import JsonObject

READER: JsonObject = {
    "kind": "Role",
    "metadata": {"name": "reader", "namespace": "nlp"},
    "rules": [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}],
}
BINDING: JsonObject = {
    "kind": "RoleBinding",
    "metadata": {"name": "ann-reads", "namespace": "nlp"},
    "roleRef": {"kind": "Role", "name": "reader"},
    "subjects": [
        {"kind": "User", "name": "ann"},
        {"kind": "ServiceAccount", "name": "bot", "namespace": "nlp"},
    ],
}
BOOK = RoleBook(first_cluster_roles(), [READER], first_bindings(), [BINDING])


def act(verb: str, resource: str = "pods", namespace: str = "nlp", sub: str = "") -> Act:
    return Act(verb=verb, resource=resource, namespace=namespace, subresource=sub)


def test_a_binding_gives_what_its_role_says_in_its_namespace_alone() -> None:
    ann = User(name="ann", groups=("system:authenticated",))

    assert BOOK.allowed(ann, act("get"))
    assert BOOK.allowed(ann, act("get", sub="log"))
    assert BOOK.allowed(User(name="system:serviceaccount:nlp:bot"), act("list"))
    assert not BOOK.allowed(ann, act("delete"))
    assert not BOOK.allowed(ann, act("get", "secrets"))
    assert not BOOK.allowed(ann, act("get", namespace="vision"))
    assert not BOOK.allowed(ann, act("list", namespace=""))
    assert not BOOK.allowed(User(name="bob"), act("get"))


def test_everybody_may_look_around_and_masters_may_do_everything() -> None:
    anybody = User(name="bob", groups=("system:authenticated",))
    nobody = User(name="system:anonymous", groups=("system:unauthenticated",))

    assert BOOK.allowed(anybody, Act(verb="get", path="/apis/batch/v1"))
    assert BOOK.allowed(nobody, Act(verb="get", path="/version"))
    assert not BOOK.allowed(nobody, Act(verb="get", path="/apis"))
    assert BOOK.allowed(User(name="x", groups=("system:masters",)), act("delete", "secrets"))


def test_a_rule_is_covered_by_rules_that_give_at_least_as_much() -> None:
    less = {**READER["rules"][0], "verbs": ["get"]}
    more = {**READER["rules"][0], "verbs": ["get", "delete"]}

    assert missing(READER["rules"], [less]) == []
    assert missing(READER["rules"], [more]) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
        '{APIGroups:[""], Resources:["pods/log"], Verbs:["delete"]}',
    ]
