"""`scontrol` against a real daemon: what it changes holds everywhere, and lists agree."""

import os
import pty
import re
import subprocess

import pytest

from doors.slurm.house import House, masked

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="who reserves is an administrator")


def test_many_jobs_are_written_as_each_of_them_is(slurm: House) -> None:
    plain = [slurm.submits("-H -J alike -t 10 -o /dev/null --wrap true") for _ in range(3)]
    other = slurm.submits("-H -J alike -t 10 -c 2 --comment=other --wrap true")
    ids = [*plain, other]

    together = masked(slurm.out("scontrol show jobs"), slurm.root)
    apart = [masked(slurm.out(f"scontrol show job {job}"), slurm.root) for job in ids]

    assert all(each in together for each in apart)
    assert [re.findall(r"JobId=(\d+) ", each) for each in apart] == [[job] for job in ids]
    assert "Comment=other" in apart[-1]
    slurm.out(f"scancel {' '.join(ids)}")


def test_a_reservation_is_a_rule_of_the_site_and_stands_in_its_file(slurm: House) -> None:
    slurm.out(
        "scontrol create reservation ReservationName=demo StartTime=now+1hour Duration=60 "
        "Nodes=pretend2 Users=root Flags=MAINT"
    )

    kept = slurm.muster("site")
    slurm.out("scontrol delete ReservationName=demo")

    assert re.search(r"name: demo\n.*nodes: \[pretend2\]", kept, re.DOTALL)
    assert "users: [root]" in kept
    assert "by_name: true" in kept
    assert "demo" not in slurm.muster("site")


def test_what_a_file_reserves_is_shown_by_scontrol(slurm: House) -> None:
    before = slurm.muster("site")
    reserved = (
        "\nreservations:\n"
        "  - name: repair\n"
        "    nodes: [pretend1]\n"
        "    from: 2099-01-01T00:00:00Z\n"
        "    to: 2099-01-02T00:00:00Z\n"
    )
    (slurm.work / "with.yaml").write_text(before + reserved)
    (slurm.work / "without.yaml").write_text(before)

    slurm.muster("apply", "-f", "with.yaml")
    shown = slurm.out("scontrol -o show reservation repair")
    slurm.muster("apply", "-f", "without.yaml")

    assert shown.startswith(
        "ReservationName=repair StartTime=2099-01-01T00:00:00 EndTime=2099-01-02T00:00:00 "
        "Duration=1-00:00:00 Nodes=pretend1 NodeCnt=1 "
    )


def test_a_reservation_comes_back_and_is_flexible_by_its_flags(slurm: House) -> None:
    slurm.out(
        "scontrol create reservation ReservationName=daily StartTime=now+1hour Duration=60 "
        "Nodes=pretend2 Users=root Flags=DAILY,FLEX,MAGNETIC",
        TZ="Europe/Berlin",
    )
    kept = slurm.muster("site")
    shown = slurm.out("scontrol show reservation daily")
    slurm.out("scontrol update ReservationName=daily Flags-=FLEX")
    slurm.out("scontrol update ReservationName=daily Flags=WEEKDAY")
    changed = slurm.out("scontrol show reservation daily")
    slurm.out("scontrol delete ReservationName=daily")

    assert "every: daily\n    zone: Europe/Berlin\n    flexible: true" in kept
    assert "Flags=FLEX,DAILY,SPEC_NODES,MAGNETIC" in shown
    assert "Flags=WEEKDAY,SPEC_NODES,MAGNETIC" in changed


def test_who_changes_a_reservation_that_comes_back_means_the_window_that_is_shown(
    slurm: House,
) -> None:
    before = slurm.muster("site")
    reserved = (
        "\nreservations:\n"
        "  - name: nightly\n"
        "    nodes: [pretend1]\n"
        "    users: [root]\n"
        "    every: daily\n"
        "    from: 2020-01-01T00:00:00Z\n"
        "    to: 2020-01-01T01:00:00Z\n"
    )
    (slurm.work / "daily.yaml").write_text(before + reserved)
    slurm.muster("apply", "-f", "daily.yaml")
    shown = slurm.out("scontrol -o show reservation nightly")

    slurm.out("scontrol update ReservationName=nightly Duration+=30")
    changed = slurm.out("scontrol -o show reservation nightly")
    slurm.out("scontrol delete ReservationName=nightly")

    start = re.search(r"StartTime=(\S+)", shown)
    assert start is not None
    assert not start[1].startswith("2020")
    assert start[1].endswith("T00:00:00")
    assert "Duration=01:00:00" in shown
    assert f"StartTime={start[1]}" in changed
    assert "Duration=01:30:00" in changed


def test_a_job_that_asked_for_a_reservation_is_ended_with_it(slurm: House) -> None:
    slurm.out(
        "scontrol create reservation ReservationName=short StartTime=now Duration=60 "
        "Nodes=pretend2 Users=root"
    )
    job = slurm.submits("--reservation=short -t 120 -o /dev/null --wrap 'sleep 600'")
    slurm.waits_for(job, "RUNNING")

    slurm.out("scontrol update ReservationName=short EndTime=now+1")

    slurm.waits_for(job, "TIMEOUT")
    assert slurm.out(f"squeue -h -t all -j {job} -o '%T %r'") == "TIMEOUT TimeLimit\n"
    slurm.out("scontrol delete ReservationName=short")


def test_a_partition_is_for_groups_of_the_system(slurm: House) -> None:
    before = slurm.out("scontrol show partition local")
    slurm.out("scontrol update PartitionName=local AllowGroups=daemon")
    shown = slurm.out("scontrol show partition local")
    listed = slurm.out("sinfo -h -p local -o %g")
    kept = slurm.muster("site")
    inside = slurm.submits("-H --uid=daemon -D / -o /dev/null --wrap true")
    mine = slurm.submits("-H -o /dev/null --wrap true")
    outside = slurm.shell("sbatch -p local --uid=nobody -D / --wrap true")
    slurm.out("scontrol update PartitionName=local AllowGroups=ALL")
    slurm.out(f"scancel {inside} {mine}")

    assert "AllowGroups=daemon AllowAccounts=ALL" in shown
    assert listed.split() == ["daemon"]
    assert "groups: [daemon]" in kept
    assert outside.code == 1
    assert outside.err == (
        "sbatch: error: Batch job submission failed: "
        "User's group not permitted to use this partition\n"
    )
    assert slurm.out("scontrol show partition local") == before


def test_snakemake_finds_how_long_jobs_are_remembered(slurm: House) -> None:
    config = slurm.out("scontrol show config")

    assert re.search(r"^MinJobAge\s+= 300 sec$", config, re.MULTILINE)
    assert re.search(r"^SLURM_VERSION\s+= 22\.05\.8$", config, re.MULTILINE)


def test_words_are_typed_on_a_terminal_until_quit(slurm: House) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["scontrol"],  # noqa: S607 -- the one on the PATH is meant
        stdin=theirs,
        stdout=subprocess.PIPE,
        env=slurm.environ,
        text=True,
    ) as console:
        os.write(ours, b"version\nshow hostnames n[1-2]\nquit\n")
        said, _ = console.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)

    assert said == "scontrol: slurm-wlm 22.05.8\nscontrol: n1\nn2\nscontrol: "
    assert console.returncode == 0
