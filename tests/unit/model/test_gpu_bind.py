import pytest
from hypothesis import given
from hypothesis import strategies as some

from muster.model.gpu_bind import FORM, bound

FOUR = (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("bind", "seen"),
    [
        ("single:1", [(0,), (1,), (2,), (3,)]),
        ("single:2", [(0,), (0,), (1,), (1,)]),
        ("per_task:2", [(0, 1), (2, 3), (), ()]),
        ("map_gpu:3,1", [(3,), (1,), (3,), (1,)]),
        ("map_gpu:0*2,2*2", [(0,), (0,), (2,), (2,)]),
        ("map_gpu:0,9", [(0,), (), (0,), ()]),
        ("mask_gpu:0x3,0xc", [(0, 1), (2, 3), (0, 1), (2, 3)]),
        ("mask_gpu:1,f", [(0,), FOUR, (0,), FOUR]),
        ("closest", [FOUR, FOUR, FOUR, FOUR]),
        ("none", [FOUR, FOUR, FOUR, FOUR]),
        ("verbose,single:1", [(0,), (1,), (2,), (3,)]),
    ],
)
def test_each_task_sees_what_it_is_bound_to(bind: str, seen: list[tuple[int, ...]]) -> None:
    assert [bound(bind, FOUR, seat) for seat in range(4)] == seen


def test_tasks_after_the_last_gpu_begin_again_with_the_first() -> None:
    assert [bound("single:1", (4, 6), seat) for seat in range(4)] == [(4,), (6,), (4,), (6,)]


@pytest.mark.parametrize("text", ["bogus", "single:0", "map_gpu:", "mask_gpu:0xg", "per_task:x"])
def test_what_slurm_would_not_read_is_no_binding(text: str) -> None:
    assert FORM.fullmatch(text) is None


@given(
    some.from_regex(FORM, fullmatch=True),
    some.sets(some.integers(0, 15)).map(sorted),
    some.integers(0, 63),
)
def test_a_task_never_sees_what_its_step_has_not(bind: str, gpus: list[int], seat: int) -> None:
    assert set(bound(bind, gpus, seat)) <= set(gpus)
