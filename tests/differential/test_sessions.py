"""The same command lines on a real Slurm and on Muster: output, errors and exit codes are the same.

What Slurm said is kept in tests/golden/slurm/real, so that Muster is compared with it everywhere;
where there is a real Slurm, what is kept is compared with what it says now.
"""

import os

import pytest

from differential import sessions
from differential.conftest import RECORD, Answers
from differential.sessions import Case

CASES = [case for name in sessions.names() for case in sessions.read(name)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="the sessions are root's, whose holds are others"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_muster_answers_as_slurm_does(case: Case, ours: Answers) -> None:
    if case.differs is not None:
        assert ours[case.id] != case.answer, f"no longer differs, take the note away: {case.line}"
        return
    if case.open is not None and ours[case.id] != case.answer:
        pytest.xfail(case.open)
    assert ours[case.id] == case.answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_slurm_says_what_is_kept_of_it(case: Case, theirs: Answers) -> None:
    if not os.environ.get(RECORD):
        assert theirs[case.id] == case.answer
