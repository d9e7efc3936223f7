"""sacctmgr, sshare, sprio and sdiag as administrators type them, against a real daemon."""

import json
import os
import re
from pathlib import Path

import pytest

from doors.slurm.house import House

# As a real Slurm 22.05 printed them.
SPRIO = "          JOBID PARTITION   PRIORITY       SITE        AGE"
SPRIO_LONG = (
    "          JOBID PARTITION     USER   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE"
    "    JOBSIZE  PARTITION        QOS        NICE                 TRES\n"
)
SSHARE = (
    "Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare \n"
    "-------------------- ---------- ---------- ----------- ----------- ------------- ---------- \n"
    "root                                          0.000000 "
)
SSHARE_LONG = (
    "Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS|"
    "GrpTRESMins|TRESRunMins"
)
CALLS = re.compile(
    r"^\t([A-Z_]+) +\( *(\d+)\) count:(\d+) +ave_time:(\d+) +total_time:(\d+)$", re.MULTILINE
)

ALL_GPUS = "-N2 --gres=gpu:4 -o /dev/null"


def test_jobs_start_in_the_order_that_sprio_shows(slurm: House) -> None:
    first = slurm.submits(f"{ALL_GPUS} --wrap 'sleep 600'")
    slurm.waits_for(first, "RUNNING")
    # Each of them takes everything, so that they run one after the other.
    wishes = ("--nice=300", "--qos=low", "", "--qos=high --nice=200", "--nice=50", "--qos=high")
    jobs = [slurm.submits(f"{ALL_GPUS} {wish} --wrap true") for wish in wishes]
    slurm.waits_until(lambda: len(slurm.out("sprio -h").splitlines()) == len(jobs))

    shown = slurm.out("sprio -h -S -Y -o %i").split()
    listed = slurm.out(f"squeue -h -t PD -j {','.join(jobs)} -S -p -o %i").split()
    points = {row.split()[0]: row.split()[1:] for row in slurm.out(LONG).splitlines()}
    slurm.out(f"scancel {first}")
    for job in jobs:
        slurm.waits_for(job, "COMPLETED")

    assert shown == listed
    assert set(shown) == set(jobs)
    assert shown[:2] == [jobs[5], jobs[3]]
    assert begin_order(slurm, jobs) == [int(job) for job in shown]
    for total, *parts, nice in points.values():
        assert int(total) == sum(map(int, parts)) - int(nice)


LONG = "sprio -h -o '%i %Y %S %A %B %F %J %P %Q %N'"


def begin_order(slurm: House, jobs: list[str]) -> list[int]:
    """In which order they were placed: events have numbers, where seconds are too coarse."""
    socket = slurm.root / "home" / "muster.sock"
    text = slurm.out(f"curl -s --unix-socket {socket} 'http://muster/v1/events?limit=1000'")
    events = json.loads(text)["events"]
    return [each["job"] for each in events if is_placed(each) and str(each["job"]) in jobs]


def is_placed(event: dict[str, object]) -> bool:
    return event["kind"] == "job_placed"


def test_the_tables_have_the_columns_of_a_real_slurm(slurm: House) -> None:
    assert slurm.out("sprio").startswith(SPRIO)
    assert slurm.out("sprio -l").startswith(SPRIO_LONG)
    assert slurm.out("sshare").startswith(SSHARE)
    assert slurm.out("sshare -ahlP").splitlines()[0].startswith("root|||0.000000|")
    assert slurm.out("sshare -alP").splitlines()[0] == SSHARE_LONG


