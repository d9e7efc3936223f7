"""What became of every conformance test, as it is kept and as the docs show it.

`python -m conformance.results > docs/reference/kubernetes-conformance.md` writes the page again.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from conformance.reasons import REASONS, Kind, Reason
from conformance.suite import PASSED, UNFINISHED, Result, area_of

KEPT = Path(__file__).parent / "results.tsv"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "kubernetes-conformance.md"


def read(path: Path = KEPT) -> dict[str, Result]:
    """By the names of the tests."""
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return {
        test: Result(test=test, result=result, said=said) for test, result, said in rows if test
    }


def keep(results: Mapping[str, Result], path: Path = KEPT) -> None:
    """One test on each line: its name, what became of it, and the first words of why not."""
    lines = (
        f"{each.test}\t{each.result}\t{each.said}\n"
        for each in sorted(results.values(), key=lambda each: each.test)
    )
    path.write_text("".join(lines))


def reason_for(result: Result) -> Reason | None:
    """Why it does not pass, in our words; the first that fits. What was not seen has no reason."""
    if result.result in (PASSED, UNFINISHED):
        return None
    return next((each for each in REASONS if _fits(each, result)), None)


def _fits(reason: Reason, result: Result) -> bool:
    is_named = re.search(reason.tests, result.test) is not None
    return is_named and re.search(reason.said, result.said) is not None


def page(results: Iterable[Result]) -> Iterator[str]:
    """The page of the docs, line by line."""
    every = sorted(results, key=lambda each: each.test)
    passed = [each for each in every if each.result == PASSED]
    yield "# Kubernetes' conformance tests"
    yield ""
    yield "Made by `make conformance`; changed by hand it is overwritten."
    yield ""
    yield (
        f"Of the {len(every)} conformance tests of Kubernetes 1.36.3, {len(passed)} pass on a "
        "Muster with two pretend nodes on one machine, real containers and nothing else around it."
    )
    yield "All results are of one tree; each reason is of what a test said when it failed."
    for kind in Kind:
        count = sum(_kind_of(each) is kind for each in every if each.result != PASSED)
        yield f"{count} do not because {kind.meaning} (*{kind.value}*)."
    yield ""
    yield from _areas(every)
    yield ""
    yield "## Not passed"
    yield ""
    yield "| test | why not |"
    yield "|---|---|"
    for each in every:
        if each.result != PASSED:
            yield f"| {_shown(each.test)} | {_why(each)} |"
    yield ""
    yield "## Passed"
    yield ""
    for each in passed:
        yield f"- {_shown(each.test)}"


def _areas(every: list[Result]) -> Iterator[str]:
    all_of, good = Counter[str](), Counter[str]()
    for each in every:
        area = area_of(each.test).partition(":")[0]
        all_of[area] += 1
        good[area] += each.result == PASSED
    yield "| area | tests | pass |"
    yield "|---|---|---|"
    for area in sorted(all_of):
        yield f"| {area} | {all_of[area]} | {good[area]} |"


def _kind_of(result: Result) -> Kind:
    reason = reason_for(result)
    if reason is not None:
        return reason.kind
    return Kind.NOT_RUN if result.result == UNFINISHED else Kind.WRONG


def _why(result: Result) -> str:
    reason = reason_for(result)
    if reason is not None:
        return f"*{reason.kind.value}*: {reason.words}"
    if result.result == UNFINISHED:
        return f"*{Kind.NOT_RUN.value}*"
    said = result.said.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    return f"*{Kind.WRONG.value}*: {said[:160]}"


def _shown(test: str) -> str:
    """Without the marks that every test has, and without what Markdown would take for its own."""
    plain = test.replace(" [Conformance]", "").replace("[sig-", "[")
    return plain.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in page(read().values()))
