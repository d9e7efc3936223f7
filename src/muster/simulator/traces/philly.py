"""Microsoft's Philly trace, and the cut of 82,247 jobs of it that Pollux and Sia replay."""

import json
from collections.abc import Iterable, Iterator
from typing import cast

from muster.model.value import Duration, Instant
from muster.simulator.traces.files import Row
from muster.simulator.traces.moments import instant, span_s
from muster.simulator.traces.traced import Outcome, TracedJob

_OUTCOMES = {
    "Pass": Outcome.COMPLETED,
    "Failed": Outcome.FAILED,
    "Killed": Outcome.CANCELLED,
}


def jobs(rows: Iterable[Row]) -> Iterator[TracedJob]:
    """The cut: when submitted, how long, how many GPUs, which virtual cluster."""
    for place, row in enumerate(rows):
        yield TracedJob(
            name=f"philly-{place}",
            submitted_at=instant(row["submit_time_utc"]) or Instant(0),
            duration=span_s(row["duration_s"]),
            gpus=int(row["num_gpus"]),
            queue=row["vc"],
        )


def original(text: Iterable[str]) -> Iterator[TracedJob]:
    """The whole trace, `cluster_job_log`. All attempts of a job count as one run."""
    for record in cast("list[dict[str, object]]", json.loads("".join(text))):
        attempts = cast("list[dict[str, object]]", record["attempts"])
        spans = [_span(attempt) for attempt in attempts]
        known = [span for span in spans if span is not None]
        yield TracedJob(
            name=str(record["jobid"]),
            submitted_at=instant(str(record["submitted_time"])) or Instant(0),
            duration=Duration(sum(end - start for start, end in known)) if known else None,
            gpus=_gpus(attempts),
            user=str(record["user"]),
            queue=str(record["vc"]),
            outcome=_OUTCOMES[str(record["status"])],
            started_at=known[0][0] if known else None,
        )


def _span(attempt: dict[str, object]) -> tuple[Instant, Instant] | None:
    start, end = instant(str(attempt["start_time"])), instant(str(attempt["end_time"]))
    return None if start is None or end is None else (start, end)


def _gpus(attempts: list[dict[str, object]]) -> int:
    """Of the last attempt, on all its nodes."""
    if not attempts:
        return 0
    detail = cast("list[dict[str, list[str]]]", attempts[-1]["detail"])
    return sum(len(node["gpus"]) for node in detail)
