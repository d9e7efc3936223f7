import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from containers.images import Podman, import_image, podman_in, remove_everything


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    tool = shutil.which("podman")
    if tool is None:
        pytest.skip("podman is not installed: run tests/containers/install.sh as root")
    if os.geteuid() != 0:
        pytest.skip("these containers are run by root on behalf of a user: run the tests as root")
    if not has_static_busybox():
        pytest.skip("no static /bin/busybox for the image: run tests/containers/install.sh as root")
    folder = tmp_path_factory.mktemp("podman")
    podman = podman_in(folder, tool)
    try:
        import_image(podman, folder / "image.tar")
        yield podman
    finally:
        remove_everything(podman, folder)


def has_static_busybox() -> bool:
    if not os.access("/bin/busybox", os.X_OK):
        return False
    # ldd fails on a program that needs no libraries.
    return subprocess.run(["ldd", "/bin/busybox"], capture_output=True, check=False).returncode != 0  # noqa: S607 -- wherever the system has it
