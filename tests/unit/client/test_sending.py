from datetime import UTC, timedelta, timezone

from muster.api.requests import JobFile
from muster.client.sending import Origin, environment, sent, zoned

SHELL = {"PATH": "/bin", "HOME": "/home/alice", "MUSTER_TOKEN": "secret"}
HERE = Origin(workdir="/home/alice", environ=SHELL, umask=0o022, zone=UTC)


def test_a_job_finds_the_environment_of_the_shell_without_the_key_to_the_server() -> None:
    assert environment(JobFile(), SHELL) == {"PATH": "/bin", "HOME": "/home/alice"}


def test_only_some_variables_may_be_passed() -> None:
    assert environment(JobFile(env_only=("PATH", "NOT_THERE")), SHELL) == {"PATH": "/bin"}
    assert environment(JobFile(env_only=()), SHELL) == {}


def test_variables_may_be_set_or_taken_over() -> None:
    job = JobFile(env={"A": "2=3", "HOME": None, "NOT_THERE": None}, env_only=())

    assert environment(job, SHELL) == {"A": "2=3", "HOME": "/home/alice"}


def test_what_is_not_text_is_left_out() -> None:
    assert environment(JobFile(), {"BAD": "\udcff", "GOOD": "ü"}) == {"GOOD": "ü"}


def test_the_folder_and_the_umask_come_from_where_the_job_is_submitted() -> None:
    plain, named = sent(JobFile(), HERE), sent(JobFile(workdir="runs/../a", umask=0o077), HERE)

    assert (plain.workdir, plain.umask) == ("/home/alice", 0o022)
    assert (named.workdir, named.umask) == ("/home/alice/a", 0o077)


def test_a_date_without_a_zone_is_meant_on_the_clock_of_the_user() -> None:
    zone = timezone(timedelta(hours=1))

    assert zoned("2026-12-01T08:00", zone) == "2026-12-01T08:00:00+01:00"
    assert zoned("2026-12-01T08:00Z", zone) == "2026-12-01T08:00Z"
    assert zoned("now+2h", zone) == "now+2h"
    assert zoned(None, zone) is None
