import click
import pytest

from muster.doors.cli.submit.document import environment, pairs

SHELL = {"PATH": "/bin", "HOME": "/home/alice", "MUSTER_TOKEN": "secret"}


def test_a_job_finds_the_environment_of_the_shell_without_the_key_to_the_server() -> None:
    assert environment((), None, SHELL) == {"PATH": "/bin", "HOME": "/home/alice"}


def test_only_some_variables_may_be_passed() -> None:
    assert environment((), "PATH, NOT_THERE", SHELL) == {"PATH": "/bin"}
    assert environment((), "", SHELL) == {}


def test_variables_may_be_set_or_taken_over() -> None:
    found = environment(("A=1", "A=2=3", "HOME", "NOT_THERE"), "", SHELL)

    assert found == {"A": "2=3", "HOME": "/home/alice"}


def test_what_is_no_text_is_left_out() -> None:
    assert environment((), None, {"BAD": "\udcff", "GOOD": "ü"}) == {"GOOD": "ü"}


def test_a_variable_needs_a_name() -> None:
    with pytest.raises(click.UsageError, match="write NAME=VALUE"):
        environment(("=1",), None, SHELL)


def test_pairs_need_a_name_and_a_value() -> None:
    assert pairs(("a=1", "b="), "--label") == {"a": "1", "b": ""}
    with pytest.raises(click.UsageError, match="--label 'a'"):
        pairs(("a",), "--label")
