"""What jobs of PBS and LSF scripts find in their environment. Pure.

Whoever reads such a script puts into the launch what was known when it was submitted; that is also
how we know that it is one. Here is what is known only when the job has its place.
"""

from muster.backends.base import Run
from muster.backends.local.attempt.spool import HOST_FILES
from muster.model.placement import Placement

FROM_PBS, FROM_LSF = HOST_FILES


def of_attempt(run: Run) -> dict[str, str]:
    """Nothing, for jobs that are neither."""
    if FROM_PBS in run.launch.env:
        return _pbs(run)
    return _lsf(run) if FROM_LSF in run.launch.env else {}


def hosts(run: Run) -> str | None:
    """The lines of the host file: a node's name once for each of its slots."""
    if HOST_FILES.keys().isdisjoint(run.launch.env):
        return None
    lines = (each.node for each in run.allocation.placements for _ in range(_slots(each)))
    return "".join(f"{node}\n" for node in lines)


def _pbs(run: Run) -> dict[str, str]:
    spec, placements = run.job.spec, run.allocation.placements
    found = {
        "PBS_JOBID": str(run.job.id),
        "PBS_JOBNAME": spec.name,
        "PBS_QUEUE": spec.queue,
        "PBS_O_QUEUE": spec.queue,
        "PBS_O_LOGNAME": spec.user,
        "PBS_NUM_NODES": str(len({each.node for each in placements})),
        "PBS_NUM_PPN": str(_slots(placements[0])),
        "PBS_NP": str(sum(map(_slots, placements))),
        "NCPUS": str(_slots(placements[0])),
        "OMP_NUM_THREADS": run.launch.env.get("OMP_NUM_THREADS", str(_slots(placements[0]))),
    }
    if spec.array is not None:
        index = str(spec.array.index)
        found |= {
            "PBS_JOBID": f"{spec.array.array}[{index}]",
            "PBS_ARRAY_ID": f"{spec.array.array}[]",
            "PBS_ARRAY_INDEX": index,
            "PBS_ARRAYID": index,
        }
    return found


def _lsf(run: Run) -> dict[str, str]:
    spec, placements = run.job.spec, run.allocation.placements
    part = spec.array
    slots = [(each.node, _slots(each)) for each in placements]
    return {
        "LSB_JOBID": str(run.job.id if part is None else part.array),
        "LSB_JOBINDEX": "0" if part is None else str(part.index),
        "LSB_JOBNAME": spec.name if part is None else f"{spec.name}[{part.index}]",
        "LSB_QUEUE": spec.queue,
        "LSB_HOSTS": " ".join(node for node, count in slots for _ in range(count)),
        "LSB_MCPU_HOSTS": " ".join(f"{node} {count}" for node, count in slots),
        "LSB_DJOB_NUMPROC": str(sum(count for _, count in slots)),
        "LSB_SUB_USER": spec.user,
    }


def _slots(placement: Placement) -> int:
    return max(1, placement.amount.cpu_milli // 1_000)
