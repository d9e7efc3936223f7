"""`Name=value` pairs, as `scontrol` prints them. Pure."""

import re

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=")


def fields(line: str) -> dict[str, str]:
    """`Name=value` pairs of one line of `scontrol -o`; values may hold spaces."""
    found = list(_PAIR.finditer(line))
    ends = [each.start() for each in found[1:]] + [len(line)]
    return {each[1]: line[each.end() : end].strip() for each, end in zip(found, ends, strict=True)}
