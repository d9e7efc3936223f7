"""Volumes of a pod on this machine: folders that its containers mount."""

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from muster.backends.local.isolation import trees
from muster.backends.local.isolation.users import LocalUser, acting_as
from muster.backends.local.pods import places
from muster.launch.pods.variables import File, MissingError, NodeFacts, Sources, expanded, files_of
from muster.model.pod import EmptyFolder, Files, HostFolder, Mount, Volume

_DATA = "..data"
_HELD = re.compile(r"\.\.[0-9a-f]{12}")
"""What a folder of files is called, which `..data` is a link to."""

_CREATES = {"DirectoryOrCreate", "FileOrCreate"}


@dataclass(frozen=True, kw_only=True)
class VolumePlace:
    """Where the volumes of a pod are, and for whom.

    group: who else may use the files in them. owner: who can change the folder, if not we alone.
    note: is told which folder in memory has to be removed if we die.
    """

    folder: Path
    user: LocalUser
    group: int | None = None
    owner: LocalUser | None = None
    note: Callable[[Path], None] | None = None


class Volumes:
    """The volumes of one pod, below a folder of its own."""

    def __init__(self, place: VolumePlace, volumes: tuple[Volume, ...]) -> None:
        self._folder = place.folder
        self._user = place.user
        self._group = place.group
        self._owner = place.owner
        self._note = place.note
        self._volumes = {each.name: each for each in volumes}
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
                return str(self._kept(volume.name, files_of(files, sources, node)))

    def is_host_path(self, mount: Mount) -> bool:
        """Is it a path of the machine, which the user might change under us?"""
        return isinstance(self._volumes[mount.volume].source, HostFolder)

    def is_written_by_us(self, mount: Mount) -> bool:
        """Does it show what others keep, so that a container may only read it?"""
        return isinstance(self._volumes[mount.volume].source, Files)

    def inside(self, mount: Mount, begins: str, env: dict[str, str]) -> str:
        """The part of a volume that is mounted; a folder is made where there is none."""
        part = expanded(mount.part, env) if mount.expands else mount.part
        if not part:
            return begins
        if ".." in part.split("/") or part.startswith("/"):
            raise MissingError(f"{part} leads out of volume {mount.volume}")
        try:
            self._make_part(mount, begins, part)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise MissingError(f"cannot make {part} in volume {mount.volume}: {why}") from None
        return os.path.join(begins, part)

    def _make_part(self, mount: Mount, begins: str, part: str) -> None:
        """As the user, who need not be able to come to the folder in which it begins."""
        comes = acting_as(self._user) if self.is_host_path(mount) else places.as_owner(self._owner)
        with comes:
            if not os.path.isdir(begins):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            below = os.open(begins, os.O_PATH | os.O_DIRECTORY)
        try:
            with acting_as(self._user), contextlib.suppress(FileExistsError):
                os.makedirs(f"/proc/self/fd/{below}/{part}")
        finally:
            os.close(below)

    def refresh(self, sources: Sources, node: NodeFacts) -> None:
        """Sources changed: files that show them change too."""
        for name, volume in self._volumes.items():
            if isinstance(volume.source, Files) and (self._folder / "volumes" / name).exists():
                with contextlib.suppress(MissingError):
                    self._kept(name, files_of(volume.source, sources, node))

    def remove(self) -> None:
        if self._in_memory is not None:
            places.remove_memory(self._in_memory)

    def _empty(self, name: str, *, in_memory: bool) -> Path:
        path = self._folder / "volumes" / name
        if in_memory and os.path.isdir(places.MEMORY):
            path = self._memory() / name
        with places.as_owner(self._owner):
            if not path.exists():
                path.mkdir(parents=True)
                self._give(path)
                # Whoever the container's processes are; nobody else comes here.
                path.chmod(0o777 if self._group is None else 0o2777)
        return path

    def _memory(self) -> Path:
        if self._in_memory is None:
            with places.as_owner(self._owner):
                self._in_memory = places.made_memory()
            if self._note is not None:
                self._note(self._in_memory)
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

    def _kept(self, name: str, files: tuple[File, ...]) -> Path:
        for file in files:
            if not file.path or file.path.startswith("/") or ".." in file.path.split("/"):
                raise MissingError(f"{file.path!r} leads out of volume {name}")
        try:
            with places.as_owner(self._owner):
                return self._written(name, files)
        except OSError as error:
            text = f"cannot write the files of volume {name}: {error.strerror}"
            raise MissingError(text) from None

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
        link.unlink(missing_ok=True)
        link.symlink_to(held.name)
        link.rename(before)
        self._link(path, files)
        if old is not None and _HELD.fullmatch(old):
            trees.remove(path / old)
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
