"""Dates that waiting jobs were told, with what became of them."""

STATEMENTS: tuple[str, ...] = (
    "CREATE TABLE dates (job {int} PRIMARY KEY, started_at {int} NOT NULL, body {blob} NOT NULL)",
    "CREATE INDEX dates_by_start ON dates (started_at)",
)
