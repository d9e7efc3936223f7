"""The shapes that the database had, one after the other; a shape that was released stays as it is.

`{int}`, `{text}`, `{blob}` and `{compact}` stand for words in which the two databases differ.
To change the tables, add a module with the next number and name it in `MIGRATIONS`.
"""

from muster.stores.migrations import (
    m0001_first,
    m0002_steps,
    m0003_specs,
    m0004_objects,
    m0005_dates,
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    m0001_first.STATEMENTS,
    m0002_steps.STATEMENTS,
    m0003_specs.STATEMENTS,
    m0004_objects.STATEMENTS,
    m0005_dates.STATEMENTS,
)
"""The statements of each step; a database of schema number n has seen the first n of them."""
