"""Whether and how jobs make room for others, in Slurm's words."""

from muster.model.queue import PreemptMode
from muster.model.site import Site


def preempts(site: Site) -> bool:
    """May any job have to make room for another?"""
    return site.policy.preempt.by_class and any(each.preempts for each in site.classes.values())


def preempt_mode(site: Site) -> str:
    """What becomes of jobs that make room; `OFF` where none does."""
    if not preempts(site):
        return "OFF"
    modes = [each.preempt_mode for each in site.classes.values() if each.preemptible]
    mode = (modes or [PreemptMode.REQUEUE])[0]
    slurms = {PreemptMode.CHECKPOINT: "REQUEUE", PreemptMode.SUSPEND: "SUSPEND,GANG"}
    return slurms.get(mode, mode.upper())
