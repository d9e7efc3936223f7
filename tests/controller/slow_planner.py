"""A planner's process whose explanations take as long as a test wants.

As a program: python slow_planner.py FOLDER SOCKET. When an explanation begins, it writes to the
pipe `begun` in the folder, and it goes on when the pipe `go_on` is closed by its writer.
"""

import sys
from pathlib import Path

from muster.controller.planner.client import InlinePlanner
from muster.controller.planner.server import serve
from muster.model.explanation import Explanation
from muster.model.value import JobId


class SlowPlanner(InlinePlanner):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def explain(self, job: JobId) -> Explanation:
        with (self._folder / "begun").open("wb") as begun:
            begun.write(b"begun")
        (self._folder / "go_on").read_bytes()
        return super().explain(job)


if __name__ == "__main__":
    serve(SlowPlanner(Path(sys.argv.pop(1))))
