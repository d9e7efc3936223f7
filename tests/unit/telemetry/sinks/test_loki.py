"""What Loki is sent."""

import json

from muster.telemetry.sinks.lines import Line, LineKind
from muster.telemetry.sinks.loki import PUSH, loki_post

OF_JOB = Line(
    at_ns=1_800_000_000_000_000_001,
    text="step 1",
    kind=LineKind.JOB,
    cluster="local",
    queue="acme/nlp",
    fields=(("job", "17"), ("user", "ada")),
)
OWN = Line(at_ns=1_800_000_000_000_000_000, text="started", kind=LineKind.CONTROLLER, level="info")


def test_few_labels_make_streams_and_the_rest_is_metadata() -> None:
    post = loki_post([OF_JOB, OWN])

    assert (post.path, post.count) == (PUSH, 2)
    assert json.loads(post.body) == {
        "streams": [
            {
                "stream": {
                    "service": "muster",
                    "kind": "job",
                    "cluster": "local",
                    "queue": "acme/nlp",
                },
                "values": [["1800000000000000001", "step 1", {"job": "17", "user": "ada"}]],
            },
            {
                "stream": {"service": "muster", "kind": "controller", "level": "info"},
                "values": [["1800000000000000000", "started", {}]],
            },
        ]
    }


def test_jobs_begin_no_streams_of_their_own() -> None:
    lines = [
        Line(at_ns=n, text="x", kind=LineKind.JOB, queue="a", fields=(("job", str(n)),))
        for n in range(1_000)
    ]

    assert len(json.loads(loki_post(lines).body)["streams"]) == 1
