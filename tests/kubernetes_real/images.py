"""Images that need no registry: a folder as an archive that `ctr images import` takes."""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

PAUSE, BUSYBOX = "docker.io/muster/pause:1", "docker.io/muster/busybox:1"

_PAUSE_SOURCE = """
#include <signal.h>
#include <unistd.h>
static void leave(int number) { _exit(0); }
int main(void) { signal(SIGTERM, leave); signal(SIGINT, leave); for (;;) pause(); }
"""


def make_images(folder: Path) -> tuple[Path, ...]:
    """The pause of every pod, and a busybox for jobs, as archives in this folder."""
    return (_pause(folder), _busybox(folder))


def _pause(folder: Path) -> Path:
    root = folder / "pause"
    root.mkdir()
    source = folder / "pause.c"
    source.write_text(_PAUSE_SOURCE, encoding="ascii")
    built = ["gcc", "-Os", "-static", "-o", root / "pause", source]
    subprocess.run(built, check=True)  # noqa: S603
    return _packed(root, PAUSE, ["/pause"])


def _busybox(folder: Path) -> Path:
    root = folder / "busybox"
    for each in ("bin", "etc"):
        (root / each).mkdir(parents=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    shutil.copy("/bin/busybox", root / "bin")
    listed = subprocess.run(["/bin/busybox", "--list"], check=True, capture_output=True, text=True)
    for name in listed.stdout.split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    return _packed(root, BUSYBOX, [])


def _packed(root: Path, name: str, entrypoint: Sequence[str]) -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(root, arcname=".")
    layer = buffer.getvalue()
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": list(entrypoint) or None, "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    names = {"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}
    parts = {
        "layer.tar": layer,
        "config.json": config,
        "manifest.json": json.dumps([names]).encode(),
    }
    path = root.with_suffix(".tar")
    with tarfile.open(path, "w") as tar:
        for part, content in parts.items():
            entry = tarfile.TarInfo(part)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path
