import base64
import re
from typing import Any

import pytest
import yaml

from muster.backends.base import Run
from muster.backends.kubernetes.manifest import Identity, Manner, Mount, name_of
from muster.backends.kubernetes.pod_manifest import NotThereError, pods, secret
from muster.backends.kubernetes.pods import Key
from muster.doors.kubernetes.pods.defaults import defaulted
from muster.doors.kubernetes.pods.launch_of import pod_launch
from muster.launch.pods.variables import MissingError
from muster.model.launch import Launch
from muster.model.pod import (
    Container,
    HostFolder,
    PodGang,
    PodLaunch,
    Restart,
    Stage,
    Text,
    Variable,
    Volume,
)
from muster.model.resources import Resources
from muster.model.value import replace
from unit.backends.slurm.given import run
from unit.doors.kubernetes.pods.golden import cases, pod

Json = dict[str, Any]

KEY = Key(site="a1", job=7, attempt=1, seal="mine")
MANNER = Manner(namespace="jobs", mounts=(Mount(path="/data"),))
ANN = Identity(uid=1_000, gid=100, groups=(100, 44))
ROOT = Identity(uid=0, gid=0)
SOURCES = {
    "configmap/cfg": {"lr": b"0.1", "a.txt": b"text"},
    "secret/sec": {"k": b"s3cret"},
    "configmap/none": None,
    "secret/none": None,
}
THERE = cases("there.txt")
PLAIN = "containers: [{name: a, image: 'i:1'}]"
MAIN = Container(name="main", image="i", asks=Resources(cpu_milli=1_000, gpu_milli=1_000))
POD = PodLaunch(namespace="nlp", name="train", uid="1", containers=(MAIN,), hostname="train")


def placed(first: PodLaunch, *others: PodLaunch, gpus: int = 1) -> Run:
    """An attempt in which each pod has a node of its own, with two CPUs and so many GPUs."""
    gang = PodGang(pods=(first, *others)) if others else None
    where = [(f"n{number}", gpus) for number in range(1, 2 + len(others))]
    return replace(run(Launch(pod=first, gang=gang), *where), supplies=SOURCES)


def there(attempt: Run, whose: Identity | None = ANN) -> Json:
    """The spec of the first pod."""
    found: Json = pods(attempt, MANNER, KEY, whose)[0]["spec"]
    return found


def written(manifest: str) -> Json:
    """The first container of it and its volumes, with what is not ours to choose."""
    launch = pod_launch(defaulted(pod(manifest, uid="u")))
    spec = there(placed(launch))
    found = {**spec["containers"][0], "volumes": spec["volumes"][:-1]}
    found["env"] = [
        {"name": each["name"], **each.get("valueFrom", {})}
        if "fieldRef" in each.get("valueFrom", {})
        else each
        for each in found["env"]
        if not each["name"].startswith(("MUSTER_", "MASTER_"))
    ]
    for each in found["env"]:
        if "fieldRef" in each:
            each["fieldRef"] = each["fieldRef"]["fieldPath"]
    text = yaml.safe_dump(found).replace(name_of(KEY), "muster-a1-7-1")
    plain: Json = yaml.safe_load(re.sub(r"0\.(env|file)\.[-.\w]+", "KEY", text))
    return plain


@pytest.mark.parametrize("name", THERE)
def test_a_container_is_the_same_there(name: str) -> None:
    manifest, expected = THERE[name]
    plain = written(PLAIN)

    found = {key: value for key, value in written(manifest).items() if value != plain.get(key)}

    assert found == yaml.safe_load(expected)


def test_what_configmaps_and_secrets_hold_is_in_a_secret_and_not_in_the_pod() -> None:
    manifest, _ = THERE["commands and variables"]
    attempt = placed(pod_launch(defaulted(pod(manifest, uid="u"))))

    held = secret(attempt, MANNER, KEY)["data"].values()

    assert sorted(map(base64.b64decode, held)) == [b"0.1", b"s3cret"]
    assert "s3cret" not in str(pods(attempt, MANNER, KEY, ANN))


def test_a_key_is_called_the_same_whatever_else_a_source_holds() -> None:
    manifest = f"{PLAIN}\nvolumes: [{{name: c, configMap: {{name: cfg}}}}]"
    attempt = placed(pod_launch(defaulted(pod(manifest, uid="u"))))
    more = {**SOURCES, "configmap/cfg": {"a": b"new", "lr": b"0.1", "a.txt": b"text"}}

    before = secret(attempt, MANNER, KEY)["data"]
    after = secret(replace(attempt, supplies=more), MANNER, KEY)["data"]

    assert before.items() < after.items()


def test_a_pod_that_names_what_is_not_there_is_not_made() -> None:
    manifest = f"{PLAIN}\nvolumes: [{{name: c, configMap: {{name: none}}}}]"

    with pytest.raises(MissingError, match='configmap "none" not found'):
        pods(placed(pod_launch(defaulted(pod(manifest, uid="u")))), MANNER, KEY, ANN)


