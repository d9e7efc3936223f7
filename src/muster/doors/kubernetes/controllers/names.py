"""Names and hashes that controllers give, in the letters that Kubernetes gives them in.

Nothing here is chance: the same seed gives the same name, so that asking twice is harmless.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from typing import Any

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no name spells a word; nothing that looks like something else."""

LONGEST_PREFIX = 58
"""What is left of 63 letters beside a suffix of five."""


def free_name(prefix: str, seed: str, is_taken: Callable[[str], bool]) -> str:
    """A name that begins with this prefix and is not taken."""
    start = prefix[:LONGEST_PREFIX]
    for attempt in count():
        name = start + suffix(f"{seed}/{prefix}/{attempt}")
        if not is_taken(name):
            return name
    raise AssertionError


def suffix(seed: str, *, letters: int = 5) -> str:
    """Letters that follow from a seed."""
    number = int.from_bytes(sha256(seed.encode()).digest()[:16])
    chosen: list[str] = []
    for _ in range(letters):
        number, which = divmod(number, len(LETTERS))
        chosen.append(LETTERS[which])
    return "".join(chosen)


def template_hash(template: Any, *, collisions: int | None = None) -> str:
    """What tells one pod template from another, as names and labels carry it."""
    text = json.dumps([template, collisions], sort_keys=True, separators=(",", ":"))
    number = int.from_bytes(sha256(text.encode()).digest()[:4])
    return "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(number))
