"""Whatever a job is, nothing of it runs outside its image."""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from muster.backends.slurm.images import Containers
from muster.backends.slurm.listing import Key
from muster.backends.slurm.submission import Manner, Submission, submission
from muster.model.launch import Launch, Runs
from muster.model.value import replace
from unit.backends.slurm.given import run

KEY = Key(site="here", job=7, attempt=1)
COMMAND = Launch(argv=("python", "it's.py"), workdir="/home/ann", image="nvcr.io/nvidia/pytorch")
SCRIPT = Launch(
    argv=("a b",),
    script="#!/bin/sh -e\necho \"$1\"; echo it\\'s '$HOME'\n",
    workdir="/home/ann",
    runs=Runs.FIRST_TASK,
    image="nvcr.io#nvidia/pytorch",
)
PYXIS = Manner(containers=Containers.PYXIS)
APPTAINER = Manner(containers=Containers.APPTAINER)
IMAGE = "--container-image=nvcr.io#nvidia/pytorch"
WHERE = {"--container-mounts=/home/ann:/home/ann", "--container-workdir=/home/ann"}


def asked(launch: Launch, manner: Manner, *, nodes: int = 1) -> Submission:
    return submission(run(launch, *((f"n{at}", 1) for at in range(nodes))), KEY, manner)


def step_of(script: str) -> Sequence[str]:
    """The words of the srun in a script, up to what it begins."""
    [line] = [line for line in script.splitlines() if line.startswith(("srun", "exec srun"))]
    return shlex.split(line.partition(" /bin/sh ")[0])


@pytest.mark.parametrize(
    ("launch", "nodes"), [(COMMAND, 1), (SCRIPT, 1), (replace(SCRIPT, argv=()), 2)]
)
def test_pyxis_is_told_the_image_of_what_sbatch_runs(launch: Launch, nodes: int) -> None:
    told = asked(launch, PYXIS, nodes=nodes)

    assert {IMAGE, *WHERE} <= set(told.options)
    assert "container" not in told.script


@pytest.mark.parametrize("delegates", [False, True])
def test_pyxis_is_told_the_image_of_every_task_of_a_gang(*, delegates: bool) -> None:
    told = asked(COMMAND, replace(PYXIS, delegates=delegates), nodes=2)

    assert {IMAGE, *WHERE} <= set(step_of(told.script))
    # srun is there only outside of the image.
    assert not [each for each in told.options if "container" in each]


def test_folders_in_which_single_tasks_write_are_there_inside() -> None:
    launch = replace(COMMAND, stdout="/out/%t.log")

    told = asked(launch, PYXIS, nodes=2)

    assert "--container-mounts=/home/ann:/home/ann,/out:/out" in step_of(told.script)


def test_what_separates_folders_is_never_part_of_one() -> None:
    told = asked(replace(COMMAND, workdir="/a:/etc"), PYXIS)

    assert not [each for each in told.options if each.startswith("--container-mounts")]


def test_apptainer_is_before_the_command_of_every_task() -> None:
    single, gang = asked(COMMAND, APPTAINER), asked(COMMAND, APPTAINER, nodes=2)

    inside = "apptainer exec --nv -- docker://nvcr.io/nvidia/pytorch python"
    assert f"exec {inside}" in single.script
    assert f" sh {inside}" in gang.script


def test_a_file_is_no_name_of_a_registry() -> None:
    told = asked(replace(COMMAND, image="/images/torch.sif"), APPTAINER)

    assert "-- /images/torch.sif python" in told.script


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_script_runs_within_the_image_and_leaves_nothing(nodes: int, tmp_path: Path) -> None:
    tool = tmp_path / "apptainer"
    tool.write_text(f'#!/bin/sh\necho "$*" > {tmp_path}/said\nshift 4\nexec "$@"\n')
    tool.chmod(0o755)
    before = set(Path("/tmp").glob("script.*"))  # noqa: S108 -- where the image sees it
    told = asked(SCRIPT, APPTAINER, nodes=nodes)
    batch = tmp_path / "slurm_script"
    batch.write_text(told.script)

    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(  # noqa: S603 -- our own script
        ["/bin/sh", batch, *told.args], env=env, capture_output=True, text=True, check=True
    )

    assert done.stdout == "a b\nit's $HOME\n"
    said = (tmp_path / "said").read_text()
    assert shlex.split(said)[:4] == ["exec", "--nv", "--", "docker://nvcr.io/nvidia/pytorch"]
    assert "/bin/sh -e /proc/self/fd/3" in said
    assert set(Path("/tmp").glob("script.*")) == before  # noqa: S108 -- the same


def test_without_either_the_image_is_left_out() -> None:
    """Such a job comes only where its queue allows images_on_host."""
    told = asked(COMMAND, Manner())

    assert told.script.endswith("exec python 'it'\"'\"'s.py'\n")
    assert not [each for each in told.options if "container" in each]
