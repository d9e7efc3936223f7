import csv
import shutil

from clients.desk import EXAMPLES, Desk

EAGER = ("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1")


def test_snakemake_runs_rules_with_gpus_and_reports_how_efficient_they_were(desk: Desk) -> None:
    shutil.copy(EXAMPLES / "snakemake" / "Snakefile", desk.folder)
    report = ("--slurm-efficiency-report", "--slurm-efficiency-report-path", ".")
    wanted = ("--jobs", "10", "--default-resources", "slurm_partition=local")

    desk.uses("snakemake", "--executor", "slurm", *wanted, *EAGER, *report)

    made = [line.split() for line in desk.text("total.txt").splitlines()]
    assert [line[0] for line in made] == ["a", "b", "c"]
    assert {line[3] for line in made} <= {"0", "1", "2", "3"}
    assert {line[5] for line in made} == {"2"}
    [efficiency] = desk.folder.glob("efficiency_report_*.csv")
    rows = list(csv.DictReader(efficiency.read_text(encoding="utf-8").splitlines()))
    assert sorted(row["RuleName"] for row in rows) == [
        "rule_count_wildcards_a",
        "rule_count_wildcards_b",
        "rule_count_wildcards_c",
        "rule_total",
    ]
    jobs = [row["MainJobID"] for row in rows]
    assert [desk.state(job) for job in jobs] == ["COMPLETED"] * 4
