"""`scrontab`: not offered, as on a Slurm where it is switched off; it says what to use instead."""

from muster.doors.slurm.call import Call, Door, Reply, version
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Manner, parsed, table

NAME = "scrontab"
OPTIONS = table("e:edit help l:list r:remove u:user= usage v:verbose V:version")


def run(call: Call, _: Door) -> Reply:
    """Refuse, whatever is asked of it."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[OPTIONS] [FILE]")
    raise SlurmError(
        "scrontab: fatal: scrontab is disabled on this cluster",
        "scrontab: Muster keeps no tables of its own; let cron call sbatch: crontab -e",
    )
