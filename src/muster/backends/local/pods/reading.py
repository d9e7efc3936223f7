"""Reading what containers wrote."""

import os
from pathlib import Path

from muster.backends.base import OutputQuery
from muster.backends.local.attempt import spool
from muster.backends.local.pods import places
from muster.model.errors import UnknownError
from muster.model.running import Output


def pod_output(home: Path, query: OutputQuery) -> Output:
    """A part of a log, with the times of its lines; UnknownError when there is none."""
    pods, key = query.launch.pods, spool.key_of(query.job.id, query.attempt)
    pod = pods[query.task] if query.task < len(pods) else None
    first = pod.containers[-1].name if pod is not None else ""
    name = query.container or first
    if query.launch.gang is not None:
        key = places.key_of_task(key, query.task)
    newest = places.newest_run(home, key, name)
    run = newest if newest is None or not query.previous else newest - 1
    if run is None or run < 0:
        raise UnknownError(f"container {name} of job {query.job.id} has written nothing")
    path = places.log_path(home, key, name, run)
    try:
        opened = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise UnknownError(f"what container {name} wrote is not kept any more") from None
    try:
        size = os.fstat(opened).st_size
        offset = max(0, size + query.offset) if query.offset < 0 else query.offset
        content = os.pread(opened, query.limit, offset)
    finally:
        os.close(opened)
    return Output(content=content, next=offset + len(content), where=str(path))
