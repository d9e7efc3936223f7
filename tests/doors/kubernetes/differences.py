"""The page of docs/reference that lists where kubectl sees something else of Muster."""

from collections.abc import Iterator

from doors.kubernetes.sessions import Case, Session, all_sessions

INTRODUCTION = """\
# What kubectl sees otherwise

Sessions of `tests/golden/kubernetes/sessions` are what a real Kubernetes 1.36.3 answered,
command by command.
The tests type them again on Muster, and compare output, errors and exit codes,
without what no two runs have in common: times, ids, addresses, generated names.
Where Muster means to answer otherwise, the session says why, and this page shows it.

`make reference` writes this page.
"""


def page() -> str:
    """All of it."""
    sessions = all_sessions()
    return "\n".join([INTRODUCTION, *_counts(sessions), "", *_differences(sessions), ""])


def _counts(sessions: list[Session]) -> Iterator[str]:
    yield "| session | commands | equal | different |"
    yield "|---|---|---|---|"
    every = different = 0
    for each in sessions:
        count, differs = len(each.compared), len(_different(each))
        yield f"| {each.name} | {count} | {count - differs} | {differs} |"
        every, different = every + count, different + differs
    yield f"| **all** | {every} | {every - different} | {different} |"
    yield ""
    yield f"{100 * (every - different) // max(every, 1)} of 100 are equal."


def _different(session: Session) -> list[Case]:
    return [each for each in session.compared if each.differs]


def _differences(sessions: list[Session]) -> Iterator[str]:
    for each in sessions:
        cases = _different(each)
        if not cases:
            continue
        yield f"## {each.name}"
        yield ""
        yield "| command | why |"
        yield "|---|---|"
        for case in cases:
            yield f"| {_code(case.line)} | {_cell(case.differs)} |"
        yield ""


def _code(text: str) -> str:
    """A command line with backticks in it would end its own."""
    marks = "``" if "`" in text else "`"
    return f"{marks}{_cell(text)}{marks}"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  what it is for
