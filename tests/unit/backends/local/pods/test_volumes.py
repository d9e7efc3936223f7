import getpass
import stat
from pathlib import Path

from muster.backends.local.isolation.users import local_user
from muster.backends.local.pods.volumes import VolumePlace, Volumes
from muster.launch.pods.variables import NodeFacts
from muster.model.pod import EmptyFolder, Mount, Volume

CACHE = Volume(name="cache", source=EmptyFolder(in_memory=True))
MOUNT = Mount(volume="cache", path="/cache")
NODE = NodeFacts(name="n1", ip="127.0.0.1")


def test_memory_of_a_pod_is_nowhere_that_others_could_be_first(tmp_path: Path) -> None:
    place = VolumePlace(folder=tmp_path / "7.1", user=local_user(getpass.getuser()))
    volumes, others = (Volumes(place, (CACHE,)) for _ in range(2))

    first, again = (Path(volumes.prepared(MOUNT, {}, NODE)) for _ in range(2))
    another = Path(others.prepared(MOUNT, {}, NODE))

    assert first == again
    assert first.parent != another.parent
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    volumes.remove()
    others.remove()
    assert not first.parent.exists()
