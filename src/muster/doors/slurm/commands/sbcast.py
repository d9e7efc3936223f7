"""`sbcast`: copy a file to the nodes of a job, which are all this machine."""

from muster.doors.slurm.call import Call, Copy, Door, Reply, version, warning
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.lists.filters import job_name
from muster.doors.slurm.permissions import STRANGER, may_be_user
from muster.doors.slurm.words.errors import failed
from muster.doors.slurm.words.options import Manner, Parsed, parsed, table
from muster.model.errors import UnknownError

NAME = "sbcast"
OPTIONS = table("""
    C:compress? exclude= F:fanout= f:force help j:jobid= p:preserve send-libs? s:size= t:timeout=
    usage v:verbose V:version
""")
IGNORED = "compress exclude fanout send-libs size timeout".split()


def run(call: Call, door: Door) -> Reply:
    """Say what is to be copied where; the client does it, with the caller's rights."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[OPTIONS] SOURCE DEST")
    if len(line.rest) != 2:
        raise failed(NAME, f"Need two file names, have {len(line.rest)} names")
    source, target = line.rest
    copy = Copy(
        source=source,
        target=target,
        node=_node(line, call, door),
        force=line.has("force"),
        preserve=line.has("preserve"),
    )
    return Reply(err="".join(warning(NAME, each) for each in IGNORED if line.has(each)), then=copy)


def _node(line: Parsed, call: Call, door: Door) -> str:
    """The first node of the job, which must run."""
    text = line.value("jobid") or call.env.get("SLURM_JOB_ID")
    if text is None:
        where = "Run from within a Slurm job or use the --jobid option."
        raise failed(NAME, f"Need a job id to run this command.  {where}")
    name = job_name(text)
    try:
        view = None if name is None else door.queries.jobs.detail(door.caller, name.job).view
    except UnknownError:
        view = None
    if view is not None and not may_be_user(door, view.job):
        raise failed(NAME, f"Slurm job {text} lookup error: {STRANGER}", code=255)
    held = None if view is None else view.allocation
    if held is None:
        raise failed(NAME, f"Job id {text}: Invalid job id specified")
    return held.placements[0].node
