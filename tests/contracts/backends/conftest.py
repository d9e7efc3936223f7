import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slurm.lab import Lab
from contracts.backends.engine import Engine
from contracts.backends.kubernetes_engine import KubernetesEngine, kubernetes_lab
from contracts.backends.pretending import PretendEngine
from contracts.backends.real import ExampleEngine, LocalEngine
from contracts.backends.slurm_engine import WITH_TOKENS, RestEngine, SlurmEngine, slurm_lab
from kubernetes_real.lab import Lab as KubernetesLab


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    with slurm_lab(nodes=2) as found:
        yield found


@pytest.fixture(scope="session")
def lab_with_tokens() -> Iterator[Lab]:
    with slurm_lab(WITH_TOKENS, nodes=2) as found:
        yield found


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[KubernetesLab]:
    with kubernetes_lab() as found:
        yield found


@pytest.fixture(params=["simulated", "local", "example", "slurm", "slurmrestd", "kubernetes"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Every backend there is, one after the other, with nothing running."""
    # The socket's name must be short, and other users must reach the folder.
    home = Path(tempfile.mkdtemp(prefix="muster-contract-"))
    home.chmod(0o755)
    match request.param:
        case "simulated":
            engine = PretendEngine()
        case "local":
            engine = LocalEngine(home)
        case "slurm":
            engine = SlurmEngine(home, request.getfixturevalue("lab"))
        case "slurmrestd":
            engine = RestEngine(home, request.getfixturevalue("lab_with_tokens"))
        case "kubernetes":
            engine = KubernetesEngine(home, request.getfixturevalue("kubernetes"))
        case _:
            engine = ExampleEngine(home)
    yield engine
    engine.ends()
    shutil.rmtree(home)
