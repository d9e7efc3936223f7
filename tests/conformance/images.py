"""The images that the conformance suite asks for, made on this machine: none is fetched."""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from containers.images import Podman

REPOSITORY = "localhost/conformance"
_LIST = "gcRegistry gcEtcdRegistry promoterE2eRegistry dockerLibraryRegistry".split()
_PASSWORDS = (
    "root:x:0:0:root:/root:/bin/sh\n"
    "user-defined-in-image:x:1000:1000::/home:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/:/bin/false\n"
)
_GROUPS = (
    "root:x:0:\n"
    "user-defined-in-image:x:1000:\n"
    "group-defined-in-image:x:50000:user-defined-in-image\n"
)
_PAUSE = """
#include <signal.h>
#include <unistd.h>
static void leave(int number) { (void)number; _exit(0); }
int main(void) { signal(SIGTERM, leave); signal(SIGINT, leave); for (;;) pause(); }
"""
_WEB = "httpd -f -p 80 -h /usr/share/nginx/html".split()


@dataclass(frozen=True, kw_only=True)
class Image:
    """One image: its files by their paths, and what runs in it unless told otherwise."""

    names: tuple[str, ...]
    files: tuple[tuple[str, Path | bytes | str], ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""


def repositories(path: Path) -> Path:
    """The file that tells the suite where its images are."""
    path.write_text("".join(f"{each}: {REPOSITORY}\n" for each in _LIST))
    return path


def make_images(podman: Podman, agnhost: Path, folder: Path) -> None:
    """Have all of them in this podman's store. agnhost: the suite's own test program, built."""
    for number, image in enumerate(_images(agnhost, _pause(folder))):
        archive = folder / f"image-{number}.tar"
        _pack(archive, image.files)
        first, *others = image.names
        podman.asks("import", *_changes(image), str(archive), f"{REPOSITORY}/{first}")
        for name in others:
            podman.asks("tag", f"{REPOSITORY}/{first}", f"{REPOSITORY}/{name}")
        archive.unlink()


def _images(agnhost: Path, pause: Path) -> Iterator[Image]:
    tools = tuple(_tools())
    program: tuple[tuple[str, Path | bytes | str], ...] = (*tools, ("agnhost", agnhost))
    yield Image(names=("pause:3.10.2",), files=(("pause", pause),), entrypoint=("/pause",))
    yield Image(names=("busybox:1.37.0-1",), files=tools, command=("sh",))
    yield Image(names=("nonroot:1.5",), files=tools, command=("sh",), user="1234")
    yield Image(
        names=("agnhost:2.63.0", "agnhost:2.55", "kitten:1.8", "nautilus:1.8"),
        files=(*program, ("agnhost-2", "agnhost")),
        entrypoint=("/agnhost",),
        command=("pause",),
    )
    for name in ("nginx:1.15-4", "nginx:1.27-0"):
        words = b"Welcome to a stand-in of nginx!\n"
        page = ("usr/share/nginx/html/index.html", words)
        # So that each has an identity of its own.
        version = ("etc/version", name.encode())
        yield Image(names=(name,), files=(*tools, page, version), command=tuple(_WEB))


def _tools() -> Iterator[tuple[str, Path | bytes | str]]:
    """busybox with all its names, and a shell that keeps every variable."""
    listed = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True)
    shell = shutil.which("bash-static")
    yield "bin/busybox", Path("/bin/busybox")
    for name in listed.stdout.split():
        if name != "busybox" and not (shell and name == "sh"):
            yield f"bin/{name}", "busybox"
    if shell:
        # busybox's own drops variables whose names have dashes; the suite looks for such.
        yield "bin/sh", Path(shell)
    yield "etc/passwd", _PASSWORDS.encode()
    yield "etc/group", _GROUPS.encode()
    yield "tmp/.keep", b""


def _pause(folder: Path) -> Path:
    source, program = folder / "pause.c", folder / "pause"
    source.write_text(_PAUSE)
    subprocess.run(["cc", "-O2", "-static", "-o", program, source], check=True)  # noqa: S603, S607 -- of our own making
    return program


def _changes(image: Image) -> Iterator[str]:
    def quoted(words: Iterable[str]) -> str:
        return "[" + ", ".join(f'"{word}"' for word in words) + "]"

    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    yield from ("--change", f"ENV PATH={path}")
    if image.entrypoint:
        yield from ("--change", f"ENTRYPOINT {quoted(image.entrypoint)}")
    if image.command:
        yield from ("--change", f"CMD {quoted(image.command)}")
    if image.user:
        yield from ("--change", f"USER {image.user}")


def _pack(archive: Path, files: Iterable[tuple[str, Path | bytes | str]]) -> None:
    """A path is a file of this machine, bytes are the file, and a text is where a link leads."""
    with tarfile.open(archive, "w") as tar:
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
        for name, what in files:
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if isinstance(what, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, what
                tar.addfile(entry)
                continue
            content = what.read_bytes() if isinstance(what, Path) else what
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
