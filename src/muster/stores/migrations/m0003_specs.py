"""Large specs are rows of their own; the rows that have one name it."""

STATEMENTS: tuple[str, ...] = (
    "CREATE TABLE specs (name {text} PRIMARY KEY, body {blob} NOT NULL)",
    *(
        statement
        for table in ("jobs", "events", "history")
        for statement in (
            f"ALTER TABLE {table} ADD COLUMN spec {{text}}",
            f"CREATE INDEX {table}_by_spec ON {table} (spec) WHERE spec IS NOT NULL",
        )
    ),
)
