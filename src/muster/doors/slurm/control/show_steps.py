"""Steps as `scontrol show step` writes them: the script of each job, and what srun began in it."""

from muster.doors.slurm.lists import jobs
from muster.doors.slurm.lists.jobs import JobRow
from muster.doors.slurm.words import times
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.sizes import memory_text
from muster.doors.slurm.words.users import uid_of
from muster.model.launch import Runs
from muster.model.steps import Step


def batch_lines(row: JobRow) -> list[str]:
    """The script itself; a job without one has no such step."""
    if row.launch.runs is not Runs.FIRST_TASK:
        return []
    where = jobs.nodes(row)[:1]
    return _lines(row, "batch", where, (1, 0, "batch", "(null)"))


def step_lines(row: JobRow, step: Step) -> list[str]:
    """What srun began."""
    cpus = step.amount.cpu_milli // 1_000
    tres = [f"cpu={cpus}"]
    if step.amount.memory_mib:
        tres.append(f"mem={memory_text(step.amount.memory_mib)}")
    tres.append(f"node={len(step.nodes)}")
    if step.amount.gpu_milli:
        tres.append(f"gres/gpu={-(-step.amount.gpu_milli // 1_000)}")
    about = (step.tasks, cpus, step.name, ",".join(tres))
    lines = _lines(row, str(step.number), tuple(step.nodes), about)
    began = jobs.at_text(row, step.began_at)
    head = f"StepId={jobs.id_text(row)}.{step.number} UserId={uid_of(row.job.spec.user)} "
    return [f"{head}StartTime={began} TimeLimit={_limit(row)}", *lines[1:]]


def _lines(
    row: JobRow, step: str, where: tuple[str, ...], about: tuple[int, int, str, str]
) -> list[str]:
    tasks, cpus, name, tres = about
    began = jobs.at_text(row, jobs.started_at(row), "Unknown")
    uid = uid_of(row.job.spec.user)
    return [
        f"StepId={jobs.id_text(row)}.{step} UserId={uid} StartTime={began} TimeLimit=UNLIMITED",
        f"State=RUNNING Partition={jobs.partition(row)} NodeList={compressed(where)}",
        f"Nodes={len(where)} CPUs={cpus} Tasks={tasks} Name={name} Network=(null)",
        f"TRES={tres}",
        "ResvPorts=(null)",
        "CPUFreqReq=Default",
        "SrunHost:Pid=(null):0",
    ]


def _limit(row: JobRow) -> str:
    limit = row.job.spec.time_limit
    return "UNLIMITED" if limit is None else times.long_text(limit)
