from pathlib import Path

from muster.lifecycle.states_page import diagram, states_page
from muster.lifecycle.step import NEXT
from muster.model.job import FINAL, JobState

PAGE = Path(__file__).parents[3] / "docs" / "states.md"
COMMAND = (
    "python -c 'from muster.lifecycle.states_page import states_page as page;"
    ' print(page(), end="")\' > docs/states.md'
)


def test_the_page_of_states_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == states_page(), f"run: {COMMAND}"


def test_every_move_is_drawn_once() -> None:
    drawn = list(diagram(NEXT))

    for state in JobState:
        for to in JobState:
            assert drawn.count(f"    {state.name} --> {to.name}") == (to in NEXT[state])


def test_every_state_is_in_the_table_and_only_final_ones_have_no_way_out() -> None:
    assert set(NEXT) == set(JobState)
    assert {state for state in JobState if not NEXT[state]} == FINAL
