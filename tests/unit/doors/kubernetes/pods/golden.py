"""Cases in files: a name, parts that `--- word` begins, and the expected lines."""

import re
from pathlib import Path
from typing import Any

import yaml

GOLDEN = Path(__file__).parents[4] / "golden" / "kubernetes"


def cases(name: str) -> dict[str, list[str]]:
    """By their names, the parts of each case of a file."""
    text = (GOLDEN / name).read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for case in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        title, _, body = case.partition("\n")
        found[title] = [part.strip() for part in re.split(r"^--- \w+\n?", body, flags=re.MULTILINE)]
    return found


def pod(spec_text: str, **metadata: Any) -> dict[str, Any]:
    """A pod with this spec; with everything else where the text has it."""
    written: dict[str, Any] = yaml.safe_load(spec_text) or {}
    base: dict[str, Any] = written if "spec" in written else {"spec": written}
    meta: dict[str, Any] = {
        "name": "p",
        "namespace": "team-a",
        **base.get("metadata", {}),
        **metadata,
    }
    return {"apiVersion": "v1", "kind": "Pod", **base, "metadata": meta}
