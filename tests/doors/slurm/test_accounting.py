"""Steps and what they use, with real steps of real jobs."""

import json
import re

from doors.slurm.house import House


def test_steps_are_rows_below_their_job(slurm: House) -> None:
    job = slurm.submits(
        "-n 2 --gres=gpu:1 --wait --wrap 'srun -n2 hostname; srun -n1 false; srun -n1 -J mine true'"
    )

    shown = slurm.out(f"sacct -n -P -j {job} -o JobID,JobName,State,ExitCode,NTasks,User")
    derived = slurm.out(f"sacct -n -X -P -j {job} -o DerivedExitCode").strip()
    one = slurm.out(f"sacct -n -P -j {job}.1 -o JobID")
    two = slurm.out(f"sacct -n -P -j {job}.batch,{job}.2 -o JobID")

    assert shown.splitlines() == [
        f"{job}|wrap|COMPLETED|0:0||root",
        f"{job}.batch|batch|COMPLETED|0:0|1|",
        f"{job}.0|hostname|COMPLETED|0:0|2|",
        f"{job}.1|false|FAILED|1:0|1|",
        f"{job}.2|mine|COMPLETED|0:0|1|",
    ]
    assert derived == "1:0"
    assert one.split() == [f"{job}.1"]
    assert two.split() == [f"{job}.batch", f"{job}.2"]


def test_srun_and_salloc_have_no_script(slurm: House) -> None:
    slurm.out("srun -J unscripted true")
    slurm.out("salloc -J roomy true")

    shown = slurm.out("sacct -n -P -o JobID --name unscripted,roomy").split()

    assert [name.partition(".")[2] for name in shown] == ["", "0", ""]


def test_a_job_that_ends_takes_its_steps_along(slurm: House) -> None:
    job = slurm.submits("--wrap 'srun sleep 100'")
    slurm.waits_until(lambda: f"{job}.0" in slurm.out("squeue -h -s -o %i").split())

    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")

    shown = slurm.out(f"sacct -n -P -j {job} -o JobID,State").splitlines()
    assert shown[0].startswith(f"{job}|CANCELLED by ")
    assert shown[1:] == [f"{job}.batch|CANCELLED", f"{job}.0|CANCELLED"]
    assert f"{job}.0" not in slurm.out("squeue -h -s -o %i").split()


def test_running_steps_are_listed_and_measured(slurm: House) -> None:
    job = slurm.submits("-n 2 --wrap 'srun -n2 -J mine sleep 100'")
    slurm.waits_until(lambda: f"{job}.0" in slurm.out("squeue -h -s -o %i").split())

    listed = slurm.out(f"squeue -h -s -j {job} -o '%i|%j|%P|%u|%A|%l'").splitlines()
    named = slurm.out(f"squeue -h -s {job}.0 -O StepID:.12,NumTasks:.4,StepState:.10").split()
    measure = f"sstat -n -P -j {job} -o JobID,NTasks,MaxRSS,AveRSS,Pids"
    # A step is listed when its first task is started.
    slurm.waits_until(lambda: "," in slurm.out(measure))
    first = slurm.out(measure)
    both = slurm.out(f"sstat -a -n -P -j {job} -o JobID")
    slurm.out(f"scancel {job}")

    assert listed == [
        f"{job}.batch|batch|local|root|1|UNLIMITED",
        f"{job}.0|mine|local|root|2|UNLIMITED",
    ]
    assert named == [f"{job}.0", "2", "RUNNING"]
    assert re.fullmatch(rf"{job}\.0\|2\|[1-9]\d*K\|[1-9]\d*K\|\d+,\d+\n", first)
    assert both.split() == [f"{job}.batch", f"{job}.0"]


def test_sstat_says_what_it_cannot_look_at(slurm: House) -> None:
    over = slurm.submits("--wait --wrap true")

    asked = {
        "sstat": "sstat: error: You didn't give me any jobs to stat.",
        f"sstat -j {over}": f"sstat: error: No steps running for job {over}",
        f"sstat -j {over}.0": f"sstat: error: StepId={over}.0 not found running.",
        "sstat -j x": "sstat: fatal: Bad job/step specified: x",
        "sstat -j 1.x": "sstat: fatal: Bad step specified: 1",
        "sstat -j 1 -o nosuch": 'sstat: error: Invalid field requested: "nosuch"',
    }

    assert {line: slurm.shell(line).err.strip() for line in asked} == asked


def test_what_a_script_used_is_counted(slurm: House) -> None:
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    job = slurm.submits(f"--wait --wrap '{busy}'")

    shown = slurm.out(f"sacct -n -P -j {job} -o TotalCPU,UserCPU,SystemCPU,MaxRSS,TRESUsageInTot")
    whole, script = (line.split("|") for line in shown.splitlines())

    assert whole[:3] == script[:3]
    assert script[0] != "00:00:00"
    assert re.fullmatch(r"cpu=\d\d:\d\d:\d\d,fs/disk=\d+,mem=\w+,pages=\d+", script[4])
    assert whole[3:] == ["", ""]


def test_each_attempt_is_a_record(slurm: House) -> None:
    job = slurm.submits("--wrap 'sleep 100'")
    slurm.waits_for(job, "RUNNING")
    slurm.out(f"scontrol requeue {job}")
    slurm.waits_until(lambda: "1" in slurm.out(f"sacct -n -X -P -D -j {job} -o restarts").split())
    slurm.waits_for(job, "RUNNING")
    slurm.out(f"scancel {job}")
    slurm.waits_for(job, "CANCELLED")

    every = slurm.out(f"sacct -n -P -D -j {job} -o State,ExitCode").split()
    last = slurm.out(f"sacct -n -X -P -j {job} -o State").splitlines()

    assert every[:2] == ["REQUEUED|0:0", "CANCELLED|0:15"]
    assert len(last) == 1
    assert last[0].startswith("CANCELLED by ")


def test_json_has_the_shape_that_clients_read(slurm: House) -> None:
    line = "sbatch --parsable -J shaped --mem=64M --wait --wrap 'srun true; exit 3'"
    job = slurm.shell(line).out.strip()

    answer = json.loads(slurm.out(f"sacct --json -j {job}"))

    assert answer["meta"]["plugin"]["type"] == "openapi/dbv0.0.38"
    assert answer["errors"] == []
    (shown,) = answer["jobs"]
    assert shown["state"] == {"current": "FAILED", "reason": "None"}
    assert shown["exit_code"] == {"status": "ERROR", "return_code": 3}
    assert shown["required"] == {"CPUs": 1, "memory": 64}
    assert shown["working_directory"] == str(slurm.work)
    assert [each["step"]["id"] for each in shown["steps"]] == ["batch", 0]
    assert sorted(shown) == KEYS
    assert sorted(shown["steps"][0]) == STEP_KEYS


KEYS = sorted(
    "account comment allocation_nodes array association cluster constraints container "
    "derived_exit_code time exit_code flags group het job_id name mcs nodes partition priority qos "
    "required kill_request_user reservation state steps tres user wckey working_directory".split()
)
STEP_KEYS = sorted(
    "nodes tres time exit_code tasks pid CPU kill_request_user state statistics step task".split()
)
