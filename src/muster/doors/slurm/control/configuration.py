"""`scontrol show config`: every parameter, in Slurm's order; what has no like here is neutral."""

import getpass
import os

from muster.doors.slurm.call import VERSION, Call, Door
from muster.doors.slurm.lists.filters import KEPT_MS
from muster.doors.slurm.lists.listing import Listing
from muster.doors.slurm.lists.preemption import preempt_mode, preempts
from muster.doors.slurm.submit import job_details
from muster.doors.slurm.words import times
from muster.model.value import SECOND

WIDTH = 23


def as_text(call: Call, door: Door) -> str:
    """As `show config` prints it."""
    head = f"Configuration data as of {times.instant_text(door.now, zone=call.zone)}\n"
    body = "".join(f"{name:<{WIDTH}} = {value}\n" for name, value in parameters(call, door))
    return f"{head}{body}\nSlurmctld(primary) at {call.host} is UP\n"


def as_file(call: Call, door: Door) -> str:
    """As slurm.conf has it: only what says something."""
    given = (
        pair for pair in parameters(call, door) if pair[1] not in {"", "(null)", "(null type)"}
    )
    return "".join(f"{name}={value}\n" for name, value in given if not name.isupper())


def parameters(call: Call, door: Door) -> list[tuple[str, str]]:
    """Names and values."""
    given = _of_site(call, door) | _of_policy(door)
    pairs = (line.partition("=")[::2] for line in TEMPLATE.strip().splitlines())
    return [(name, given[value[1:-1]] if value[:1] == "{" else value) for name, value in pairs]


def _of_site(call: Call, door: Door) -> dict[str, str]:
    listing = Listing(call, door)
    graces = [each.grace for each in listing.site.classes.values()]
    has_levels = any(pool.levels for pool in listing.pools.values())
    return {
        "cluster": listing.cluster,
        "host": call.host,
        "mail_program": door.queries.status.mail_program() or "(null)",
        "kill_wait": f"{max(graces, default=30 * SECOND) // SECOND} sec",
        "max_array": str(job_details.MOST_INDEX + 1),
        "min_age": f"{KEPT_MS // SECOND} sec",
        "next": str(door.queries.jobs.next_id()),
        "nodes": str(len(listing.nodes)),
        "owner": f"{getpass.getuser()}({os.getuid()})",
        "topology": "topology/tree" if has_levels else "topology/none",
        "version": VERSION.rpartition(" ")[2],
    }


def _of_policy(door: Door) -> dict[str, str]:
    site = door.queries.site()
    policy = site.policy
    order = policy.order
    return {
        "exempt": times.long_text(policy.preempt.min_run),
        "half_life": times.long_text(policy.share.half_life),
        "max_age": times.long_text(order.age_full),
        "preempt_mode": preempt_mode(site),
        "preempt_type": "preempt/qos" if preempts(site) else "preempt/none",
        "small": "Yes" if order.size < 0 else "No",
        "w_age": str(order.age),
        "w_class": str(order.job_class),
        "w_queue": str(order.queue),
        "w_share": str(order.fair_share),
        "w_size": str(abs(order.size)),
    }


