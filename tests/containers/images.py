"""A podman of our own for the tests: private folders, and one image made from busybox."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pytest

from muster.backends.local.isolation.container import (
    ContainerSettings,
    has_init,
    options_of,
    wrapped,
)

IMAGE = "local/muster-test:1"
ONLY_IN_THE_IMAGE = "/etc/made-for-muster"
OF_BUSYBOX = {"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "/etc/group": "root:x:0:\n"}
NO_FILES: Mapping[str, str] = {}
PROGRAMS = "sh cat echo env id ls pwd readlink sleep sync test touch true tty".split()
# Where limits cannot be raised, podman's defaults for them fail.
MODEST = "--runtime runc --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
FRESH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
PATIENCE_S = 180


@dataclass(frozen=True, kw_only=True)
class Podman:
    """The tool, and the options that keep it in its own folders."""

    tool: str
    options: tuple[str, ...]
    folders: tuple[str, ...]

    def around(self, name: str, workdir: Path) -> ContainerSettings:
        return ContainerSettings(
            name=f"muster-test-{name}",
            workdir=str(workdir),
            uid=4321,
            gid=4321,
            as_root=True,
            init=has_init(self.tool),
            options=self.options,
        )

    def runs(self, around: ContainerSettings, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run to its end, the way a supervisor does it."""
        return finished(wrapped(argv, IMAGE, self.tool, around))

    @contextmanager
    def starts(
        self, around: ContainerSettings, *argv: str, env: Mapping[str, str] = FRESH
    ) -> Generator[subprocess.Popen[str]]:
        """A process to talk with; one that never answers is killed, so that a test can fail."""
        with self.begins(wrapped(argv, IMAGE, self.tool, around), env) as process:
            yield process

    @contextmanager
    def begins(
        self, line: tuple[str, ...], env: Mapping[str, str] = FRESH
    ) -> Generator[subprocess.Popen[str]]:
        """The same, of a whole command line."""
        with subprocess.Popen(  # noqa: S603 -- a command of our own making
            line,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            patience = Timer(PATIENCE_S, process.kill)
            patience.start()
            try:
                yield process
            finally:
                patience.cancel()

    def has_busybox(self, *names: str) -> None:
        """Let it also have images that are like busybox's own: all of its programs, and a shell."""
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "busybox.tar"
            listed = finished(("/bin/busybox", "--list")).stdout.split()
            _write_archive(archive, [each for each in listed if each != "busybox"], OF_BUSYBOX)
            for name in names:
                self.asks("import", "--change", 'CMD ["sh"]', str(archive), name)

    def has_checked(self, name: str) -> None:
        """Let it also have an image that says how to see whether its containers are well."""
        check = {"Test": ["CMD", "/bin/echo", "checked"], "Interval": 1_000_000}
        with tempfile.TemporaryDirectory() as folder:
            layer = Path(folder) / "layer.tar"
            _write_archive(layer, PROGRAMS, {"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n"})
            digest = hashlib.sha256(layer.read_bytes()).hexdigest()
            config = {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["sh"], "Healthcheck": check},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            }
            manifest = {"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}
            (Path(folder) / "config.json").write_text(json.dumps(config))
            (Path(folder) / "manifest.json").write_text(json.dumps([manifest]))
            with tarfile.open(Path(folder) / "image.tar", "w") as tar:
                for each in ("manifest.json", "config.json", "layer.tar"):
                    tar.add(Path(folder) / each, each)
            self.asks("load", "--input", str(Path(folder) / "image.tar"))

    def asks(self, *words: str) -> str:
        return finished((self.tool, *self.folders, *words)).stdout.strip()


@contextmanager
def own_podman() -> Generator[Podman]:
    """A podman in folders of its own that has the image; without it the test is skipped."""
    tool = shutil.which("podman")
    if tool is None:
        pytest.skip("podman is not installed: run tests/containers/install.sh as root")
    if os.geteuid() != 0:
        pytest.skip("these containers are run by root on behalf of a user: run the tests as root")
    if not has_static_busybox():
        pytest.skip("no static /bin/busybox for the image: run tests/containers/install.sh as root")
    # Podman takes only short names; the folder is for all, because jobs are users'.
    folder = Path(tempfile.mkdtemp(prefix="muster-podman-"))
    folder.chmod(0o755)
    podman = _podman_in(folder, tool)
    try:
        _import_image(podman, folder / "image.tar")
        yield podman
    finally:
        _remove_everything(podman, folder)
        shutil.rmtree(folder, ignore_errors=True)


def has_static_busybox() -> bool:
    if not os.access("/bin/busybox", os.X_OK):
        return False
    # ldd fails on a program that needs no libraries.
    return subprocess.run(["ldd", "/bin/busybox"], capture_output=True, check=False).returncode != 0  # noqa: S607 -- wherever the system has it


def _podman_in(folder: Path, tool: str) -> Podman:
    folders = ("--root", str(folder / "root"), "--runroot", str(folder / "run"))
    environ = {"MUSTER_PODMAN_OPTIONS": f"{' '.join(folders)} {MODEST}"}
    return Podman(tool=tool, options=options_of(tool, environ), folders=folders)


def _import_image(podman: Podman, archive: Path) -> None:
    _write_archive(archive, PROGRAMS)
    imported = finished((podman.tool, *podman.folders, "import", str(archive), IMAGE))
    assert imported.returncode == 0, imported.stderr


def _write_archive(
    archive: Path, programs: Iterable[str], files: Mapping[str, str] = NO_FILES
) -> None:
    """One static program under many names, a file that is nowhere else, and others."""
    with tarfile.open(archive, "w") as tar:
        tar.add("/bin/busybox", "bin/busybox")
        for name in programs:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        if files:
            folder = tarfile.TarInfo("tmp")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
        for name, text in {ONLY_IN_THE_IMAGE: "only the image has this\n", **files}.items():
            words = text.encode()
            file = tarfile.TarInfo(name.lstrip("/"))
            file.size, file.mode = len(words), 0o644
            tar.addfile(file, io.BytesIO(words))


def _remove_everything(podman: Podman, folder: Path) -> None:
    podman.asks("rm", "--all", "--force", "-t", "0")
    podman.asks("rmi", "--all", "--force")
    # Podman mounts its storage over itself and leaves it so.
    finished(("umount", "--quiet", str(folder / "root" / "overlay")))


def finished(argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 -- a command of our own making
        argv,
        env=FRESH,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
