"""Objects of the Kubernetes API, as they are now."""

STATEMENTS: tuple[str, ...] = (
    """CREATE TABLE objects (
        group_name {text} NOT NULL, resource {text} NOT NULL, namespace {text} NOT NULL,
        name {text} NOT NULL, version {int} NOT NULL, body {text} NOT NULL,
        PRIMARY KEY (group_name, resource, namespace, name))""",
)
