"""A machine as if no container tool were installed: a PATH that leads to everything else."""

import os
from pathlib import Path

TOOLS = frozenset({"podman", "docker", "apptainer", "singularity"})


def path_without_tools(folder: Path) -> str:
    """PATH as it is, less the container tools; `folder` is filled with links."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            link = folder / program.name
            # The first of a name is the one that is meant.
            if program.name not in TOOLS and not link.is_symlink():
                link.symlink_to(program)
    folder.chmod(0o755)
    return str(folder)
