"""Everything: the log, what is live, what is over, and what people changed."""

STATEMENTS: tuple[str, ...] = (
    # The log. A job's own events are found without reading those of others.
    """CREATE TABLE events (
        number {int} PRIMARY KEY, version {int} NOT NULL, at {int} NOT NULL,
        job {int}, kind {text} NOT NULL, body {blob} NOT NULL)""",
    "CREATE INDEX events_of_job ON events (job, number) WHERE job IS NOT NULL",
    "CREATE INDEX events_of_no_job ON events (at, number) WHERE job IS NULL",
    # Which rows each version touched, for processes that follow.
    "CREATE TABLE changes (version {int} PRIMARY KEY, body {blob} NOT NULL)",
    # What is live.
    "CREATE TABLE jobs (id {int} PRIMARY KEY, array_id {int}, body {blob} NOT NULL)",
    "CREATE INDEX jobs_of_array ON jobs (array_id) WHERE array_id IS NOT NULL",
    "CREATE TABLE allocations (job {int} PRIMARY KEY, body {blob} NOT NULL)",
    "CREATE TABLE clusters (name {text} PRIMARY KEY, body {blob} NOT NULL)",
    "CREATE TABLE nodes (id {text} PRIMARY KEY, body {blob} NOT NULL)",
    "CREATE TABLE site (id {int} PRIMARY KEY, body {blob} NOT NULL)",
    """CREATE TABLE used (
        queue {text} NOT NULL, user_name {text} NOT NULL, body {blob} NOT NULL,
        PRIMARY KEY (queue, user_name))""",
    "CREATE TABLE usual (position {int} PRIMARY KEY, body {blob} NOT NULL)",
    "CREATE TABLE tokens (id {text} PRIMARY KEY, body {blob} NOT NULL)",
    # What is read only on request.
    "CREATE TABLE launches (job {int} PRIMARY KEY, body {blob} NOT NULL)",
    """CREATE TABLE attempts (
        job {int} NOT NULL, number {int} NOT NULL, body {blob} NOT NULL,
        PRIMARY KEY (job, number))""",
    """CREATE TABLE audit (
        version {int} NOT NULL, position {int} NOT NULL, at {int} NOT NULL, body {blob} NOT NULL,
        PRIMARY KEY (version, position))""",
    "CREATE INDEX audit_by_time ON audit (at, version, position)",
    # What is over. Touched when a job ends, and never by what is live.
    """CREATE TABLE history (
        id {int} PRIMARY KEY, array_id {int},
        user_name {text} NOT NULL, queue {text} NOT NULL, name {text} NOT NULL,
        state {text} NOT NULL, submitted_at {int} NOT NULL, started_at {int},
        ended_at {int} NOT NULL, body {blob} NOT NULL)""",
    "CREATE INDEX history_by_end ON history (ended_at, id)",
    "CREATE INDEX history_by_user ON history (user_name, ended_at, id)",
    "CREATE INDEX history_by_state ON history (state, ended_at, id)",
    "CREATE INDEX history_by_name ON history (name, ended_at, id)",
    "CREATE INDEX history_of_array ON history (array_id, ended_at, id) WHERE array_id IS NOT NULL",
    # Each ended job once for its queue and once for every queue above that.
    """CREATE TABLE history_queues (
        queue {text} NOT NULL, ended_at {int} NOT NULL, job {int} NOT NULL,
        PRIMARY KEY (queue, ended_at, job)) {compact}""",
    # Written when an attempt ends, so that a job is found by every node it ran on.
    """CREATE TABLE history_nodes (
        node {text} NOT NULL, job {int} NOT NULL, PRIMARY KEY (node, job)) {compact}""",
    "CREATE INDEX history_nodes_of_job ON history_nodes (job)",
)
