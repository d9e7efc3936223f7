"""The forecaster's process: started by the daemon, asked over its pipes, ended with them."""

import os
import sys
import time

from muster.controller.dates.protocol import decode_request, encode
from muster.controller.planner.protocol import read_frame, write_frame
from muster.simulator.forecast_server import ForecastServer

SERVER = ("-m", "muster.app.forecaster")

POLITENESS = 10
"""It leaves the processor to the planner and to those who answer, where they want it."""


def main() -> None:
    """Answer one request after the other until the controller closes the pipe."""
    os.nice(POLITENESS)
    # Whatever is printed must not get between the frames.
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = ForecastServer(time.process_time)
    try:
        while (frame := read_frame(requests)) is not None:
            request = decode_request(frame)
            # The first one is as large as the world.
            del frame
            for reply in server.answer(request):
                write_frame(replies, encode(reply))
    except BrokenPipeError:
        # The controller ended while it waited for an answer.
        os._exit(0)


if __name__ == "__main__":
    main()
