"""Slurm's commands as users type them, against a real daemon and real jobs."""

import json
import os
from pathlib import Path

from doors.slurm.house import House


def test_a_script_with_directives_runs_where_and_as_it_was_asked(slurm: House) -> None:
    (slurm.work / "train.sh").write_text(
        "#!/bin/bash\n"
        '#SBATCH -J "my job" --gres=gpu:2 -c 4\n'
        "#SBATCH -o train-%j.out\n"
        'echo "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_JOB_GPUS $SLURM_CPUS_PER_TASK $1 $PWD"\n'
        'echo "$SLURM_JOB_UID $SLURM_SUBMIT_DIR"\n'
    )

    ran = slurm.shell("sbatch --wait train.sh hello")

    assert (ran.code, ran.err) == (0, "")
    job = ran.out.removeprefix("Submitted batch job ").strip()
    assert (slurm.work / f"train-{job}.out").read_text().splitlines() == [
        f"{job} my job {gpus_of(slurm, job)} 4 hello {slurm.work}",
        f"{os.getuid()} {slurm.work}",
    ]


def test_a_script_may_come_from_stdin(slurm: House) -> None:
    line = "sbatch --parsable --wait -o stdin.out <<'END'\n#!/bin/sh\necho from stdin\nEND"

    assert slurm.out(line).strip().isdigit()
    assert (slurm.work / "stdin.out").read_text() == "from stdin\n"


def test_wait_ends_as_the_job_does(slurm: House) -> None:
    assert slurm.shell("sbatch -Q --wait -o /dev/null --wrap 'exit 3'").code == 3


def test_an_array_is_one_row_while_it_waits_and_one_for_each_part_with_r(slurm: House) -> None:
    array = slurm.submits("-H -J arr --array=0-5%2 -o /dev/null --wrap true")

    together = slurm.out(f"squeue -h -j {array} -o '%i|%F|%K|%t|%r'")
    apart = slurm.out(f"squeue -h -r -j {array} -o %i").split()
    slurm.out(f"scancel '{array}_[1-3]' {array}_5")
    left = slurm.out(f"squeue -h -j {array} -o %i").strip()

    assert together == f"{array}_[0-5%2]|{array}|0-5%2|PD|JobHeldUser\n"
    assert apart == [f"{array}_{index}" for index in range(6)]
    assert left == f"{array}_[0,4%2]"
    slurm.out(f"scancel {array}")
    assert slurm.shell(f"squeue -h -j {array}").out == ""


def test_the_parts_of_an_array_know_who_they_are(slurm: House) -> None:
    slurm.out(
        "sbatch --wait --array=10-30:10 -o arr-%a.txt --wrap "
        "'echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_STEP'"
    )

    texts = [(slurm.work / f"arr-{index}.txt").read_text() for index in (10, 20, 30)]

    assert texts == ["10 3 10\n", "20 3 10\n", "30 3 10\n"]


def test_a_job_waits_for_another_and_for_a_whole_array(slurm: House) -> None:
    first = slurm.submits("-H --array=0-1 -o /dev/null --wrap true")
    second = slurm.submits(f"-d afterok:{first} -o /dev/null --wrap true")

    slurm.waits_until(lambda: "Dependency" in slurm.out(f"squeue -h -j {second} -o %r"))
    slurm.out(f"scontrol release {first}")

    slurm.waits_for(second, "COMPLETED")


def test_an_array_that_is_over_went_well_only_if_all_of_it_did(slurm: House) -> None:
    done = slurm.shell(
        "sbatch --parsable --wait --array=0-1 -o /dev/null --wrap 'exit $SLURM_ARRAY_TASK_ID'"
    )
    array = done.out.strip()

    job = slurm.submits(f"-d afterok:{array} --kill-on-invalid-dep=yes -o /dev/null --wrap true")

    slurm.waits_for(job, "CANCELLED")


def test_a_waiting_job_can_be_made_to_wait_for_one_that_is_over(slurm: House) -> None:
    over = slurm.out("sbatch --parsable --wait -o /dev/null --wrap true").strip()
    job = slurm.submits("-H -o /dev/null --wrap true")

    slurm.out(f"scontrol update JobId={job} Dependency=afterok:{over}")
    slurm.out(f"scontrol release {job}")

    slurm.waits_for(job, "COMPLETED")


