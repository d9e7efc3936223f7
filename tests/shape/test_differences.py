"""The page of what kubectl sees otherwise is what the sessions say."""

from pathlib import Path

from doors.kubernetes.differences import page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "kubernetes-differences.md"


def test_the_page_of_differences_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make reference"
