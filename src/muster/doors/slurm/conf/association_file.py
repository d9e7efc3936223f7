"""The file that `sacctmgr dump` writes: clusters, accounts and users with their options. Pure.

Cluster - 'lab':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'science':Description='physics':Organization='lab':Fairshare=60
Parent - 'science'
User - 'alice':DefaultAccount='science':Fairshare=1
"""

import re
from collections.abc import Iterator, Mapping

from muster.model.errors import MusterError
from muster.model.value import Value

KINDS = frozenset({"cluster", "account", "user"})

_LINE = re.compile(r"([A-Za-z]+)\s*-\s*(.*)")
_OPTION = re.compile(r"""([A-Za-z]+)\s*=\s*('[^']*'|"[^"]*"|[^:]*)(?::|$)""")
_NAME = re.compile(r"""('[^']*'|"[^"]*"|[^:]*)(?::|$)""")


class BadAssociationFileError(MusterError):
    """A line of the file cannot be read."""


class FlatFileEntry(Value):
    """A cluster, an account below `parent`, or a user in the account `parent`."""

    kind: str
    name: str
    parent: str
    options: Mapping[str, str]


def entries_of(text: str) -> Iterator[FlatFileEntry]:
    """In the order of the file; the names of options are in lower case."""
    parent = "root"
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise BadAssociationFileError(
                f"line {number}: {line!r} is no line of a sacctmgr dump; "
                "those begin with Cluster -, Parent -, Account - or User -"
            )
        kind, rest = found[1].lower(), found[2]
        name, options = _named(rest)
        if kind == "parent":
            parent = name
        elif kind in KINDS:
            yield FlatFileEntry(kind=kind, name=name, parent=parent, options=options)
        else:
            raise BadAssociationFileError(f"line {number}: nothing is called {found[1]!r} here")


def is_association_file(text: str) -> bool:
    """Does it look like one?"""
    first = (line.strip() for line in text.splitlines())
    given = [line for line in first if line and not line.startswith("#")]
    return bool(given) and re.match(r"(?i)cluster\s*-\s*['\"\w]", given[0]) is not None


def _named(text: str) -> tuple[str, dict[str, str]]:
    found = _NAME.match(text)
    name = found[1].strip("'\"") if found else text
    rest = text[found.end() :] if found else ""
    return name, {key.lower(): value.strip("'\"") for key, value in _OPTION.findall(rest)}