def test_sshare_shows_what_somebody_used_and_what_that_makes_of_their_share(slurm: House) -> None:
    job = slurm.submits("--gres=gpu:2 -t 60 -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(job, "RUNNING")
    user = slurm.out("id -un").strip()
    line = f"sshare -n -P -u {user} -o account,user,rawusage,fairshare,tresrunmins"

    slurm.waits_until(lambda: int(_mine(slurm.out(line), user)[2]) > 0)
    _, _, _, factor, promised = _mine(slurm.out(line), user)
    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")

    assert 0 < float(factor) < 1
    assert "gres/gpu=1" in promised
    assert "default" in slurm.out("sshare -U --format Account%256 --noheader").split()
    assert slurm.out(f"sacctmgr -n -s list user {user} format=account%256").split() == ["default"]


def _mine(text: str, user: str) -> list[str]:
    return next(row.split("|") for row in text.splitlines() if row.split("|")[1] == user)


def test_sdiag_counts_what_happened_and_what_was_asked(slurm: House) -> None:
    before = counts(slurm)
    done = slurm.submits("-o /dev/null --wrap true")
    bad = slurm.submits("-o /dev/null --wrap 'exit 3'")
    held = slurm.submits("-H -o /dev/null --wrap true")
    slurm.out(f"scancel {held}")
    for job, state in ((done, "COMPLETED"), (bad, "FAILED"), (held, "CANCELLED")):
        slurm.waits_for(job, state)
    after = counts(slurm)

    assert [after[name] - before[name] for name in NAMES] == [3, 2, 1, 1, 1]
    assert after["Total cycles"] > before["Total cycles"]
    assert 0 < after["Mean cycle"] <= after["Max cycle"]
    calls = {name: int(count) for name, _, count, *_ in CALLS.findall(slurm.out("sdiag"))}
    assert calls["REQUEST_SUBMIT_BATCH_JOB"] >= 3
    by_id = [int(number) for _, number, *_ in CALLS.findall(slurm.out("sdiag -i"))]
    assert by_id == sorted(by_id)


def test_sdiag_begins_again(slurm: House) -> None:
    slurm.out(f"scancel {slurm.submits('-H -o /dev/null --wrap true')}")

    assert slurm.out("sdiag -r") == "Reset scheduling statistics\n"
    assert counts(slurm)["Jobs submitted"] == 0


NAMES = ("Jobs submitted", "Jobs started", "Jobs completed", "Jobs canceled", "Jobs failed")


def counts(slurm: House) -> dict[str, int]:
    """The numbers, the first of each name: those of backfill come later."""
    found: dict[str, int] = {}
    for name, number in re.findall(r"^\s*([A-Z][\w ]+): +(\d+)$", slurm.out("sdiag"), re.MULTILINE):
        found.setdefault(name, int(number))
    return found


def test_an_account_takes_jobs_and_bounds_them(slurm: House) -> None:
    slurm.out("sacctmgr -i add account team")
    slurm.out("sacctmgr -i add account small parent=team GrpTRES=gres/gpu=1")
    first = slurm.submits("-A small --gres=gpu:1 -o /dev/null --wrap 'sleep 600'")
    second = slurm.submits("-A team/small --gres=gpu:1 -o /dev/null --wrap true")
    slurm.waits_for(first, "RUNNING")

    slurm.waits_until(lambda: slurm.out(f"squeue -h -j {second} -o %r") == "AssocGrpGRES\n")
    refused = slurm.shell("sacctmgr -i delete account team")
    slurm.out("sacctmgr -i modify account small set GrpTRES=gres/gpu=-1")

    slurm.waits_for(second, "COMPLETED")
    assert "Job(s) active" in refused.err
    assert slurm.out(f"squeue -h -A small -j {first} -o %a") == "team/small\n"
    slurm.out(f"scancel {first}")


def test_there_is_one_truth_which_files_and_commands_change(slurm: House) -> None:
    before = site_text(slurm)
    slurm.out("sacctmgr -i add account ours Fairshare=7")
    slurm.out("sacctmgr -i add qos rush Priority=5 MaxWall=10")
    after = site_text(slurm)

    (slurm.work / "before.yaml").write_text(before)
    slurm.muster("apply", "-f", str(slurm.work / "before.yaml"))

    assert "ours:" in after
    assert "weight: 7" in after
    assert "max_time: 10m" in after
    assert site_text(slurm) == before
    assert "ours" not in slurm.out("sacctmgr -n show account")


def site_text(slurm: House) -> str:
    socket = slurm.root / "home" / "muster.sock"
    return slurm.out(f"curl -s --unix-socket {socket} http://muster/v1/site")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_only_administrators_change_anything(slurm: House) -> None:
    slurm.root.chmod(0o755)
    Path(slurm.root / "home").chmod(0o755)
    nobody = "setpriv --reuid=65534 --clear-groups"

    refused = slurm.shell(f"{nobody} sacctmgr -i add account theirs")
    looked = slurm.shell(f"{nobody} sacctmgr -n show account format=account")

    assert refused.code == 1
    assert "doesn't have privilege" in refused.err
    assert "default" in looked.out.split()
    assert "theirs" not in slurm.out("sacctmgr -n show account format=account").split()
    assert slurm.shell(f"{nobody} sdiag -r").code == 255


def test_what_is_not_offered_says_what_to_use_instead(slurm: House) -> None:
    table = slurm.shell("scrontab -l")
    trigger = slurm.shell("strigger --set --node --down --program=/bin/true")

    assert (table.code, trigger.code) == (1, 1)
    assert "scrontab is disabled on this cluster" in table.err
    assert "let cron call sbatch" in table.err
    assert "muster events -f" in trigger.err
    assert slurm.shell("scrontab --nosuch").err.startswith("scrontab: unrecognized option")


ENTITIES = {
    "account": "Account,Description,Organization,Coordinators",
    "association": "Account,Cluster,DefaultQOS,Fairshare,Share,GrpJobs,GrpJobsAccrue,GrpSubmit,"
    "GrpSubmitJobs,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpWall,ID,LFT,MaxJobs,MaxJobsAccrue,"
    "MaxSubmit,MaxSubmitJobs,MaxTRES,MaxTRESPerJob,MaxTRESMins,MaxTRESMinsPerJob,MaxTRESPerNode,"
    "MaxWall,MaxWallDurationPerJob,Qos,QosRaw,ParentID,ParentName,Partition,Priority,RGT,User",
    "cluster": "Classification,Cluster,ControlHost,ControlPort,Features,Federation,FedState,"
    "FedStateRaw,Flags,ID,NodeCount,NodeNames,PluginIDSelect,RPC,TRES,Fairshare,MaxWall",
    "event": "Cluster,ClusterNodes,Duration,End,Event,EventRaw,NodeName,Reason,Start,State,"
    "StateRaw,TRES,User",
    "federation": "Cluster,Features,Federation,FedState,FedStateRaw,Index",
    "problem": "Cluster,Account,User,Problem",
    "qos": "Description,GraceTime,GrpJobs,GrpJobsAccrue,GrpSubmit,GrpSubmitJobs,GrpTRES,"
    "GrpTRESMins,GrpWall,LimitFactor,MaxJobsAccruePA,MaxJobsAccruePerAccount,MaxJobsAccruePU,"
    "MaxJobsAccruePerUser,MaxJobsPA,MaxJobsPerAccount,MaxJobsPU,MaxJobsPerUser,MaxTRESMins,"
    "MaxTRESMinsPerJob,MaxTRESPA,MaxTRESPerAccount,MaxTRES,MaxTRESPerJob,MaxTRESPerNode,MaxTRESPU,"
    "MaxTRESPerUser,MaxSubmitJobsPA,MaxSubmitJobsPerAccount,MaxSubmitJobsPU,MaxSubmitJobsPerUser,"
    "MaxWall,MaxWallDurationPerJob,MinPrioThreshold,MinTRES,Name,Preempt,PreemptMode,Priority,"
    "UsageFactor,UsageThreshold",
    "reservation": "Associations,Cluster,End,Flags,ID,Name,NodeNames,Start,TRES,UnusedWall",
    "resource": "Allocated,Cluster,Count,Description,Flags,Name,Server,ServerType,Type",
    "runawayjobs": "Cluster,ID,Name,Partition,State,TimeEnd,TimeStart",
    "transactions": "Action,Actor,Info,TimeStamp,Where",
    "tres": "ID,Name,Type",
    "user": "AdminLevel,Coordinators,DefaultAccount,DefaultWCKey,User",
    "wckey": "Cluster,ID,User,WCKey",
}
"""What the manual of Slurm 22.05 says can be shown of each."""


@pytest.mark.parametrize("entity", ENTITIES)
def test_sacctmgr_shows_every_field_that_the_manual_names(shared_slurm: House, entity: str) -> None:
    fields = ENTITIES[entity]

    shown = shared_slurm.out(f"sacctmgr -P show {entity} format={fields}")
    refused = shared_slurm.shell(f"sacctmgr -P show {entity} format={fields},nonsense")

    if entity != "runawayjobs":
        assert len(shown.splitlines()[0].split("|")) == len(fields.split(","))
    assert (refused.code, refused.out, refused.err) == (1, "", "Unknown field 'nonsense'\n")


def test_fields_of_other_entities_are_empty(shared_slurm: House) -> None:
    shown = shared_slurm.out("sacctmgr -nP show qos normal format=name,controlhost,reason")

    assert shown == "normal||\n"


def test_fields_of_a_cluster_go_by_their_other_names(shared_slurm: House) -> None:
    shown = shared_slurm.out("sacctmgr -nP show cluster format=share,fairshare,nodecount")

    share, fairshare, nodes = shown.strip().split("|")
    assert (share, fairshare) == ("1", "1")
    assert int(nodes) > 0


def test_an_account_shows_how_many_jobs_each_of_its_users_may_have(slurm: House) -> None:
    slurm.out("sacctmgr -i add account few MaxSubmitJobs=4")
    slurm.out("sacctmgr -i add user daemon account=few")

    shown = slurm.out("sacctmgr -nP show assoc account=few format=user,maxsubmitjobs")

    assert sorted(shown.split()) == ["daemon|4", "|4"]
