import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.here import Here


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that other users can reach, as the state folder of a real Muster is."""
    folder = Path(tempfile.mkdtemp(prefix="muster-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def here(home: Path) -> Iterator[Here]:
    here = Here(home)
    here.adopts()
    yield here
    here.leaves()
