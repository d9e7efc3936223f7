"""The page of docs/reference that lists where kubectl sees something else of Muster."""

from collections.abc import Iterator

from doors.kubernetes.exchanges import all_exchanges
from doors.kubernetes.sessions import Case, Session, all_sessions

BEYOND = "beyond"
"""The session of further commands, which is counted apart."""

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
    return "\n".join([INTRODUCTION, *_counts(sessions), "", *_differences(sessions), *_requests()])


def _counts(sessions: list[Session]) -> Iterator[str]:
    recorded = [each for each in sessions if each.name != BEYOND]
    further = [each for each in sessions if each.name == BEYOND]
    yield "| session | commands | equal | different |"
    yield "|---|---|---|---|"
    for each in recorded:
        yield _row(each.name, [each])
    yield _row("**recorded on nodes**", recorded)
    for each in further:
        yield _row(each.name, [each])
    yield _row("**all**", sessions)
    yield ""
    equal, every = _equal(recorded), sum(len(each.compared) for each in recorded)
    yield f"Of the {every} commands that were recorded on nodes, {equal} are answered equally:"
    yield f"{1000 * equal // max(every, 1) / 10} of 100."
    yield f"Those of `{BEYOND}` were recorded without nodes, by `doors.kubernetes.record`."


def _row(name: str, sessions: list[Session]) -> str:
    every, equal = sum(len(each.compared) for each in sessions), _equal(sessions)
    return f"| {name} | {every} | {equal} | {every - equal} |"


def _equal(sessions: list[Session]) -> int:
    return sum(len(each.compared) - len(_different(each)) for each in sessions)


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


def _requests() -> Iterator[str]:
    """Those that were sent without kubectl, so that headers are compared as well."""
    every = all_exchanges()
    different = [each for each in every if each.differs]
    yield "## Single requests"
    yield ""
    yield f"Of {len(every)} requests that were sent by themselves,"
    yield f"{len(every) - len(different)} are answered with equal status, main headers and body;"
    yield "what is compared of a body says `tests/doors/kubernetes/exchanges.py`."
    yield ""
    yield "| request | why |"
    yield "|---|---|"
    for each in different:
        yield f"| {each.name}: {_code(each.request)} | {_cell(each.differs)} |"
    yield ""


def _code(text: str) -> str:
    """A command line with backticks in it would end its own."""
    marks = "``" if "`" in text else "`"
    return f"{marks}{_cell(text)}{marks}"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  what it is for
