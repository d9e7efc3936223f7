"""The page docs/states.md, written from the table of moves so that it cannot be wrong."""

from collections.abc import Iterator, Mapping

from muster.lifecycle.step import NEXT
from muster.model.job import FINAL, JobState

BEGINNINGS = (JobState.PENDING, JobState.HELD)


def states_page() -> str:
    """The whole page, ending in a newline."""
    return "\n".join(
        [
            "# The states of a job",
            "",
            "Made from `NEXT` in `src/muster/lifecycle/step.py`; edit the table, not this page.",
            "State says where a job is; `Job.why` says why.",
            "PENDING after an attempt means that there will be another one.",
            "",
            "```mermaid",
            *diagram(NEXT),
            "```",
            "",
        ]
    )


def diagram(moves: Mapping[JobState, frozenset[JobState]]) -> Iterator[str]:
    """The lines of a mermaid state diagram, in the order in which the states are declared."""
    yield "stateDiagram-v2"
    for state in BEGINNINGS:
        yield f"    [*] --> {state.name}"
    for state in JobState:
        yield from (f"    {state.name} --> {to.name}" for to in JobState if to in moves[state])
    for state in JobState:
        if state in FINAL:
            yield f"    {state.name} --> [*]"
