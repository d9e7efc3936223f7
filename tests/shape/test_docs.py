import contextlib
import io
import re
from pathlib import Path

import pytest

from muster.model.policy import OrderWeights, Policy, PreemptPolicy, SharePolicy
from muster.model.queue import Ceiling, JobClass, Queue, Quota, Scope
from muster.model.value import Value
from shape.source import ROOT, SRC

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changes/README.md")])
DECISION_PARTS = [
    "## Context",
    "## Choice",
    "## What we gave up",
    "## How we would notice we were wrong",
]

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
# Only where it opens a code span or an indented line: prose may make things too.
MAKE_COMMAND = re.compile(r"(?:`|^ {4})make ([a-z-]+)", re.MULTILINE)
BENCH_COMMAND = re.compile(r"make bench NAME=([a-z-]+)")
KNOBS: tuple[type[Value], ...] = (
    Policy,
    OrderWeights,
    SharePolicy,
    PreemptPolicy,
    Queue,
    Quota,
    Scope,
    JobClass,
    Ceiling,
)
# A row of the vocabulary that ends in the planner's files: the words, and the files.
INNER_WORD = re.compile(r"^\| ([\w, ]+) \| .* \| ((?:`\w+\.py`(?:, )?)+) \|$", re.MULTILINE)

HOWTOS = sorted((ROOT / "docs" / "howto").glob("*.md"))
# A block, and the line that says why the tests do not run it.
FENCED = re.compile(
    r"^(?:<!-- not run: [^\n]+ -->\n)?( *)```\w+\n.*?^\1```$", re.MULTILINE | re.DOTALL
)

# A Python example, and the output that it promises when a text block follows directly.
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))

    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_docs_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    targets = set(MAKE_COMMAND.findall(text))
    benches = {name.replace("-", "_") for name in BENCH_COMMAND.findall(text)}

    assert targets - make_targets() == set()
    assert benches - {path.stem for path in ROOT.glob("bench/*.py")} == set()


def test_the_files_that_where_to_change_names_exist() -> None:
    page = (ROOT / "docs" / "where-to-change.md").read_text(encoding="utf-8")
    present, _, _ = page.partition("\nComing:")

    named = re.findall(r"`((?:\w+/)+\w+\.py)`", present)

    assert [path for path in named if not (ROOT / "src" / "muster" / path).exists()] == []


@pytest.mark.parametrize("knobs", KNOBS, ids=lambda knobs: knobs.__name__)
def test_the_policy_page_lists_every_field(knobs: type[Value]) -> None:
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    _, _, rest = page.partition(f": `{knobs.__name__}`\n")
    section, _, _ = rest.partition("\n## ")

    listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)

    assert tuple(listed) == knobs.__struct_fields__


def test_the_words_of_the_planner_are_where_the_vocabulary_says() -> None:
    page = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
    rows = INNER_WORD.findall(page)

    lost = {
        word: files
        for words, files in rows
        for word in words.split(", ")
        if not re.search(rf"^(class {word}\b|{word} = )", planner_files(files), re.MULTILINE)
    }

    assert rows
    assert lost == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_that_promise_an_output_run_and_print_it(page: Path) -> None:
    examples = EXAMPLE.findall(page.read_text(encoding="utf-8"))

    for code, promised in examples:
        assert not promised or output_of(code) == promised


@pytest.mark.parametrize("page", HOWTOS, ids=lambda page: page.stem)
def test_what_a_how_to_has_typed_stands_in_a_block_that_the_tests_find(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    prose = FENCED.sub("", text)

    assert [line for line in prose.splitlines() if line.startswith("    ")] == []
    assert "<!-- not run" not in prose


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in DECISIONS]

    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_one_page_in_four_parts(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    assert lines[0].startswith(f"# {int(path.name[:4])}. ")
    assert [line for line in lines if line.startswith("## ")] == DECISION_PARTS
    assert len(lines) <= 60


def test_news_fragments_have_a_kind_that_exists() -> None:
    fragments = {path.name for path in (ROOT / "changes").glob("*.md")} - {"README.md"}

    well_named = re.compile(r"(\d+|\+[\w-]+)\.(added|changed|fixed|removed)\.md")

    assert [name for name in sorted(fragments) if not well_named.fullmatch(name)] == []


def output_of(code: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102
    return printed.getvalue()


def planner_files(names: str) -> str:
    """The text of these files, whichever folder of the planner they are in."""
    schedule = SRC / "muster" / "schedule"
    named = re.findall(r"`(\w+\.py)`", names)
    paths = (path for name in named for path in sorted(schedule.rglob(name)))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
