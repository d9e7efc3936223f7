"""What a pod has on disk: nobody else reaches it, and nobody leads root elsewhere through it."""

import getpass
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.images import IMAGE, MODEST, own_podman
from doors.kubernetes.cluster import KubernetesHouse, kubernetes_house
from doors.rest.running import as_uid, until
from hostile.deep import deep_tree
from hostile.test_state_folder import NOBODY, too_open
from muster.backends.local.attempt import cleanup, spool
from muster.backends.local.isolation.cgroup import CgroupRoots
from muster.backends.local.isolation.users import LocalUser, local_user
from muster.backends.local.pods import places
from muster.backends.local.pods.volumes import VolumePlace, Volumes
from muster.launch.pods.variables import MissingError, NodeFacts
from muster.model.pod import EmptyFolder, Files, KeysAsFiles, Mount, SourceKind, Volume
from muster.model.value import replace
from muster.settings import made_home

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")

NODE = NodeFacts(name="n1", ip="127.0.0.1")
SECRET = Volume(
    name="sec", source=Files(sources=(KeysAsFiles(kind=SourceKind.SECRET, name="sec"),))
)
OF_SECRET = Mount(volume="sec", path="/sec")
EMPTY = Volume(name="w", source=EmptyFolder())
OF_EMPTY = Mount(volume="w", path="/w")
SOURCES = {"secret/sec": {"pw": b"hunter2"}}
TOO_DEEP = 3_000

POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: holder}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {IMAGE}
    securityContext: {{runAsUser: 4321}}
    command:
    - sh
    - -c
    - echo kept > /w/x; echo kept > /m/x; while sleep 0.1; do echo on > /w/y; done
    volumeMounts:
    - {{name: w, mountPath: /w}}
    - {{name: m, mountPath: /m}}
    - {{name: sec, mountPath: /sec}}
  volumes:
  - {{name: w, emptyDir: {{}}}}
  - {{name: m, emptyDir: {{medium: Memory}}}}
  - {{name: sec, secret: {{secretName: sec}}}}
