"""What jobs of PBS and LSF scripts find in their environment.

Whatever reads such a script puts into the launch what is known at submission; that is also how we
recognise one. Here is what is known only when the job has its place.
"""

from muster.launch.attempt import PlacedAttempt
from muster.model.placement import Placement

FROM_PBS = "PBS_ENVIRONMENT"
FROM_LSF = "LS_SUBCWD"
_HOST_FILES = {FROM_PBS: "PBS_NODEFILE", FROM_LSF: "LSB_DJOB_HOSTFILE"}


def of_attempt(placed: PlacedAttempt) -> dict[str, str]:
    """Nothing, for jobs that are neither."""
    if FROM_PBS in placed.launch.env:
        return _pbs(placed)
    return _lsf(placed) if FROM_LSF in placed.launch.env else {}


def host_file_variables(placed: PlacedAttempt) -> tuple[str, ...]:
    """The variables that must name a host file; empty for jobs that expect none."""
    return tuple(name for mark, name in _HOST_FILES.items() if mark in placed.launch.env)


def hosts(placed: PlacedAttempt) -> str:
    """The lines of the host file: a node's name once for each of its slots."""
    lines = (each.node for each in placed.allocation.placements for _ in range(_slots(each)))
    return "".join(f"{node}\n" for node in lines)


def _pbs(placed: PlacedAttempt) -> dict[str, str]:
    spec, placements = placed.job.spec, placed.allocation.placements
    slots = str(_slots(placements[0]))
    found = {
        "PBS_JOBID": str(placed.job.id),
        "PBS_JOBNAME": spec.name,
        "PBS_QUEUE": spec.queue,
        "PBS_O_QUEUE": spec.queue,
        "PBS_O_LOGNAME": spec.user,
        "PBS_NUM_NODES": str(len({each.node for each in placements})),
        "PBS_NUM_PPN": slots,
        "PBS_NP": str(sum(map(_slots, placements))),
        "NCPUS": slots,
        "OMP_NUM_THREADS": placed.launch.env.get("OMP_NUM_THREADS", slots),
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


def _lsf(placed: PlacedAttempt) -> dict[str, str]:
    spec, part = placed.job.spec, placed.job.spec.array
    slots = [(each.node, _slots(each)) for each in placed.allocation.placements]
    return {
        "LSB_JOBID": str(placed.job.id if part is None else part.array),
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
