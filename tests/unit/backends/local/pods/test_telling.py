"""When the status of a pod is written down."""

from muster.backends.local.pods.telling import Telling
from muster.model.pod import PodNote, PodStatus

RUNNING = PodStatus(containers=(), notes=(), over=False)
OVER = PodStatus(containers=(), notes=(), over=True)


def noted(count: int) -> PodStatus:
    return PodStatus(
        containers=(),
        notes=(PodNote(at=1, reason="BackOff", text="again", count=count),),
        over=False,
    )


def test_the_first_status_is_written_at_once_and_the_same_one_never_again() -> None:
    telling = Telling()

    assert telling.is_due(RUNNING, 1_000)
    assert not telling.is_due(RUNNING, 5_000)
    assert telling.next_ms() is None


def test_a_change_soon_after_another_is_put_off_until_its_time() -> None:
    telling = Telling()
    telling.is_due(RUNNING, 1_000)

    assert not telling.is_due(OVER, 1_050)
    assert telling.next_ms() == 1_100
    assert telling.is_due(OVER, 1_100)


def test_a_look_that_comes_a_moment_too_early_is_not_the_last_one() -> None:
    telling = Telling()
    telling.is_due(RUNNING, 1_000)

    assert not telling.is_due(OVER, 1_099)
    # By now it is 1,100: whoever asks when to look again must not hear "never".
    assert telling.next_ms() == 1_100


def test_what_is_hurried_waits_for_nothing() -> None:
    telling = Telling()
    telling.is_due(RUNNING, 1_000)
    telling.hurry()

    assert telling.is_due(OVER, 1_001)


def test_that_something_happened_once_more_is_told_every_ten_seconds() -> None:
    telling = Telling()
    telling.is_due(noted(1), 1_000)

    assert not telling.is_due(noted(2), 10_999)
    assert telling.is_due(noted(3), 11_000)
