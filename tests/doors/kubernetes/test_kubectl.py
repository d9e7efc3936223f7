"""Real kubectl against a real Muster: what needs no pods."""

import json
import subprocess

from doors.kubernetes.cluster import PATIENT, KubernetesHouse

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg, labels: {app: train}}
data: {lr: "0.1", epochs: "3"}
"""


def test_the_server_says_which_kubernetes_it_is(house: KubernetesHouse) -> None:
    assert "Server Version: v1.36" in house.kubectl("version")
    assert house.kubectl("get --raw /healthz") == "ok"


def test_all_kinds_are_listed(house: KubernetesHouse) -> None:
    names = house.kubectl("api-resources -o name").split()

    assert {"configmaps", "jobs.batch", "deployments.apps", "pods", "nodes"} <= set(names)
    assert "batch/v1" in house.kubectl("api-versions").split()


def test_what_is_applied_again_is_unchanged_and_what_changed_is_configured(
    house: KubernetesHouse,
) -> None:
    place = f"-n {house.has_namespace('applied')}"

    assert house.kubectl(f"apply {place} -f -", stdin=CONFIG) == "configmap/cfg created\n"
    assert house.kubectl(f"apply {place} -f -", stdin=CONFIG) == "configmap/cfg unchanged\n"
    changed = CONFIG.replace("0.1", "0.2")
    diff = house.shell(f"kubectl diff {place} -f -", stdin=changed)
    assert (diff.code, '+  lr: "0.2"' in diff.out) == (1, True)
    assert house.kubectl(f"apply {place} -f -", stdin=changed) == "configmap/cfg configured\n"
    assert house.kubectl(f"get {place} cm cfg -o jsonpath='{{.data.lr}}'") == "0.2"


def test_a_field_has_one_manager_who_applies_it(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('managed')}"
    serverside = f"apply {place} --server-side --field-manager"

    house.kubectl(f"{serverside}=ann -f -", stdin=CONFIG)
    house.kubectl(f"{serverside}=ann -f -", stdin=CONFIG)
    other = CONFIG.replace("0.1", "0.5").replace(', epochs: "3"', "")
    said = house.refused(f"{serverside}=bob -f -", stdin=other)
    house.kubectl(f"{serverside}=bob --force-conflicts -f -", stdin=other)
    house.kubectl(f"{serverside}=ann -f -", stdin=CONFIG.replace('lr: "0.1", epochs: "3"', ""))

    assert 'conflict with "ann": .data.lr' in said
    found = json.loads(house.kubectl(f"get {place} cm cfg -o json --show-managed-fields"))
    assert found["data"] == {"lr": "0.5"}
    managers = {each["manager"]: each["fieldsV1"] for each in found["metadata"]["managedFields"]}
    assert managers["bob"]["f:data"] == {"f:lr": {}}


def test_what_was_applied_by_the_client_is_taken_over_by_the_server(
    house: KubernetesHouse,
) -> None:
    place = f"-n {house.has_namespace('migrated')}"
    house.kubectl(f"apply {place} -f -", stdin=CONFIG)

    house.kubectl(f"apply {place} --server-side -f -", stdin=CONFIG.replace("0.1", "0.3"))

    assert house.kubectl(f"get {place} cm cfg -o jsonpath='{{.data.lr}}'") == "0.3"


def test_patches_of_three_kinds(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('patched')}"
    house.kubectl(f"create {place} cm cfg --from-literal=a=1 --from-literal=b=2")

    house.kubectl(f"""patch {place} cm cfg -p '{{"data":{{"a":"9"}}}}'""")
    house.kubectl(f"""patch {place} cm cfg --type=merge -p '{{"data":{{"b":null,"c":"3"}}}}'""")
    operation = '[{"op":"add","path":"/data/d","value":"4"}]'
    house.kubectl(f"patch {place} cm cfg --type=json -p '{operation}'")

    data = json.loads(house.kubectl(f"get {place} cm cfg -o json"))["data"]
    assert data == {"a": "9", "c": "3", "d": "4"}


def test_labels_select(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('labelled')}"
    for name in ("a", "b", "c"):
        house.kubectl(f"create {place} cm {name}")
    house.kubectl(f"label {place} cm a b tier=gold")
    house.kubectl(f"annotate {place} cm a note='two words'")
    house.kubectl(f"label {place} cm b tier-")

    assert house.kubectl(f"get {place} cm -l tier=gold -o name") == "configmap/a\n"
    assert house.kubectl(f"get {place} cm -l '!tier' -o name").split()[0] == "configmap/b"
    found = house.kubectl(f"get {place} cm --field-selector metadata.name=c -o name")
    assert found == "configmap/c\n"


def test_a_trial_leaves_nothing_behind(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('trial')}"

    said = house.kubectl(f"apply {place} --dry-run=server -f -", stdin=CONFIG)

    assert said == "configmap/cfg created (server dry run)\n"
    assert "not found" in house.refused(f"get {place} cm cfg")


def test_unknown_fields_are_refused(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('strict')}"

    said = house.refused(f"create {place} -f -", stdin=CONFIG + "dat: {}\n")

    assert 'strict decoding error: unknown field "dat"' in said


def test_secrets_are_shown_to_those_who_may_and_sealed_in_the_store(
    house: KubernetesHouse,
) -> None:
    place = f"-n {house.has_namespace('sealed')}"
    house.kubectl(f"create {place} secret generic key --from-literal=password=open-sesame")

    shown = house.kubectl(f"get {place} secret key -o jsonpath='{{.data.password}}' | base64 -d")
    database = b"".join(
        file.read_bytes() for file in (house.root / "home").glob("*") if file.is_file()
    )

    assert shown == "open-sesame"
    assert b"sealed" in database
    assert b"open-sesame" not in database
    assert b"b3Blbi1zZXNhbWU" not in database


def test_a_watch_sees_what_happens(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('watched')}"
    labelled = "{metadata: {labels: {w: '1'}, name: %s}, apiVersion: v1, kind: ConfigMap}"
    house.kubectl(f"create {place} -f -", stdin=labelled % "first")
    with subprocess.Popen(  # noqa: S603  what a test types
        ["/bin/bash", "-c", f"exec kubectl get {place} cm -l w -w -o name"],
        stdout=subprocess.PIPE,
        text=True,
        env=house.environ,
    ) as watch:
        assert watch.stdout is not None
        seen = [watch.stdout.readline()]
        house.kubectl(f"create {place} -f -", stdin=labelled % "second")
        seen.append(watch.stdout.readline())
        house.kubectl(f"label {place} cm first a=b")
        seen.append(watch.stdout.readline())
        watch.terminate()

    assert [line.strip() for line in seen] == [
        "configmap/first",
        "configmap/second",
        "configmap/first",
    ]


def test_waiting_ends_when_it_is_so(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('awaited')}"
    house.kubectl(f"create {place} cm here --from-literal=a=1")

    house.kubectl(f"wait {place} cm/here --for=jsonpath='{{.data.a}}'=1 {PATIENT}")
    house.kubectl(f"delete {place} cm here")
    house.kubectl(f"wait {place} cm/here --for=delete {PATIENT}")


def test_types_are_explained(house: KubernetesHouse) -> None:
    said = house.kubectl("explain configmap")

    assert "KIND:       ConfigMap" in said
    assert "binaryData\t<map[string]string>" in said


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: vans.cars.example.com}
spec:
  group: cars.example.com
  scope: Namespaced
  names: {kind: Van, plural: vans, singular: van, listKind: VanList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: A van for testing
        properties:
          spec:
            type: object
            description: Specification of a van
            properties:
              doors:
                type: array
                description: Its doors
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string, description: Name of a door}}
"""


