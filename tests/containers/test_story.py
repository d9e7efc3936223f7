"""The story of examples/slurm that needs a container tool: sbatch, as pyxis spells it."""

import shlex
from pathlib import Path

from containers.images import IMAGE, Podman
from doors.slurm.house import house

EXAMPLES = Path(__file__).parents[2] / "examples" / "slurm"


def test_a_batch_job_runs_in_an_image(podman: Podman) -> None:
    with house(site=EXAMPLES / "site", MUSTER_PODMAN_OPTIONS=shlex.join(podman.options)) as lab:
        ran = lab.shell(str(EXAMPLES / "containers.sh"), IMAGE=IMAGE)

        assert ran.code == 0, f"{ran.out}\n{ran.err}"
        assert str(lab.work) in ran.out
