from clients.desk import SCRIPTS, Desk


def test_hydra_sweeps_over_parameters_with_an_array(desk: Desk) -> None:
    wanted = [
        "hydra/launcher=submitit_slurm",
        "hydra.launcher.partition=local",
        "hydra.launcher.timeout_min=5",
    ]

    desk.uses(desk.python, str(SCRIPTS / "hydra_sweep.py"), "-m", *wanted, "+rate=0.1,0.2,0.3")

    done = sorted(file.read_text() for file in desk.folder.glob("multirun/*/*/*/done.txt"))
    assert done == ["0.1 0\n", "0.2 1\n", "0.3 2\n"]
