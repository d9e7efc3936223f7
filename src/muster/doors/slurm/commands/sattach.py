"""`sattach`: what a running step is; its output goes where its srun writes."""

from muster.doors.slurm.call import Call, Door, Reply, version
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.filters import job_name
from muster.doors.slurm.words.errors import SlurmError, failed
from muster.doors.slurm.words.hostlist import compressed
from muster.doors.slurm.words.options import Manner, parsed, table
from muster.model.steps import Step

NAME = "sattach"
OPTIONS = table("""
    error-filter= h:help input-filter= l:label layout output-filter= pty Q:quiet u:usage v:verbose
    V:version
""")
WORDS = "[options] <jobid.stepid>"


def run(call: Call, door: Door) -> Reply:
    """The layout of a step; to its output there is nothing that one could attach to."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, WORDS)
    step = _step(line.rest[0] if line.rest else "", door)
    if line.has("layout"):
        return Reply(out=_layout(step))
    where = f"step {step.job}.{step.number} writes where its srun does, and no copy is kept"
    raise failed(NAME, f"{where}; start it with srun --output=FILE, and read the file")


def _step(text: str, door: Door) -> Step:
    name = job_name(text)
    if name is None or not (name.step or "").isdecimal():
        problem = "Failed to parse stepid from command line options"
        raise SlurmError(f"sattach: error: {problem}", f"Usage: sattach {WORDS}")
    running = door.queries.jobs.running_steps(door.caller)
    found = [each for each in running if (each.job, str(each.number)) == (name.job, name.step)]
    if not found:
        raise failed(NAME, "Could not get job step info: Invalid job id specified")
    return found[0]


def _layout(step: Step) -> str:
    """On several nodes only the supervisor knows which of them has which task."""
    nodes = compressed(step.nodes)
    lines = ["Job step layout:", f"\t{step.tasks} tasks, {len(step.nodes)} nodes ({nodes})", ""]
    if len(step.nodes) == 1:
        ranks = " ".join(map(str, range(step.tasks)))
        lines.append(f"\tNode 0 ({nodes}), {step.tasks} task(s): {ranks} ")
    return "\n".join([*lines, ""])
