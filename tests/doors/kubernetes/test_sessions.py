"""Sessions that a real Kubernetes 1.36 answered, typed again: kubectl must see the same."""

import pytest

from doors.kubernetes.cluster import KubernetesHouse, there_is
from doors.kubernetes.sessions import SESSIONS, played, read

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", sorted(each.stem for each in SESSIONS.glob("*.txt")))
def test_kubectl_sees_what_it_sees_of_kubernetes(real_house: KubernetesHouse, name: str) -> None:
    session = read(SESSIONS / f"{name}.txt")
    for program in session.programs:
        there_is(program)

    answers = played(session, real_house)

    assert {each.case.line: each.report for each in answers if each.is_surprising} == {}
