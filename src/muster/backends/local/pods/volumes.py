"""Volumes of a pod on this machine: folders that its containers mount."""

import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path

from muster.backends.local.isolation.users import LocalUser, acting_as
from muster.launch.pods.variables import File, MissingError, NodeFacts, Sources, expanded, files_of
from muster.model.pod import EmptyFolder, Files, HostFolder, Mount, Volume

_MEMORY = "/dev/shm"  # noqa: S108 -- the machine's memory as a folder
_DATA = "..data"
_CREATES = {"DirectoryOrCreate", "FileOrCreate"}


class Volumes:
    """The volumes of one pod, below a folder of its own.

    group: who else may use the files of its volumes.
    """

    def __init__(
        self,
        folder: Path,
        user: LocalUser,
        volumes: tuple[Volume, ...],
        *,
        group: int | None = None,
    ) -> None:
        self._folder = folder
        self._user = user
        self._volumes = {each.name: each for each in volumes}
        self._group = group
        self._in_memory: Path | None = None

    def prepared(self, mount: Mount, sources: Sources, node: NodeFacts) -> str:
        """Where on the machine a container's mount begins; MissingError when it cannot be."""
        volume = self._volumes[mount.volume]
        match volume.source:
            case EmptyFolder(in_memory=in_memory):
                return str(self._empty(volume.name, in_memory=in_memory))
            case HostFolder(path=path, must_be=must_be):
                self._demand_host_path(volume.name, path, must_be)
                return path
            case Files() as files:
                return str(self._written(volume.name, files_of(files, sources, node)))

    def is_host_path(self, mount: Mount) -> bool:
        """Is it a path of the machine, which the user might change under us?"""
        return isinstance(self._volumes[mount.volume].source, HostFolder)

    def inside(self, mount: Mount, begins: str, env: dict[str, str]) -> str:
        """The part of a volume that is mounted; a folder is made where there is none."""
        part = expanded(mount.part, env) if mount.expands else mount.part
        if not part:
            return begins
        if ".." in part.split("/") or part.startswith("/"):
            raise MissingError(f"{part} leads out of volume {mount.volume}")
        path = os.path.join(begins, part)
        with acting_as(self._user), contextlib.suppress(FileExistsError):
            os.makedirs(path)
        return path

    def refresh(self, sources: Sources, node: NodeFacts) -> None:
        """Sources changed: files that show them change too."""
        for name, volume in self._volumes.items():
            if isinstance(volume.source, Files) and (self._folder / "volumes" / name).exists():
                with contextlib.suppress(MissingError):
                    self._written(name, files_of(volume.source, sources, node))

    def remove(self) -> None:
        if self._in_memory is not None:
            shutil.rmtree(self._in_memory, ignore_errors=True)

    def _empty(self, name: str, *, in_memory: bool) -> Path:
        path = self._folder / "volumes" / name
        if in_memory and os.path.isdir(_MEMORY):
            path = self._memory() / name
        if not path.exists():
            path.mkdir(parents=True)
            path.chmod(0o777 if self._group is None else 0o2777)
            self._give(path)
        return path

    def _memory(self) -> Path:
        """A folder whose name nobody can guess: every user may write where it is."""
        if self._in_memory is None:
            self._in_memory = Path(tempfile.mkdtemp(prefix="muster-", dir=_MEMORY))
            self._in_memory.chmod(0o711)
        return self._in_memory

    def _demand_host_path(self, name: str, path: str, must_be: str) -> None:
        """With the rights of the user, and no others."""
        with acting_as(self._user):
            if must_be in _CREATES and not os.path.exists(path):
                _create(path, must_be)
            known = {
                "Directory": os.path.isdir,
                "DirectoryOrCreate": os.path.isdir,
                "File": os.path.isfile,
                "FileOrCreate": os.path.isfile,
            }
            is_there = known.get(must_be, os.path.exists)
            if not is_there(path):
                kind = must_be or "path"
                raise MissingError(
                    f'MountVolume.SetUp failed for volume "{name}" : '
                    f"hostPath type check failed: {path} is not a {kind.lower()}"
                )

    def _written(self, name: str, files: tuple[File, ...]) -> Path:
        """All files at once: a link is turned to a new folder, so that nobody sees half of them."""
        path = self._folder / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o755)
        held = path / f"..{secrets.token_hex(6)}"
        held.mkdir(mode=0o755)
        held.chmod(0o755)
        for file in files:
            self._write(held, file)
        before = path / _DATA
        old = os.readlink(before) if before.is_symlink() else None
        link = path / f"{_DATA}_tmp"
        link.symlink_to(held.name)
        link.rename(before)
        self._link(path, files)
        if old is not None:
            shutil.rmtree(path / old, ignore_errors=True)
        return path

    def _write(self, held: Path, file: File) -> None:
        target = held / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(opened, file.content)
            os.fchmod(opened, file.mode if self._group is None else file.mode | 0o440)
        finally:
            os.close(opened)
        self._give(target)

    def _link(self, path: Path, files: tuple[File, ...]) -> None:
        wanted = {file.path.split("/")[0] for file in files}
        for name in wanted:
            link = path / name
            if not link.is_symlink():
                link.symlink_to(f"{_DATA}/{name}")
        for name in os.listdir(path):
            if not name.startswith("..") and name not in wanted:
                (path / name).unlink()

    def _give(self, path: Path) -> None:
        if self._user.changes:
            os.chown(path, self._user.uid, self._user.gid)
        if self._group is not None:
            os.chown(path, -1, self._group)


def _create(path: str, must_be: str) -> None:
    try:
        if must_be == "DirectoryOrCreate":
            os.makedirs(path, mode=0o755, exist_ok=True)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError as error:
        raise MissingError(f"cannot create {path}: {error.strerror}") from None