def test_a_defined_kind_is_explained_and_checked(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('explained')}"
    house.kubectl("create -f -", stdin=DEFINITION)
    house.kubectl(f"wait crd/vans.cars.example.com --for=condition=Established {PATIENT}")
    about = '"apiVersion": "cars.example.com/v1", "kind": "Van", "metadata": {"name": "van"}'

    for word in ("create", "apply"):
        right = f'{{{about}, "spec": {{"doors": [{{"name": "left"}}]}}}}'
        house.kubectl(f"{word} {place} -f -", stdin=right)
        house.kubectl(f"delete {place} vans van")
        unknown = house.refused(f"{word} {place} -f -", stdin=f'{{{about}, "spec": {{"a": 1}}}}')
        assert 'unknown field "spec.a"' in unknown
    said = house.kubectl("explain vans")
    assert "A van for testing" in said
    assert "APIVersion defines" in said
    metadata = house.kubectl("explain vans.metadata")
    assert "Standard object's metadata" in metadata
    assert "CreationTimestamp is a timestamp" in metadata
    doors = house.kubectl("explain vans.spec.doors")
    assert "doors <[]Object>" in doors
    assert "Name of a door" in doors
    assert 'field "doors2" does not exist' in house.refused("explain vans.spec.doors2")


RULED = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.cars.example.com}
spec:
  group: cars.example.com
  scope: Namespaced
  names: {kind: Cart, plural: carts}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "self.size > 0"}]
            properties: {size: {type: integer}}