def test_the_parts_of_an_array_wait_for_those_with_their_own_index(slurm: House) -> None:
    first = slurm.submits("-H --array=1-3 -o /dev/null --wrap true")
    second = slurm.submits(f"--array=2-4 -d aftercorr:{first} -o /dev/null --wrap true")

    slurm.waits_until(lambda: "Dependency" in slurm.out(f"squeue -h -r -j {second}_2 -o %r"))
    unmet = slurm.out(f"squeue -h -r -j {second}_2 -o %E").strip()
    assert unmet == f"aftercorr:{first}_*(unfulfilled)"

    slurm.out(f"scontrol release {first}_2")
    slurm.waits_for(f"{second}_2", "COMPLETED")
    assert slurm.out(f"squeue -h -r -j {second} -o %K").split() == ["3", "4"]
    slurm.out(f"scontrol release {first}")
    # It has no counterpart, so that it waits for all.
    slurm.waits_for(f"{second}_4", "COMPLETED")


def test_a_job_waits_for_one_of_several(slurm: House) -> None:
    bad = slurm.submits("-o /dev/null --wrap false")
    slurm.waits_for(bad, "FAILED")
    array = slurm.submits("-H --array=0-1 -o /dev/null --wrap true")
    held = slurm.submits("-H -o /dev/null --wrap true")
    job = slurm.submits(
        f"-d 'afterok:{bad}?afterok:{array}?afterok:{held}' -o /dev/null --wrap true"
    )

    slurm.waits_until(lambda: "Dependency" in slurm.out(f"squeue -h -j {job} -o %r"))
    unmet = f"afterok:{bad}(failed)?afterok:{array}_*(unfulfilled)?afterok:{held}(unfulfilled)"
    assert slurm.out(f"squeue -h -j {job} -o '%r %E'") == f"Dependency {unmet}\n"
    assert f"Reason=Dependency Dependency={unmet}\n" in slurm.out(f"scontrol show job {job}")

    slurm.out(f"scontrol update JobId={job} Dependency='afterok:{bad}?afternotok:{held}'")
    slurm.out(f"scancel {array} {held}")
    slurm.waits_for(job, "COMPLETED")


def test_a_job_with_that_option_does_not_wait_for_what_cannot_be(slurm: House) -> None:
    bad = slurm.submits("-o /dev/null --wrap false")
    slurm.waits_for(bad, "FAILED")

    job = slurm.submits(f"-d afterok:{bad} --kill-on-invalid-dep=yes -o /dev/null --wrap true")

    slurm.waits_for(job, "CANCELLED")


def test_hold_release_update_suspend_resume_requeue(slurm: House) -> None:
    job = slurm.submits("--hold -J first -t 30 -o /dev/null --wrap 'sleep 600'")
    slurm.out(f"scontrol update JobId={job} TimeLimit=45 JobName=second Comment=hello")
    shown = slurm.out(f"scontrol show job {job}")
    slurm.out(f"scontrol release {job}")
    slurm.waits_for(job, "RUNNING")
    slurm.out(f"scontrol suspend {job}")
    slurm.waits_for(job, "SUSPENDED")
    slurm.out(f"scontrol resume {job}")
    slurm.waits_for(job, "RUNNING")
    slurm.out(f"scontrol requeue {job}")
    restarts = f"squeue -h -j {job} -O RestartCnt:5,State:20"
    slurm.waits_until(lambda: slurm.out(restarts).split() == ["1", "RUNNING"])
    slurm.out(f"scancel {job}")

    slurm.waits_for(job, "CANCELLED")
    assert f"JobId={job} JobName=second\n" in shown
    assert "TimeLimit=00:45:00" in shown
    assert "   Comment=hello \n" in shown


def test_a_job_that_is_sent_back_and_held_waits_until_it_is_released(slurm: House) -> None:
    job = slurm.submits("-o /dev/null --wrap 'sleep 1000'")
    slurm.waits_until(lambda: slurm.out(f"squeue -h -j {job} -o %T").strip() == "RUNNING")

    slurm.out(f"scontrol requeuehold {job}")

    slurm.waits_until(
        lambda: slurm.out(f"squeue -h -j {job} -o '%T %r'").startswith("PENDING JobHeld")
    )
    slurm.out(f"scontrol release {job}")
    slurm.waits_until(lambda: slurm.out(f"squeue -h -j {job} -o %T").strip() == "RUNNING")
    slurm.out(f"scancel {job}")


def test_scancel_sends_signals_and_follows_filters(slurm: House) -> None:
    trap = "trap 'echo got it; exit 0' USR2; while :; do sleep 0.05; done"
    (slurm.work / "trap.sh").write_text(f"#!/bin/bash\necho ready\n{trap}\n")
    job = slurm.submits("-J trapper -o trap.out trap.sh")
    other = slurm.submits("-J other -H -o /dev/null --wrap true")
    slurm.waits_until(lambda: has(slurm.work / "trap.out", "ready"))

    slurm.out(f"scancel {job} --signal USR2")
    slurm.waits_for(job, "COMPLETED")
    answer = slurm.shell("scancel -v -n other")

    assert has(slurm.work / "trap.out", "got it")
    assert f"scancel: Terminating job {other}\n" in answer.err
    slurm.waits_for(other, "CANCELLED")


