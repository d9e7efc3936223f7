"""Microsoft's ITP trace of 2021 (ElasticFlow): ten clusters, each a queue here."""

from collections.abc import Iterable, Iterator

from muster.simulator.traces.files import Row
from muster.simulator.traces.moments import instant_s, span_s
from muster.simulator.traces.traced import TracedJob


def jobs(rows: Iterable[Row]) -> Iterator[TracedJob]:
    """The jobs of all clusters, cluster after cluster."""
    for place, row in enumerate(rows):
        yield TracedJob(
            name=f"itp-{place}",
            submitted_at=instant_s(row["submission_time_s"]),
            duration=span_s(row["duration_s"]),
            gpus=int(row["num_gpu"]),
            queue=f"cluster{row['cluster']}",
        )
