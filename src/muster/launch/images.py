"""Names of container images, as each of those who run them spells them. Pure."""

from muster.model.launch import is_image_file

_DOCKER = "docker://"
_HUB = "docker.io"


def reference(image: str) -> str:
    """As podman, docker and pods spell it: no `docker://`, and a slash for the `#` of pyxis."""
    if is_path(image):
        return image
    registry, mark, name = image.removeprefix(_DOCKER).rpartition("#")
    return f"{registry.rpartition('@')[2]}/{name}" if mark else name


def for_pyxis(image: str) -> str:
    """As enroot spells it: a registry other than Docker Hub is before a `#`.

    Without that it would look for the registry's name as a folder of Docker Hub.
    """
    name = image.removeprefix(_DOCKER)
    if is_path(image) or "://" in name or "#" in name:
        return name
    first, slash, rest = name.partition("/")
    registry = first.rpartition("@")[2]
    if not slash or not _is_registry(registry):
        return name
    return rest if registry == _HUB else f"{first}#{rest}"


def is_path(image: str) -> bool:
    """Is it a file or a folder, rather than a name?"""
    return image.startswith(("/", "./", "../")) or is_image_file(image)


def _is_registry(word: str) -> bool:
    """What docker takes for one: anything else is a folder of Docker Hub."""
    return "." in word or ":" in word or word == "localhost"
