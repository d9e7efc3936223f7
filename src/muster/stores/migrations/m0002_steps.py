"""Steps of attempts, running and over; their job's leaving takes them along."""

STATEMENTS: tuple[str, ...] = (
    """CREATE TABLE steps (
        job {int} NOT NULL, attempt {int} NOT NULL, number {int} NOT NULL, body {blob} NOT NULL,
        PRIMARY KEY (job, attempt, number)) {compact}""",
)
