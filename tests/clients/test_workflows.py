"""Programs that submit many small jobs, each when those before it are done."""

from clients.desk import SCRIPTS, Desk


def test_toil_runs_a_workflow_with_gpus(desk: Desk) -> None:
    answer = desk.runs("toil_workflow.py")

    assert answer["total"] == "5"
    assert [desk.state(job) for job in answer["jobs"].split()] == ["COMPLETED"] * 3


def test_signac_flow_submits_each_operation_once(desk: Desk) -> None:
    script = str(SCRIPTS / "signac_project.py")

    def squares() -> list[str]:
        return sorted(file.read_text() for file in desk.folder.glob("workspace/*/square.txt"))

    desk.slurm.out("scontrol update NodeName=pretend[1-2] State=DRAIN Reason=test")
    desk.uses(desk.python, script, "submit")
    desk.uses(desk.python, script, "submit")
    waiting = desk.slurm.out("squeue -h -o %t").split()
    seen = desk.uses(desk.python, script, "status").out
    desk.slurm.out("scontrol update NodeName=pretend[1-2] State=RESUME")
    desk.slurm.waits_until(lambda: squares() == ["16", "9"])

    assert waiting == ["PD", "PD"]
    assert "[Q]: 2" in seen