"""


def test_who_defines_rules_that_are_not_evaluated_is_warned(house: KubernetesHouse) -> None:
    made = house.shell("kubectl create -f -", stdin=RULED)

    assert made.code == 0, made.err
    at = "spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-validations"
    assert f"Warning: {at}: rules are kept, and not evaluated" in made.err


def test_events_and_autoscalers_have_two_faces(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('faces')}"
    house.kubectl(f"create {place} deployment web --image=busybox --replicas=0")
    house.kubectl(f"autoscale {place} deployment web --min=1 --max=3 --cpu=80%")

    patch = '{"spec":{"maxReplicas":5}}'
    house.kubectl(f"patch {place} hpa.v1.autoscaling web -p '{patch}'")

    found = house.kubectl(f"get {place} hpa.v2.autoscaling web -o jsonpath='{{.spec}}'")
    assert json.loads(found)["maxReplicas"] == 5
    assert json.loads(found)["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    names = house.kubectl("api-resources -o name").split()
    assert {"events", "events.events.k8s.io"} <= set(names)
    newer = house.kubectl(f"get {place} events.events.k8s.io -o name")
    older = house.kubectl(f"get {place} events -o name")
    # More may happen between the two.
    named = {each.partition("/")[2] for each in older.splitlines()}
    assert {each.partition("/")[2] for each in newer.splitlines()} <= named


def test_an_old_version_cannot_be_watched(house: KubernetesHouse) -> None:
    path = "'/api/v1/configmaps?watch=1&resourceVersion=1&timeoutSeconds=2'"

    event = json.loads(house.kubectl(f"get --raw {path}"))

    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def test_a_long_list_comes_in_pieces(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('pieces')}"
    for number in range(5):
        house.kubectl(f"create {place} cm c{number}")

    found = house.kubectl(f"get {place} cm --chunk-size=2 -o name").split()

    assert found[:5] == [f"configmap/c{number}" for number in range(5)]


def test_who_deletes_is_shown_what_they_deleted_where_the_api_promises_it(
    house: KubernetesHouse,
) -> None:
    place = f"-n {house.has_namespace('shown-last')}"
    house.kubectl(f"create {place} serviceaccount bot")
    house.kubectl(f"create {place} cm cfg")
    path = "/api/v1/namespaces/shown-last"

    account = json.loads(house.kubectl(f"delete --raw {path}/serviceaccounts/bot"))
    config = json.loads(house.kubectl(f"delete --raw {path}/configmaps/cfg"))

    assert (account["kind"], account["metadata"]["name"]) == ("ServiceAccount", "bot")
    assert (config["kind"], config["status"]) == ("Status", "Success")


def test_roles_bind_people_and_service_accounts(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('bound')}"
    assert "forbidden" in house.refused(f"get {place} cm --as=alice")
    house.kubectl(f"create {place} role reader --verb=get,list --resource=configmaps")
    house.kubectl(f"create {place} rolebinding alice-reads --role=reader --user=alice")
    house.kubectl(f"create {place} serviceaccount bot")
    house.kubectl(f"create {place} rolebinding bot-reads --role=reader --serviceaccount=bound:bot")

    house.kubectl(f"get {place} cm --as=alice")
    assert house.kubectl(f"auth can-i {place} list cm --as=alice") == "yes\n"
    assert house.shell(f"kubectl auth can-i {place} delete cm --as=alice").out == "no\n"
    token = house.kubectl(f"create {place} token bot")
    whoami = house.kubectl(f"auth whoami --kubeconfig=/dev/null {reach(house)} --token={token}")
    assert "system:serviceaccount:bound:bot" in whoami
    house.kubectl(f"get {place} cm --kubeconfig=/dev/null {reach(house)} --token={token}")
    said = house.refused(
        f"get {place} secrets --kubeconfig=/dev/null {reach(house)} --token={token}"
    )
    assert 'User "system:serviceaccount:bound:bot" cannot list resource "secrets"' in said


def test_nobody_gives_away_more_than_they_have(house: KubernetesHouse) -> None:
    place = f"-n {house.has_namespace('guarded')}"
    house.kubectl(f"create {place} role maker --verb=create,get --resource=roles,rolebindings")
    house.kubectl(f"create {place} rolebinding alice-makes --role=maker --user=alice")

    role = f"create {place} role big --verb=get --resource=secrets --as=alice"
    binding = f"create {place} rolebinding steal --clusterrole=admin --user=alice --as=alice"

    lacks = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    assert lacks in house.refused(role)
    assert "attempting to grant RBAC permissions not currently held" in house.refused(binding)


def test_kubectl_asks_for_tokens_itself(house: KubernetesHouse) -> None:
    house.shell("muster kubeconfig --file fresh.yaml --context here --namespace kube-public")

    whoami = house.kubectl("--kubeconfig=fresh.yaml auth whoami")

    assert "system:masters" in whoami
    assert house.kubectl("--kubeconfig=fresh.yaml config current-context") == "here\n"


def test_a_wrong_token_opens_nothing(house: KubernetesHouse) -> None:
    said = house.refused(f"get cm --kubeconfig=/dev/null {reach(house)} --token=wrong")

    assert "error: You must be logged in to the server" in said


def reach(house: KubernetesHouse) -> str:
    """Options by which kubectl finds the server without its file."""
    server = house.kubectl("config view -o jsonpath='{.clusters[0].cluster.server}'")
    ca = house.root / "ca.crt"
    if not ca.exists():
        house.shell(
            "kubectl config view --raw -o "
            "jsonpath='{.clusters[0].cluster.certificate-authority-data}' "
            f"| base64 -d > {ca}"
        )
    return f"--server={server} --certificate-authority={ca}"


RUNTIME = """
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: kata
overhead: {podFixed: {cpu: 250m}}
scheduling: {nodeSelector: {sandboxes: "yes"}}
"""
WAITS = '{"spec":{"runtimeClassName":"sandbox","schedulingGates":[{"name":"a/b"}]}}'


def test_a_pod_has_what_its_runtime_class_says_as_long_as_there_is_one(
    house: KubernetesHouse,
) -> None:
    place = f"-n {house.has_namespace('runtimes')}"
    line = f"{place} --image=busybox --overrides='{WAITS}'"
    house.kubectl("apply -f -", stdin=RUNTIME)

    house.kubectl(f"run first {line}")

    made = json.loads(house.kubectl(f"get pod first {place} -o json"))
    noted = made["metadata"]["annotations"]["muster.io/warnings"]
    assert "spec.runtimeClassName has no effect: its class counts" in noted
    spec = made["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"sandboxes": "yes"})
    changed = house.refused("apply -f -", stdin=RUNTIME.replace("kata", "gvisor"))
    assert 'handler: Invalid value: "gvisor": field is immutable' in changed
    house.kubectl("delete runtimeclass sandbox")
    assert 'RuntimeClass "sandbox" not found' in house.refused(f"run second {line}")