def test_what_is_not_to_be_had_there_is_never_left_out_in_silence() -> None:
    folder = Volume(name="d", source=HostFolder(path="/d"))

    with pytest.raises(NotThereError, match="host_paths"):
        pods(placed(replace(POD, volumes=(folder,))), MANNER, KEY, ANN)


def test_each_container_has_the_gpus_that_it_asks_for() -> None:
    one = Resources(cpu_milli=500, memory_mib=256, gpu_milli=1_000)
    containers = (
        Container(name="first", image="i", stage=Stage.INIT, asks=one),
        replace(MAIN, asks=one),
        Container(name="log", image="i", asks=replace(one, gpu_milli=0)),
        Container(name="eval", image="i", asks=replace(one, gpu_milli=2_000)),
    )

    spec = there(placed(replace(POD, containers=containers), gpus=3))

    def gpus(each: Json) -> str | None:
        return each["resources"]["limits"].get("nvidia.com/gpu")

    made = {each["name"]: each for each in (*spec["initContainers"], *spec["containers"])}
    assert {name: gpus(each) for name, each in made.items()} == {
        "first": "1",
        "main": "1",
        "log": None,
        "eval": "2",
    }
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in made["log"]["env"]
    assert made["main"]["resources"]["requests"]["cpu"] == "1000m"


def test_what_no_container_asks_for_is_the_first_one_s() -> None:
    quiet = (replace(MAIN, asks=Resources()), Container(name="log", image="i"))

    first, second = there(placed(replace(POD, containers=quiet), gpus=2))["containers"]

    assert first["resources"]["requests"]["nvidia.com/gpu"] == "2"
    assert second["resources"]["requests"] == {"cpu": "0m", "memory": "0Mi"}


def test_init_containers_and_sidecars_come_first_in_their_order() -> None:
    stages = (("one", Stage.INIT), ("log", Stage.SIDECAR), ("main", Stage.MAIN))
    containers = tuple(Container(name=name, image="i", stage=stage) for name, stage in stages)

    spec = there(placed(replace(POD, containers=containers, restart=Restart.ON_FAILURE)))

    told = [(each["name"], each.get("restartPolicy")) for each in spec["initContainers"]]
    assert told == [("one", None), ("log", "Always")]
    assert spec["restartPolicy"] == "OnFailure"


def test_processes_are_their_person_s_and_only_root_may_choose() -> None:
    chosen = replace(POD, containers=(replace(MAIN, user=5, group=6),), groups=(7,), volume_group=8)

    ann, root = there(placed(chosen), ANN), there(placed(chosen), ROOT)

    assert ann["securityContext"] == {
        "runAsUser": 1_000,
        "runAsGroup": 100,
        "supplementalGroups": [100, 44],
        "fsGroup": 100,
    }
    assert "runAsUser" not in ann["containers"][0]["securityContext"]
    assert root["containers"][0]["securityContext"]["runAsUser"] == 5
    assert root["securityContext"]["supplementalGroups"] == [7]
    assert root["securityContext"]["fsGroup"] == 8


def test_pods_of_a_gang_find_each_other_by_the_attempt_s_service() -> None:
    address = Variable(name="MASTER_ADDR", value=Text(value="train-master-0:29500"))
    container = replace(MAIN, env=(address,), args=("see train-master-0 not my-train-master-01",))
    names = ("train-master-0", "train-worker-0")
    aliases = (*((name, "127.0.0.1") for name in names), ("db", "10.0.0.1"))
    gang = [replace(POD, hostname=name, containers=(container,), aliases=aliases) for name in names]

    first, second = (each["spec"] for each in pods(placed(*gang), MANNER, KEY, ANN))

    name = name_of(KEY)
    there = f"train-master-0.{name}.jobs.svc"
    env = {each["name"]: each.get("value") for each in second["containers"][0]["env"]}
    assert env["MASTER_ADDR"] == f"{there}:29500"
    assert env["MASTER_PORT"] == "20050"
    assert second["containers"][0]["args"] == [f"see {there} not my-train-master-01"]
    assert (first["hostname"], second["hostname"]) == names
    assert first["subdomain"] == name
    assert first["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["db"]}]
    assert first["dnsConfig"] == {"searches": [f"{name}.jobs.svc.cluster.local"]}


def test_a_name_that_is_none_there_is_replaced() -> None:
    spec = there(placed(replace(POD, hostname="a.b")))

    assert spec["hostname"] == f"{name_of(KEY)}-0"


def test_a_pod_says_whose_it_is_and_where_it_came_from() -> None:
    metadata = pods(placed(POD), MANNER, KEY, ANN)[0]["metadata"]

    assert metadata["annotations"]["muster.io/pod"] == "nlp/train"
    assert metadata["labels"]["muster.io/job"] == "7"
