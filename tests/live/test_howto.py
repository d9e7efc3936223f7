"""README and how-tos, typed as they stand: as root and as a plain user, each in a fresh home.

What a page takes for granted (files of the reader's own, a queue, a certain node) is in PAGES;
blocks that cannot be run here say so in the page, see `pages.py`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.house import folder
from live.pages import ROOT, blocks
from people import STRANGER, our_packages, python_for_all

pytestmark = pytest.mark.slow

PATIENCE_S = 300

UP = "muster up --nodes 4 --gpus 8xA100-40GB\n"
SLURM = """
muster slurm install ~/slurm --force >/dev/null
export PATH=~/slurm:$PATH
"""
NODES = "- {nodes: 4, gpus: 8xA100-40GB, name: n, pool: dgx, where: [r1]}\n"
SITE = """
queues: {acme: {queues: {nlp: {}, vision: {}}}, science: {}, nlp: {}, vision: {}, default: {}}
classes: {low: {priority: 0}, normal: {priority: 100}, high: {priority: 1000}}
pools: {dgx: {cluster: local, levels: [rack]}}
default_queue: default
"""
SLURM_CONF = """
ClusterName=lab
NodeName=n[1-4] CPUs=64 RealMemory=512000 Gres=gpu:a100:8
PartitionName=dgx Nodes=n[1-4] Default=YES
"""
ACCOUNTS = """
Cluster - 'lab':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'nlp':Description='nlp':Organization='lab':Fairshare=3
Parent - 'nlp'
User - 'ada':DefaultAccount='nlp':Fairshare=1
"""
PAST = """\
JobID|JobName|User|Partition|Submit|Start|ElapsedRaw|TimelimitRaw|ReqTRES|NNodes|State
1|train|ada|dgx|2026-10-01T08:00:00|2026-10-01T08:00:10|600|60|cpu=8,mem=64G,node=1,gres/gpu=4|1|COMPLETED
"""
TRACE = """submit_s,duration_s,gpus
0,3600,8
60,600,4
"""
FILES = {
    **dict.fromkeys(("train.py", "prepare.py", "serve.py", "sweep.py"), "print('done')\n"),
    # Pages change these jobs and cancel them: they must not have ended by then.
    **dict.fromkeys(("train.sh", "train.sbatch"), "#!/bin/sh\nexec sleep 600\n"),
    **dict.fromkeys(("eval.sh", "test.sh"), "#!/bin/sh\necho done\n"),
    "train.pbs": "#!/bin/sh\n#PBS -l select=1:ncpus=2\necho done\n",
    "train.lsf": "#!/bin/sh\n#BSUB -n 2\necho done\n",
    "train.yaml": "command: python train.py\n",
    "jobs.csv": TRACE,
    "outages.csv": "node,from,to\nn1,1h,2h\n",
    **dict.fromkeys(("cluster.yaml", "now.yaml", "then.yaml"), SITE),
    "nodes.yaml": NODES,
    "slurm.conf": SLURM_CONF,
    "gres.conf": "NodeName=n[1-4] Name=gpu Type=a100 File=/dev/nvidia[0-7]\n",
    "lab.cfg": ACCOUNTS,
    "qos.txt": "Name|Priority|Preempt|\nnormal|0||\nhigh|10|normal|\n",
    "last-month.txt": PAST,
}
"""What the reader has: the pages name these and do not show them."""
# It is just starting when the page is typed, and does not end at once when it is told to.
LASTS = """muster submit -- sh -c 'trap "sleep 2; exit" TERM; echo $$ > job.pid; sleep 600 & wait'
"""
IS_GONE = """
if test -e job.pid && kill -0 "$(cat job.pid)" 2>/dev/null; then echo "still there"; false; fi
echo "it is gone"
"""
OWN_HOME = "export MUSTER_HOME=${MUSTER_HOME:-~/.local/state/muster}\n"
RULED = "muster up --site cluster.yaml --pretend nodes.yaml\n"


@dataclass(frozen=True)
class Page:
    """before: typed first; after: typed last; says: what must appear."""

    name: str
    before: str = UP
    after: str = ""
    says: tuple[str, ...] = ()


PAGES = (
    Page("alerts", before=UP + OWN_HOME, says=("silence", "46", "Nothing is silenced")),
    Page("backup", says=("Restored.",)),
    Page("checkpoints", says=("counted 200 steps",)),
    Page("containers"),
    Page("dates"),
    Page("diagnose", says=("No job has held a GPU for a whole minute yet",)),
    Page("disk", after="muster site\n", says=("keep: 90d",)),
    Page("gpus"),
    Page("job-files", before=RULED),
    Page("kubernetes", says=("configmap/cfg unchanged", "0.2", 'namespace "nlp" deleted')),
    Page("kubernetes-gangs", says=("team-a", "pytorchjob.kubeflow.org/mnist created")),
    Page("mail", before=UP + SLURM),
    Page("pbs-and-lsf", before=RULED),
    Page("planner", before=""),
    Page("python", says=("done", "completed")),
    Page("rest", before=UP + OWN_HOME, says=('"id"', "mst_")),
    Page("simulate", before=UP + "muster run -- true\n"),
    Page("slurm", before=RULED + SLURM),
    Page("slurm-files", before=""),
    Page("telemetry", before=UP + OWN_HOME, says=("muster_leads", '"busy"', '"step_ms":60000')),
    Page("traces", before=UP + SLURM),
    Page("uninstall", before=UP + LASTS, after=IS_GONE, says=("Muster has stopped", "is gone")),
    Page("upgrade"),
)


@dataclass(frozen=True)
class Newcomer:
    """Somebody with a clone of Muster and a home in which nothing is yet."""

    user: str | None
    clone: Path
    home: Path

    def has(self, name: str, text: str) -> None:
        path = self.clone / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        if self.user is not None:
            shutil.chown(path, self.user)

    def has_kubectl(self) -> None:
        """A copy of ours: the folder that it is in may be root's alone."""
        command = self.clone / ".venv" / "bin" / "kubectl"
        shutil.copy(Path(sys.executable).parent / "kubectl", command)
        command.chmod(0o755)

    def types(self, text: str) -> str:
        env = {
            "HOME": str(self.home),
            "PATH": f"{self.clone}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }
        if self.user is None:
            env["MUSTER_HOME"] = str(self.home / "state")
        done = subprocess.run(  # noqa: S603  our own pages
            ["/bin/bash", "-euo", "pipefail", "-c", text],
            cwd=self.clone,
            env=env,
            user=self.user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout


@pytest.fixture(params=["root", STRANGER])
def newcomer(request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    is_root = os.getuid() == 0
    if request.param == STRANGER and not is_root:
        pytest.skip("only root can be somebody else; whoever runs the tests is tried instead")
    user = STRANGER if request.param == STRANGER else None
    with folder() as place:
        made = Newcomer(user=user, clone=place / "clone", home=place / "home")
        _cloned(made)
        try:
            yield made
        finally:
            made.types(
                "muster cancel $(muster ps -o name) >/dev/null 2>&1 || true; muster down || true"
            )


def _cloned(newcomer: Newcomer) -> None:
    """As after `make`: what it would fetch from the network is there already."""
    clone = newcomer.clone
    python = sys.executable if newcomer.user is None else python_for_all()
    (clone / ".venv" / "bin").mkdir(parents=True)
    newcomer.home.mkdir()
    shutil.copytree(ROOT / "examples", clone / "examples")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, clone / name)
        os.utime(clone / name, (1, 1))
    for name, words in (("muster", "-m muster "), ("python", "")):
        command = clone / ".venv" / "bin" / name
        command.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{our_packages()}"\nexec {python} {words}"$@"\n',
            encoding="utf-8",
        )
        command.chmod(0o755)
    version = re.search(r"UV_VERSION := (\S+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert version is not None
    uv = clone / ".tools" / f"uv-{version[1]}" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.touch()
    os.utime(uv, (2, 2))
    for minor in range(11, 20):
        (clone / ".venv" / f"synced-with-python3.{minor}").touch()
    (clone / ".venv" / "synced-with-python3").touch()
    if newcomer.user is not None:
        for each in (clone, newcomer.home, *clone.rglob("*")):
            shutil.chown(each, newcomer.user)


def test_the_first_screen_of_the_readme_works(newcomer: Newcomer) -> None:
    screen = "".join(each.typed for each in blocks("README.md"))

    said = newcomer.types(screen)

    assert "GPUs 0,1 on pretend1" in said
    assert "Needs 4 GPUs" in said
    assert "Submitted batch job 5" in said
    assert " of pretend" in said
    assert "COMPLETED" in said
    assert "Muster has stopped" in said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_can_be_typed(newcomer: Newcomer, page: Page) -> None:
    for name, text in FILES.items():
        newcomer.has(name, text)
    if page.name.startswith("kubernetes"):
        newcomer.has_kubectl()

    shown = "".join(each.typed for each in blocks(_path(page.name)))
    said = newcomer.types(page.before + shown + page.after)

    assert [each for each in page.says if each not in said] == []


def test_every_page_with_something_to_type_is_typed() -> None:
    pages = sorted(each.stem for each in (ROOT / "docs" / "howto").glob("*.md"))

    typed = [name for name in pages if any(each.typed for each in blocks(_path(name)))]

    assert typed == sorted(page.name for page in PAGES)


def _path(name: str) -> str:
    return f"docs/howto/{name}.md"
