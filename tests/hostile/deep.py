"""Trees that no path can name whole."""

import os
from pathlib import Path


def deep_tree(folder: Path, depth: int) -> None:
    """Folders in one another."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
