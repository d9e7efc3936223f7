"""The blocks of a page of the docs, and what is typed for each of them.

A block of `bash` is typed, one of `python` is run, and one that begins with the comment of a
file's name (`# train.yaml`) is that file. A line before a block keeps it from being run:

    <!-- not run: needs systemd -->
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# ([\w-]+\.\w+)\n")


@dataclass(frozen=True)
class Block:
    """reason: why no test can run it; empty if one does."""

    language: str
    text: str
    reason: str

    @property
    def typed(self) -> str:
        """What a shell is given to do as the block says; empty if it is only to be read."""
        named = _FILE.match(self.text)
        if self.reason:
            return ""
        if self.language in {"bash", "sh"}:
            return self.text
        if self.language == "python":
            return _fed_to("python -", self.text)
        if named is not None:
            return _fed_to(f"cat > {named[1]}", self.text)
        return ""


def blocks(page: str) -> tuple[Block, ...]:
    """All of a page, named from the root of the project, in their order."""
    found = _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    return tuple(
        Block(each["language"], text=each["text"], reason=each["reason"] or "") for each in found
    )


def _fed_to(command: str, text: str) -> str:
    return f"{command} <<'END OF BLOCK'\n{text}END OF BLOCK\n"
