"""Names by which the pods of a gang find each other, where their engine has others. Pure."""

import re
from collections.abc import Mapping


def renamed(text: str, mates: Mapping[str, str]) -> str:
    """The text with what the engine calls each of them; a name is never a part of another word."""
    for name in sorted(mates, key=len, reverse=True) if len(mates) > 1 else ():
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", mates[name], text)
    return text
