"""A standby takes over what the other Muster began on a Slurm cluster."""

from collections.abc import Iterator

import pytest

from bench.slurm.lab import Lab
from contracts.backends.slurm_engine import slurm_lab
from databases import Postgres
from live.house import Process, ended, folder, running, until
from muster.model.value import replace
from muster.settings import Settings, SlurmCluster

pytestmark = pytest.mark.slow


@pytest.fixture
def lab() -> Iterator[Lab]:
    with slurm_lab(nodes=2) as found:
        yield found


def test_no_job_on_the_cluster_is_lost_or_runs_twice(lab: Lab, postgres: Postgres) -> None:
    cluster = SlurmCluster(name="lab", conf=lab.layout.conf)
    with folder() as place:
        place.chmod(0o777)
        settings = Settings(
            store=postgres.new_address(),
            mail_program="none",
            nodes=1,
            gpus="0",
            clusters=(cluster,),
        )
        first = Process(place / "first", settings)
        # A standby is told of no clusters: it uses those of the other one.
        beside = replace(settings, clusters=(), standby_for=str(place / "first"))
        second = Process(place / "second", beside)
        first.start()
        second.start()
        text = f"echo ran >> {place}/ran; until test -e {place}/go; do sleep 0.1; done; exit 3"
        try:
            with first.client() as client:
                job = client.submit(["sh", "-c", text], pools=("gpu",), gpus=4, workdir="/").id
                running(client, job)
            until((place / "ran").exists, bool)

            first.kill()
            until(second.leads, bool)
            (place / "go").touch()

            with second.client() as client:
                (over,) = ended(client, [job])
            assert (over.state, over.exit_code, over.attempt) == ("failed", 3, 1)
            assert (place / "ran").read_text() == "ran\n"
        finally:
            first.stop()
            second.stop()
