"""Lists as people want them: on a narrow screen, sorted, with other columns, again and again."""

import pytest

from doors.cli.calling import Caller
from doors.cli.canned import CannedServer
from muster.doors.cli.screen.printing import sortable
from muster.doors.cli.screen.screen import Screen
from muster.doors.cli.screen.text import width_of


@pytest.mark.parametrize(
    "argv", [("ps",), ("ps", "-a"), ("queues",), ("history",), ("nodes",), ("top", "--once")]
)
def test_a_list_fits_a_screen_of_80_columns(muster: Caller, argv: tuple[str, ...]) -> None:
    muster.screen = Screen(width=80)

    shown = muster(*argv).out.splitlines()

    assert shown
    assert [line for line in shown if width_of(line) > 80] == []


def test_columns_are_chosen_by_their_titles(muster: Caller) -> None:
    outcome = muster("ps", "--columns", "name,id,limit")

    assert outcome.out.splitlines()[0].split() == ["NAME", "ID", "LIMIT"]


def test_a_column_that_there_is_not_is_told_with_those_there_are(muster: Caller) -> None:
    outcome = muster("ps", "--sort", "colour")

    assert outcome.code == 2
    assert "There is no column 'colour'; there are id, name" in outcome.err


def test_a_list_is_sorted_either_way(muster: Caller) -> None:
    argv = ("--columns", "id", "--no-headers")
    up, down = muster("ps", "--sort", "gpus", *argv), muster("ps", "--sort", "-gpus", *argv)

    assert up.out.split() == list(reversed(down.out.split()))


@pytest.mark.parametrize(
    "texts",
    [
        ["-", "0.5", "2", "10"],
        ["512M", "1.5G", "1T"],
        ["59:59", "1:00:00", "1-00:00:00"],
        ["a", "b"],
    ],
)
def test_cells_are_sorted_as_people_mean_it(texts: list[str]) -> None:
    assert [texts.index(text) for text in sorted(set(texts), key=sortable)] == list(
        range(len(texts))
    )


def test_a_list_is_shown_again_until_it_is_interrupted(muster: Caller) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    muster.pause = pause
    outcome = muster("ps", "--watch", "4")

    assert outcome.code == 0
    assert pauses == [4.0] * 3
    assert outcome.out.count("NODES OR REASON") == 3


def test_jobs_that_are_over_are_listed_where_that_is_asked_for(
    muster: Caller, server: CannedServer
) -> None:
    muster("ps", "-a")

    assert any(each.query.get("ended") == ["true"] for each in server.requests)


def test_the_last_lines_are_asked_for(muster: Caller, server: CannedServer) -> None:
    muster("logs", "-n", "20", "17")

    assert any(each.query.get("tail") == ["20"] for each in server.requests)
