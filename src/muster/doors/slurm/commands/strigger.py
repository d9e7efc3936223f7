"""`strigger`: not offered; it says what to use instead."""

from muster.doors.slurm.call import Call, Door, Reply, version
from muster.doors.slurm.help import help_reply
from muster.doors.slurm.words.errors import SlurmError
from muster.doors.slurm.words.options import Manner, parsed, table

NAME = "strigger"
OPTIONS = table("""
    C:backup_slurmctld_assumed_control B:backup_slurmctld_failure
    c:backup_slurmctld_resumed_operation burst_buffer clear M:clusters= d:down D:drained F:fail
    f:fini flags= front_end get help i:id= I:idle j:jobid= n:node? N:noheader o:offset=
    h:primary_database_failure H:primary_database_resumed_operation g:primary_slurmdbd_failure
    G:primary_slurmdbd_resumed_operation e:primary_slurmctld_acct_buffer_full
    a:primary_slurmctld_failure b:primary_slurmctld_resumed_control
    A:primary_slurmctld_resumed_operation p:program= Q:quiet r:reconfig set t:time u:up usage user=
    v:verbose V:version
""")


def run(call: Call, _: Door) -> Reply:
    """Refuse, whatever is asked of it."""
    line = parsed(OPTIONS, call.argv, Manner(command=NAME))
    if line.has("version"):
        return version()
    if line.has("help") or line.has("usage"):
        return help_reply(NAME, OPTIONS, "[--set | --get | --clear] [OPTIONS]")
    raise SlurmError(
        "strigger: error: triggers are not supported by Muster",
        "strigger: to act when something happens, follow it: muster events -f -o json, "
        "or let a job depend on another: sbatch -d afterany:JOB",
    )