"""


@pytest.fixture(scope="module")
def house() -> Iterator[KubernetesHouse]:
    with own_podman() as podman:
        options = f"{' '.join(podman.folders)} {MODEST}"
        with kubernetes_house(podman=options) as found:
            found.root.chmod(0o711)
            yield found


@pytest.fixture
def holder(house: KubernetesHouse) -> Iterator[str]:
    """A pod that runs as another user than its person, and the namespace it is in."""
    if house.shell("kubectl get namespace walls").code:
        house.has_namespace("walls")
        house.kubectl("create secret generic sec -n walls --from-literal=pw=hunter2")
    house.kubectl("apply -n walls -f -", stdin=POD)
    house.kubectl("wait -n walls --for=condition=Ready pod/holder --timeout=60s")
    yield "walls"
    house.kubectl("delete pod holder -n walls --now --timeout=60s")


def files_of_pods(house: KubernetesHouse) -> list[Path]:
    found = [*(house.root / "home" / "pods").rglob("*"), *Path("/dev/shm").glob("muster-*/*/*")]
    return [path for path in found if path.is_file()]


def names(files: list[Path]) -> set[str]:
    return {path.name for path in files}


@needs_root
@pytest.mark.slow
def test_nobody_else_reaches_the_volumes_of_a_running_pod(
    house: KubernetesHouse, holder: str
) -> None:
    assert holder
    files = until(lambda: files_of_pods(house), lambda found: names(found) >= {"pw", "x", "y"})

    for path in files:
        assert as_uid(NOBODY, lambda path=path: path.read_text()).startswith("PermissionError"), (
            path
        )
        write = as_uid(NOBODY, lambda path=path: str(path.write_text("forged")))
        assert write.startswith("PermissionError"), path
    assert too_open(house.root / "home") == []


@needs_root
@pytest.mark.slow
def test_a_restart_leaves_the_volumes_of_running_pods_as_they_are(
    house: KubernetesHouse, holder: str
) -> None:
    files = until(lambda: files_of_pods(house), lambda found: "y" in names(found))
    (written,) = [path for path in files if path.name == "y"]

    restarted = house.shell("muster down && muster up")
    written.write_text("")

    assert holder
    assert restarted.code == 0, restarted.out + restarted.err
    # It answers at another port now.
    assert house.shell("muster kubeconfig").code == 0
    house.keeps_its_token()
    assert stat.S_IMODE(written.parent.stat().st_mode) == 0o777
    until(written.read_text, lambda text: text == "on\n")
    assert too_open(house.root / "home") == []


def daemon_user() -> LocalUser:
    return local_user("daemon" if os.getuid() == 0 else getpass.getuser())


def volumes(folder: Path, user: LocalUser | None = None) -> Volumes:
    place = VolumePlace(folder=folder, user=user or daemon_user())
    return Volumes(place, (SECRET, EMPTY))


@needs_root
@pytest.mark.parametrize("key", ["7.1", "7.1/3"])
@pytest.mark.parametrize("owner", [None, "daemon"])
def test_the_folder_of_a_pod_has_one_who_may_pass(home: Path, key: str, owner: str | None) -> None:
    user = None if owner is None else local_user(owner)
    made_home(home)

    made = places.made_folder(home, key, user)

    assert too_open(home) == []
    owners = {path.stat().st_uid for path in (made, home / "pods" / "7.1")}
    assert owners == {0 if user is None else user.uid}


def test_a_link_that_somebody_put_in_the_place_of_the_data_leads_root_nowhere(
    tmp_path: Path,
) -> None:
    made = volumes(tmp_path / "7.1")
    path = Path(made.prepared(OF_SECRET, SOURCES, NODE))
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    for leads in ("../../../outside", str(outside), ".", "..", "../w", "...", "..abc"):
        (path / "..data").unlink()
        (path / "..data").symlink_to(leads)
        made.refresh({"secret/sec": {"pw": leads.encode()}}, NODE)

        assert (outside / "kept").is_dir(), leads
        assert (path / "pw").read_bytes() == leads.encode()


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/../../x", ".."])
def test_a_file_of_a_source_is_in_its_volume(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingError):
        volumes(tmp_path / "7.1").prepared(OF_SECRET, {"secret/sec": {name: b"x"}}, NODE)


@pytest.mark.parametrize("part", ["x" * 300, "a\0b", "loop/x", "file/x"])
def test_a_part_that_cannot_be_made_is_said_and_ends_nothing(tmp_path: Path, part: str) -> None:
    made = volumes(tmp_path / "7.1", local_user(getpass.getuser()))
    folder = Path(made.prepared(OF_EMPTY, SOURCES, NODE))
    (folder / "loop").symlink_to("loop")
    (folder / "file").touch()

    with pytest.raises(MissingError):
        made.inside(replace(OF_EMPTY, part=part), str(folder), {})


def test_a_volume_of_any_depth_goes_with_its_pod(tmp_path: Path) -> None:
    made = volumes(places.folder_of(tmp_path, "7.1"))
    deep_tree(Path(made.prepared(OF_EMPTY, SOURCES, NODE)), TOO_DEEP)

    places.remove(tmp_path, "7.1")

    assert os.listdir(tmp_path / "pods") == []


def test_memory_of_any_depth_goes_with_its_pod(tmp_path: Path) -> None:
    in_memory = Volume(name="w", source=EmptyFolder(in_memory=True))
    made = Volumes(VolumePlace(folder=tmp_path / "7.1", user=daemon_user()), (in_memory,))
    folder = Path(made.prepared(OF_EMPTY, SOURCES, NODE))
    deep_tree(folder, TOO_DEEP)

    made.remove()

    assert not folder.parent.exists()


def test_a_pod_that_ends_again_and_again_does_not_fill_the_disk(tmp_path: Path) -> None:
    """Each run may write 64 MiB, and Kubernetes shows no more than the last two."""
    folder = places.log_path(tmp_path, "7.1", "", 0).parent
    folder.mkdir(parents=True)
    for name in ("main", "mainly"):
        for run in range(12):
            places.log_path(tmp_path, "7.1", name, run).touch()

    places.keep_last_logs(tmp_path, "7.1", "main", 11)

    left = os.listdir(folder)
    assert sorted(each for each in left if each.startswith("main.")) == [
        "main.10.log",
        "main.11.log",
    ]
    assert len(left) == 2 + 12


def test_what_a_pod_left_goes_when_its_supervisor_was_killed(tmp_path: Path) -> None:
    attempt = tmp_path / spool.FOLDER / "7.1"
    attempt.mkdir(parents=True)
    (attempt / spool.BEGUN).write_text("{}")
    spool.write(attempt / spool.LAUNCH, {"marker": "7.1.none", "node": "n1"})
    in_memory = replace(EMPTY, source=EmptyFolder(in_memory=True))
    held: list[Path] = []
    folder = places.folder_of(tmp_path, "7.1")
    place = VolumePlace(folder=folder, user=daemon_user(), note=held.append)
    made = Volumes(place, (SECRET, in_memory))
    made.prepared(OF_SECRET, SOURCES, NODE)
    memory = Path(made.prepared(OF_EMPTY, SOURCES, NODE)).parent
    spool.write(attempt / spool.POD_MEMORY, {"folder": str(held[0])})

    assert cleanup.end_abandoned(attempt, CgroupRoots(folders={}))

    assert not places.folder_of(tmp_path, "7.1").exists()
    assert not memory.exists()