def test_sacct_knows_how_jobs_ended(slurm: House) -> None:
    good = slurm.submits("--wait -J good -o /dev/null --wrap true")
    slurm.shell("sbatch --wait -J bad -o /dev/null --wrap 'exit 3'")
    slurm.shell("sbatch --wait -J sig -o /dev/null --wrap 'kill -SEGV $$'")

    answer = slurm.out("sacct -X -n -P -o JobName,State,ExitCode --name good,bad,sig")
    steps = slurm.out(f"sacct -j {good} -j 999999 --parsable2 -o JobID,State")
    table = slurm.out(f"sacct -j {good} -o jobid,jobname%6,state%12,elapsed")

    assert answer.splitlines() == ["good|COMPLETED|0:0", "bad|FAILED|3:0", "sig|FAILED|0:11"]
    assert steps == f"JobID|State\n{good}|COMPLETED\n{good}.batch|COMPLETED\n"
    assert table.splitlines()[:2] == [
        "JobID        JobNam        State    Elapsed ",
        "------------ ------ ------------ ---------- ",
    ]


def test_sinfo_shows_what_is_in_use(slurm: House) -> None:
    job = slurm.submits("--gres=gpu:a100:3 -c 5 -w pretend1 -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(job, "RUNNING")

    lines = slurm.out("sinfo -h -N -n pretend1 -O NodeList:10,StateCompact:6,Gres:12,GresUsed:22")
    cpus = slurm.out("sinfo -h -o %C").strip()
    listed = slurm.out("sinfo -h -o '%P %t %N'")

    assert lines == "pretend1  mix   gpu:a100:4  gpu:a100:3(IDX:0-2)   \n"
    assert cpus == "5/59/0/64"
    assert listed == "local* mix pretend1\nlocal* idle pretend2\n"
    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")


def test_json_has_the_shape_that_clients_read(slurm: House) -> None:
    job = slurm.submits("-H -J shape --gres=gpu:1 -o /dev/null --wrap true")

    jobs = json.loads(slurm.out(f"squeue --json -j {job}"))["jobs"]
    nodes = json.loads(slurm.out("sinfo --json"))["nodes"]

    assert [each["job_state"] for each in jobs] == ["PENDING"]
    assert (jobs[0]["name"], jobs[0]["tres_per_node"]) == ("shape", "gres:gpu:1")
    assert [(each["name"], each["state"]) for each in nodes] == [
        ("pretend1", "idle"),
        ("pretend2", "idle"),
    ]
    slurm.out(f"scancel {job}")


def test_the_script_of_a_job_can_be_had_again(slurm: House) -> None:
    job = slurm.submits("-H --wrap 'echo kept'")

    assert slurm.out(f"scontrol write batch_script {job} -").endswith("\necho kept\n")
    slurm.out(f"scancel {job}")


def test_without_a_server_the_commands_say_so(slurm: House) -> None:
    ran = slurm.shell("sbatch --wrap true", MUSTER_HOME="/nonexistent")

    assert ran.code == 1
    assert ran.err.startswith(
        "sbatch: error: Batch job submission failed: "
        "Unable to contact slurm controller (connect failure)\n"
    )


def gpus_of(slurm: House, job: str) -> str:
    """Two GPUs next to each other, wherever they are."""
    text = slurm.out(f"sacct -X -n -P -j {job} -o AllocGRES").strip()
    assert text == "gpu:2"
    written = (slurm.work / f"train-{job}.out").read_text().split()
    return written[3]


def has(path: Path, text: str) -> bool:
    return path.exists() and text in path.read_text()


def test_a_listing_shows_what_changed_since_the_last_one(slurm: House) -> None:
    job = slurm.submits("-H -J before -o /dev/null --wrap true")
    line = f"squeue -h -j {job} -o '%i %j %T %r %P'"

    first = slurm.out(line)
    slurm.out(f"scontrol update JobId={job} JobName=after")
    second = slurm.out(line)
    slurm.out(f"scontrol update JobId={job} StartTime=now+1hour")
    slurm.out(f"scontrol release {job}")
    slurm.waits_until(lambda: "BeginTime" in slurm.out(line))
    slurm.out(f"scancel {job}")

    assert first.split()[:4] == [job, "before", "PENDING", "JobHeldUser"]
    assert second.split()[:4] == [job, "after", "PENDING", "JobHeldUser"]
    assert slurm.shell(line).out == ""


def test_a_script_without_an_environment_finds_the_commands(slurm: House) -> None:
    line = "sbatch --parsable -W --export=NONE -o none.txt --wrap 'srun echo $SLURM_JOB_ID $MINE'"
    job = slurm.out(line, MINE="mine").strip()

    assert (slurm.work / "none.txt").read_text() == f"{job}\n"