TEMPLATE = """
AccountingStorageBackupHost=(null)
AccountingStorageEnforce=associations,limits,qos
AccountingStorageHost=localhost
AccountingStorageExternalHost=(null)
AccountingStorageParameters=(null)
AccountingStoragePort=0
AccountingStorageTRES=cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageUser=N/A
AccountingStoreFlags=(null)
AcctGatherEnergyType=acct_gather_energy/none
AcctGatherFilesystemType=acct_gather_filesystem/none
AcctGatherInterconnectType=acct_gather_interconnect/none
AcctGatherNodeFreq=0 sec
AcctGatherProfileType=acct_gather_profile/none
AllowSpecResourcesUsage=No
AuthAltTypes=(null)
AuthAltParameters=(null)
AuthInfo=(null)
AuthType=auth/muster
BatchStartTimeout=10 sec
BcastExclude=/lib,/usr/lib,/lib64,/usr/lib64
BcastParameters=(null)
BOOT_TIME=(null)
BurstBufferType=(null)
CliFilterPlugins=(null)
ClusterName={cluster}
CommunicationParameters=(null)
CompleteWait=0 sec
CoreSpecPlugin=core_spec/none
CpuFreqDef=Unknown
CpuFreqGovernors=OnDemand,Performance,UserSpace
CredType=cred/muster
DebugFlags=(null)
DefMemPerNode=UNLIMITED
DependencyParameters=(null)
DisableRootJobs=No
EioTimeout=60
EnforcePartLimits=ALL
Epilog=(null)
EpilogMsgTime=2000 usec
EpilogSlurmctld=(null)
ExtSensorsType=ext_sensors/none
ExtSensorsFreq=0 sec
FederationParameters=(null)
FirstJobId=1
GetEnvTimeout=2 sec
GresTypes=gpu
GpuFreqDef=high,memory=high
GroupUpdateForce=1
GroupUpdateTime=600 sec
HASH_VAL=Match
HealthCheckInterval=0 sec
HealthCheckNodeState=ANY
HealthCheckProgram=(null)
InactiveLimit=0 sec
InteractiveStepOptions=--interactive --preserve-env --pty $SHELL
JobAcctGatherFrequency=30
JobAcctGatherType=jobacct_gather/muster
JobAcctGatherParams=(null)
JobCompHost=localhost
JobCompLoc=(null)
JobCompPort=0
JobCompType=jobcomp/none
JobCompUser=root
JobContainerType=job_container/none
JobCredentialPrivateKey=(null)
JobCredentialPublicCertificate=(null)
JobDefaults=(null)
JobFileAppend=0
JobRequeue=1
JobSubmitPlugins=(null)
KillOnBadExit=0
KillWait={kill_wait}
LaunchParameters=(null)
LaunchType=launch/slurm
Licenses=(null)
LogTimeFormat=iso8601_ms
MailDomain=(null)
MailProg={mail_program}
MaxArraySize={max_array}
MaxDBDMsgs=200016
MaxJobCount=1000000
MaxJobId=9223372036854775807
MaxMemPerNode=UNLIMITED
MaxNodeCount={nodes}
MaxStepCount=40000
MaxTasksPerNode=512
MCSPlugin=mcs/none
MCSParameters=(null)
MessageTimeout=10 sec
MinJobAge={min_age}
MpiDefault=none
MpiParams=(null)
MULTIPLE_SLURMD=No
NEXT_JOB_ID={next}
NodeFeaturesPlugins=(null)
OverTimeLimit=0 min
PluginDir=(null)
PlugStackConfig=(null)
PowerParameters=(null)
PowerPlugin=
PreemptMode={preempt_mode}
PreemptType={preempt_type}
PreemptExemptTime={exempt}
PrEpParameters=(null)
PrEpPlugins=prep/script
PriorityParameters=(null)
PrioritySiteFactorParameters=(null)
PrioritySiteFactorPlugin=(null)
PriorityDecayHalfLife={half_life}
PriorityCalcPeriod=00:00:01
PriorityFavorSmall={small}
PriorityFlags=
PriorityMaxAge={max_age}
PriorityUsageResetPeriod=NONE
PriorityType=priority/multifactor
PriorityWeightAge={w_age}
PriorityWeightAssoc={w_queue}
PriorityWeightFairShare={w_share}
PriorityWeightJobSize={w_size}
PriorityWeightPartition=0
PriorityWeightQOS={w_class}
PriorityWeightTRES=(null)
PrivateData=none
ProctrackType=proctrack/muster
Prolog=(null)
PrologEpilogTimeout=65534
PrologSlurmctld=(null)
PrologFlags=(null)
PropagatePrioProcess=0
PropagateResourceLimits=NONE
PropagateResourceLimitsExcept=(null)
RebootProgram=(null)
ReconfigFlags=(null)
RequeueExit=(null)
RequeueExitHold=(null)
ResumeFailProgram=(null)
ResumeProgram=(null)
ResumeRate=300 nodes/min
ResumeTimeout=60 sec
ResvEpilog=(null)
ResvOverRun=0 min
ResvProlog=(null)
ReturnToService=1
RoutePlugin=route/default
SchedulerParameters=(null)
SchedulerTimeSlice=30 sec
SchedulerType=sched/muster
ScronParameters=(null)
SelectType=select/cons_tres
SelectTypeParameters=CR_CORE_MEMORY
SlurmUser={owner}
SlurmctldAddr=(null)
SlurmctldDebug=info
SlurmctldHost[0]={host}
SlurmctldLogFile=(null)
SlurmctldPort=0
SlurmctldSyslogDebug=(null)
SlurmctldPrimaryOffProg=(null)
SlurmctldPrimaryOnProg=(null)
SlurmctldTimeout=120 sec
SlurmctldParameters=(null)
SlurmdDebug=info
SlurmdLogFile=(null)
SlurmdParameters=(null)
SlurmdPidFile=(null)
SlurmdPort=0
SlurmdSpoolDir=(null)
SlurmdSyslogDebug=(null)
SlurmdTimeout=300 sec
SlurmdUser={owner}
SlurmSchedLogFile=(null)
SlurmSchedLogLevel=0
SlurmctldPidFile=(null)
SlurmctldPlugstack=(null)
SLURM_CONF=(null)
SLURM_VERSION={version}
SrunEpilog=(null)
SrunPortRange=0-0
SrunProlog=(null)
StateSaveLocation=(null)
SuspendExcNodes=(null)
SuspendExcParts=(null)
SuspendProgram=(null)
SuspendRate=60 nodes/min
SuspendTime=INFINITE
SuspendTimeout=30 sec
SwitchParameters=(null)
SwitchType=switch/none
TaskEpilog=(null)
TaskPlugin=task/muster
TaskPluginParam=(null type)
TaskProlog=(null)
TCPTimeout=2 sec
TmpFS=/tmp
TopologyParam=(null)
TopologyPlugin={topology}
TrackWCKey=No
TreeWidth=50
UsePam=No
UnkillableStepProgram=(null)
UnkillableStepTimeout=60 sec
VSizeFactor=0 percent
WaitTime=0 sec
X11Parameters=(null)
"""
"""A value in braces is looked up; all others are what an installation of Slurm has untouched."""
