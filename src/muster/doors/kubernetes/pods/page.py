"""The reference page of pods, made from the table of what becomes of each field."""

import sys

from muster.doors.kubernetes.pods import support

HEAD = """\
# What becomes of every field of a pod

This page is made from the table that the door itself reads: `make reference`.

A field of a pod's spec is used, or has no effect and a warning says so, or is refused.
None is dropped silently.

"""


def page() -> str:
    """The whole page, as Markdown."""
    return HEAD + support.page()


if __name__ == "__main__":
    sys.stdout.write(page())
