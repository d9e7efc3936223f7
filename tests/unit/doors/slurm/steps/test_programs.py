import pytest

from muster.doors.slurm.steps.programs import programs
from muster.doors.slurm.words.errors import SlurmError


def test_each_task_has_the_program_of_its_line() -> None:
    text = "# tasks\n0 master %t\n1-2,4 worker --rank %t:%o 'two words'\n3 spare \\\n  more\n"

    assert programs(text, ("file",), 5) == (
        ("master", "0"),
        ("worker", "--rank", "1:0", "two words"),
        ("worker", "--rank", "2:1", "two words"),
        ("spare", "more"),
        ("worker", "--rank", "4:2", "two words"),
    )


def test_a_star_is_for_all_and_words_behind_the_file_for_everybody() -> None:
    assert programs("* echo %t", ("file", "more"), 2) == (
        ("echo", "0", "more"),
        ("echo", "1", "more"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 echo", "Configuration file f invalid, no record for task id 1"),
        ("0-2 echo", "Invalid task id, 2 >= ntasks"),
        ("x echo", "Line 1 of configuration file f invalid"),
        ("0,1", "Line 1 of configuration file f invalid"),
        ("0 'echo", "Line 1 of configuration file f invalid"),
    ],
)
def test_what_is_wrong_is_said_in_slurms_words(text: str, message: str) -> None:
    with pytest.raises(SlurmError) as error:
        programs(text, ("f",), 2)

    assert message in error.value.text
