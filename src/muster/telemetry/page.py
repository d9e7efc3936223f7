"""The page of the reference that lists every metric, made from the table: `make reference`."""

from muster.telemetry.names import DEVICE_LABELS, METRICS, Metric

HEAD = """# Metrics

What `GET /metrics` tells, made by `make reference` from the table in the code.
[How to use it](../howto/telemetry.md).

Metrics that begin with `DCGM_` or `dcgm_` are about one GPU, or one MIG instance of it,
and have the names, units and labels of NVIDIA's dcgm-exporter.
In OpenMetrics those that only grow are of the type `unknown`:
their names do not end in `_total`.
A signal that a GPU does not have has no series; it is never 0.

These labels are on every series of a GPU, as far as there is something to say:
{labels}.

| name | type | labels | what it says |
|---|---|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    labels = ", ".join(f"`{each}`" for each in DEVICE_LABELS)
    return HEAD.format(labels=labels) + "".join(map(_row, METRICS))


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{each}`" for each in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 -- printing the page is what it is run for
