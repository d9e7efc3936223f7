from pathlib import Path

from bench._musters import environ_of, percentile
from bench.api import rows
from bench.slurm.installing import PROGRAMS, missing
from bench.throughput import best


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(each) for each in range(1, 101)]

    assert percentile(values, 50) == 50
    assert percentile(values, 99) == 99
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0
    assert percentile([5.0], 50) == 5.0


def test_each_system_is_taken_by_the_way_that_is_best_for_it() -> None:
    taken, ways = best(
        {
            "muster": {"client": [1.0, 3.0, 2.0]},
            "slurm": {"sbatch": [9.0, 9.0, 9.0], "slurmrestd": [4.0, 30.0, 5.0]},
        }
    )

    assert taken == {"muster": 2.0, "slurm": 5.0}
    assert ways == {"muster": "client", "slurm": "slurmrestd"}


def test_rows_of_the_api_put_the_p99_beside_the_bar() -> None:
    found = rows({"submit": [1.0] * 99 + [50.0]})

    assert found == [
        {"metric": "submit p99, ms", "value": 1.0, "bar": 100, "p50": 1.0, "max": 50.0}
        | {"samples": 100}
    ]


def test_what_is_missing_is_what_no_folder_of_the_path_has(tmp_path: Path) -> None:
    for name in PROGRAMS[1:]:
        (tmp_path / name).touch()

    assert missing(f":{tmp_path}") == (PROGRAMS[0],)


def test_a_muster_that_is_measured_finds_no_settings_of_python_but_its_bytecode(
    tmp_path: Path,
) -> None:
    found = environ_of(tmp_path)

    python = {name for name in found if name.startswith("PYTHON")}
    assert python == {"PYTHONPYCACHEPREFIX"}
    assert found["MUSTER_HOME"] == str(tmp_path)
