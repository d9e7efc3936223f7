import json
from typing import Any

from clients.desk import SCRIPTS, Desk


def test_reframe_checks_the_site_with_sacct_squeue_and_srun(desk: Desk) -> None:
    ran = reframe(desk, "Gpus", "muster")

    assert ran["num_failures"] == 0
    cases = {case["partition"]: case for case in ran["testcases"]}
    assert sorted(cases) == ["sacct", "squeue", "steps"]
    assert {case["result"] for case in cases.values()} == {"pass"}
    assert cases["sacct"]["job_completion_time"] is not None
    assert cases["sacct"]["job_nodelist"][0] in {"pretend1", "pretend2"}


def test_reframe_sees_a_job_that_fails(desk: Desk) -> None:
    ran = reframe(desk, "Fails", "muster:sacct")

    assert ran["num_failures"] == 1
    [case] = ran["testcases"]
    assert case["fail_phase"] == "sanity"
    assert "3 != 0" in case["fail_reason"]
    assert desk.state(case["jobid"]) == "FAILED"


def reframe(desk: Desk, name: str, system: str) -> dict[str, Any]:
    site, checks = SCRIPTS / "reframe_site.py", SCRIPTS / "reframe_checks.py"
    report = desk.folder / "report.json"
    options = ("-C", str(site), "-c", str(checks), "--report-file", str(report), "--system", system)
    desk.tries("reframe", *options, "--name", name, "-r")
    return json.loads(report.read_text(encoding="utf-8"))["runs"][-1]
