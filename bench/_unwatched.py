"""A Muster that nobody watches, to see what telemetry costs.

    python -m bench._unwatched FOLDER NODES GPUS

It is the same code with the same settings, but nobody follows commits for metrics, looks at
clusters, judges rules or sends anything anywhere.
"""

import sys
from pathlib import Path

from muster.app.daemon import Beginning, run
from muster.controller.alerting.loop import AlertLoop
from muster.controller.sending.sending import Sending
from muster.controller.watching.tally import Tally
from muster.controller.watching.tenancies import Tenancies
from muster.controller.watching.watching import Watching
from muster.controller.watching.xids import Xids
from muster.settings import Settings

TELEMETRY = (
    (Tally, "note"),
    (Tenancies, "note"),
    (Xids, "note"),
    (Sending, "note_commit"),
    (Sending, "start"),
    (Sending, "begin"),
    (Watching, "begin"),
    (AlertLoop, "begin"),
)


def main(home: Path, nodes: int, gpus: str) -> int:
    for owner, name in TELEMETRY:
        setattr(owner, name, _nothing)
    settings = Settings(nodes=nodes, gpus=gpus)
    return run(home.resolve(), Beginning(settings=settings), is_background=True)


def _nothing(*_: object) -> None:
    """Telemetry is off."""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
