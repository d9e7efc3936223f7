"""Mail about jobs of every kind, by a small program that writes down what it was given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from doors.slurm.house import House, house

PROGRAM = """\
#!/bin/sh
[ "$1" = -s ] || exit 1
cat > "{root}/body for $3"
env | grep '^SLURM_' > "{root}/variables of $3"
echo "$3: $2" >> {root}/sent
"""

ALL = "--mail-type=ALL,TIME_LIMIT"


@pytest.fixture(scope="module")
def slurm() -> Iterator[House]:
    with house() as found:
        path = found.root / "send mail"
        path.write_text(PROGRAM.format(root=found.root), encoding="utf-8")
        path.chmod(0o755)
        found.muster("down")
        found.muster("up", "--mail-program", str(path))
        yield found


def sent(slurm: House, to: str) -> list[str]:
    """The subjects of what this one was sent."""
    path = slurm.root / "sent"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line.removeprefix(f"{to}: ") for line in lines if line.startswith(f"{to}: ")]


def waits_for(slurm: House, to: str, *subjects: str) -> None:
    """Until exactly this was sent; runs may have taken a second."""

    def has_come() -> bool:
        return len(sent(slurm, to)) >= len(subjects)

    slurm.waits_until(has_come)
    found = [_without_times(each) for each in sent(slurm, to)]
    assert found == list(subjects)


def _without_times(subject: str) -> str:
    words = subject.split(", ")
    return ", ".join(word for word in words if not word.startswith(("Run time", "Queued time")))


def test_a_job_that_goes_well_begins_and_ends(slurm: House) -> None:
    job = slurm.submits(f"{ALL} --mail-user=well@x -J well -o /dev/null --wrap true")

    name = f"Slurm Job_id={job} Name=well"
    waits_for(slurm, "well@x", f"{name} Began", f"{name} Ended, COMPLETED, ExitCode 0")
    began, ended = sent(slurm, "well@x")
    assert "Began, Queued time 00:00:0" in began
    assert "Ended, Run time 00:00:0" in ended


def test_the_program_learns_about_the_job(slurm: House) -> None:
    job = slurm.submits(
        "--mail-type=FAIL --mail-user=mailed@x -J mailed -o %x.out --comment=so --wrap 'exit 3'"
    )
    waits_for(slurm, "mailed@x", f"Slurm Job_id={job} Name=mailed Failed, FAILED, ExitCode 3")

    lines = (slurm.root / "variables of mailed@x").read_text(encoding="utf-8").splitlines()

    variables = dict(line.split("=", 1) for line in lines)
    assert (variables["SLURM_JOB_ID"], variables["SLURM_JOB_NAME"]) == (job, "mailed")
    assert (variables["SLURM_JOB_MAIL_TYPE"], variables["SLURM_JOB_STATE"]) == ("Failed", "FAILED")
    assert (variables["SLURM_JOB_EXIT_CODE2"], variables["SLURM_JOB_COMMENT"]) == ("3:0", "so")
    assert variables["SLURM_JOB_STDOUT"] == str(slurm.work / "mailed.out")
    assert variables["SLURM_JOB_NODELIST"].startswith("pretend")


def test_who_asks_for_the_end_alone_hears_nothing_of_failures(slurm: House) -> None:
    bad = slurm.submits("--mail-type=END --mail-user=end@x -o /dev/null --wrap 'exit 3'")
    slurm.waits_for(bad, "FAILED")
    good = slurm.submits("--mail-type=END --mail-user=end@x -J g -o /dev/null --wrap true")

    waits_for(slurm, "end@x", f"Slurm Job_id={good} Name=g Ended, COMPLETED, ExitCode 0")


def test_a_job_without_an_address_writes_to_its_user(slurm: House) -> None:
    job = slurm.submits("--mail-type=BEGIN -J mine -o /dev/null --wrap true")
    user = slurm.out("id -un").strip()

    slurm.waits_until(lambda: any(f"Job_id={job} " in each for each in sent(slurm, user)))


def test_a_requeued_job_begins_twice_and_is_cancelled(slurm: House) -> None:
    job = slurm.submits(f"{ALL} --mail-user=again@x -J again -o /dev/null --wrap 'sleep 100'")
    slurm.waits_for(job, "RUNNING")
    slurm.out(f"scontrol requeue {job}")
    slurm.waits_until(lambda: "Restarts=1" in slurm.out(f"scontrol show job {job}"))
    slurm.waits_for(job, "RUNNING")
    slurm.out(f"scancel {job}")

    name = f"Slurm Job_id={job} Name=again"
    waits_for(
        slurm,
        "again@x",
        f"{name} Began",
        f"{name} Requeued",
        f"{name} Began",
        f"{name} Ended, CANCELLED, ExitCode 0",
    )


def test_parts_of_a_jobs_time_are_announced(slurm: House) -> None:
    given = "--time 3s --mail-type time_limit,time_limit_50,time_limit_80,time_limit_90,fail"
    line = f"submit --quiet --name slow {given} --mail-user=slow@x --output /dev/null -- sleep 100"
    job = slurm.muster(*line.split()).strip()

    name = f"Slurm Job_id={job} Name=slow"
    waits_for(
        slurm,
        "slow@x",
        f"{name} Reached 50% of time limit",
        f"{name} Reached 80% of time limit",
        f"{name} Reached 90% of time limit",
        f"{name} Reached time limit",
        f"{name} Failed, TIMEOUT, ExitCode 0",
    )


def test_an_array_is_announced_as_a_whole(slurm: House) -> None:
    line = f"{ALL} --mail-user=array@x -J a -a 1-3 -o /dev/null"
    job = slurm.submits(f"{line} --wrap 'exit $((SLURM_ARRAY_TASK_ID - 1))'")

    name = f"Slurm Array Summary Job_id={job}_* ({job}) Name=a"
    waits_for(slurm, "array@x", f"{name} Began", f"{name} Failed, Mixed, ExitCode [0-2]")


def test_each_part_of_an_array_is_announced_where_that_is_wanted(slurm: House) -> None:
    line = "--mail-type=END,ARRAY_TASKS --mail-user=parts@x -J p -a 4,7%1 -o /dev/null --wrap true"
    job = slurm.submits(line)

    waits_for(
        slurm,
        "parts@x",
        f"Slurm Array Task Job_id={job}_4 ({job}) Name=p Ended, COMPLETED, ExitCode 0",
        f"Slurm Array Task Job_id={job}_7 ({int(job) + 1}) Name=p Ended, COMPLETED, ExitCode 0",
    )


def test_a_job_whose_dependency_cannot_come_true_says_so(slurm: House) -> None:
    first = slurm.submits("-H --wrap true")
    job = slurm.submits(f"-d afterok:{first} {ALL} --mail-user=dep@x -J d -o /dev/null --wrap true")
    slurm.out(f"scancel {first}")

    waits_for(slurm, "dep@x", f"Slurm Job_id={job} Name=d Invalid dependency")
    slurm.out(f"scancel {job}")


@pytest.mark.parametrize("command", ["srun", "salloc"])
def test_jobs_of_srun_and_salloc_are_announced_too(slurm: House, command: str) -> None:
    to = f"{command}@x"
    ran = slurm.shell(f"{command} --mail-type=BEGIN,END --mail-user={to} -J {command} true")

    assert (ran.code, "mail" in ran.err) == (0, False)
    slurm.waits_until(lambda: len(sent(slurm, to)) == 2)
    began, ended = sent(slurm, to)
    assert f"Name={command} Began" in began
    assert "COMPLETED, ExitCode 0" in ended


def test_when_and_to_whom_can_be_changed(slurm: House) -> None:
    job = slurm.submits("--mail-type=ALL --mail-user=old@x -J c -o /dev/null --wrap 'sleep 100'")
    slurm.waits_for(job, "RUNNING")
    shown = slurm.out(f"scontrol show job {job}")
    assert "MailUser=old@x MailType=INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT" in shown

    slurm.out(f"scontrol update JobId={job} MailType=END,TIME_LIMIT_80 MailUser=new@x")
    shown = slurm.out(f"scontrol show job {job}")
    slurm.out(f"scancel {job}")

    assert "MailUser=new@x MailType=END,TIME_LIMIT_80\n" in shown
    waits_for(slurm, "new@x", f"Slurm Job_id={job} Name=c Ended, CANCELLED, ExitCode 0")
    waits_for(slurm, "old@x", f"Slurm Job_id={job} Name=c Began")


def test_a_change_that_cannot_be_read_is_refused(slurm: House) -> None:
    job = slurm.submits("-H --mail-type=END --wrap true")

    bogus = slurm.shell(f"scontrol update JobId={job} MailType=bogus")
    evil = slurm.shell(f"scontrol update JobId={job} 'MailUser=|reboot'")
    slurm.out(f"scontrol update JobId={job} MailType=NONE")

    assert (bogus.code, bogus.err) == (1, "Invalid MailType: bogus\n")
    assert (evil.code, evil.err) == (1, f"Invalid mail user for job {job}\n")
    assert "Mail" not in slurm.out(f"scontrol show job {job}")
    slurm.out(f"scancel {job}")


@pytest.mark.parametrize(
    ("lines", "subjects"),
    [
        ("#PBS -m be -M foreign@x -o /dev/null -j oe", ["Began", "Ended"]),
        ("#BSUB -N -u foreign@x -o /dev/null", ["Ended"]),
    ],
)
def test_scripts_of_other_systems_are_mailed_about(
    slurm: House, lines: str, subjects: list[str]
) -> None:
    script = slurm.work / "foreign.sh"
    script.write_text(f"#!/bin/sh\n{lines}\ntrue\n", encoding="utf-8")
    before = len(sent(slurm, "foreign@x"))

    job = slurm.muster("submit", "--quiet", str(script)).strip()

    slurm.waits_until(lambda: len(sent(slurm, "foreign@x")) - before == len(subjects))
    found = sent(slurm, "foreign@x")[before:]
    expected = [f"Slurm Job_id={job} Name=foreign.sh {each}" for each in subjects]
    assert [each.split(",")[0] for each in found] == expected


def test_configuration_names_the_program(slurm: House) -> None:
    shown = slurm.out("scontrol show config")

    assert f"MailProg                = {slurm.root}/send mail\n" in shown


def test_what_ends_while_muster_is_down_is_announced_when_it_is_up_again(slurm: House) -> None:
    gate = slurm.root / "work" / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.02; done; touch {gate}.passed"
    line = f"--mail-type=ALL --mail-user=down@x -J down -o /dev/null --wrap '{wait}'"
    job = slurm.submits(line)
    name = f"Slurm Job_id={job} Name=down"
    waits_for(slurm, "down@x", f"{name} Began")

    slurm.muster("down")
    gate.touch()
    slurm.waits_until(lambda: Path(f"{gate}.passed").exists())
    slurm.muster("up")

    waits_for(slurm, "down@x", f"{name} Began", f"{name} Ended, COMPLETED, ExitCode 0")


def test_without_a_program_one_warning_says_that_no_mail_is_sent(slurm: House) -> None:
    slurm.muster("down")
    slurm.muster("up", "--mail-program", "none")

    line = "-o /dev/null --mail-type=END --mail-user=nobody@x --wrap true"
    batch = slurm.shell(f"sbatch {line}")
    silent = slurm.shell("sbatch -o /dev/null --mail-user=nobody@x --wrap true")
    step = slurm.shell("srun --mail-type=END true")

    warning = (
        "warning: No mail will be sent: Muster has no mail program. "
        "An administrator can name one: muster up --mail-program PROGRAM.\n"
    )
    assert (batch.code, batch.err) == (0, f"sbatch: {warning}")
    assert (silent.code, silent.err) == (0, "")
    # On a busy machine srun also says that its job waits.
    assert step.code == 0
    assert step.err.startswith(f"srun: {warning}")
    assert step.err.count("mail") == warning.count("mail")
    assert "MailProg                = (null)\n" in slurm.out("scontrol show config")
    slurm.muster("down")
    slurm.muster("up", "--mail-program", str(slurm.root / "send mail"))
