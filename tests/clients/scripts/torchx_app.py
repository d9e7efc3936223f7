"""Components for TorchX: a role that says who it is, and two that work together."""

from torchx import specs


def greet(word: str = "hello", replicas: int = 1) -> specs.AppDef:
    role = specs.Role(
        name="greeter",
        image="",
        entrypoint="sh",
        args=["-c", f"echo {word} from $SLURM_JOB_ID replica {specs.macros.replica_id}"],
        num_replicas=replicas,
        # With GPUs it writes --gpus-per-task without --ntasks, which Slurm 22.05 refuses, as we do.
        resource=specs.Resource(cpu=1, gpu=0, memMB=200),
    )
    return specs.AppDef(name="greet", roles=[role])


def relay(throw: str = "") -> specs.AppDef:
    """One throws a ball to each of two others, which wait for it."""
    small = specs.Resource(cpu=1, gpu=0, memMB=200)
    says = "task $SLURM_PROCID of $SLURM_NTASKS threw the ball to task"
    throws = f"for to in 1 2; do echo {says} $to > ball.$SLURM_JOB_ID.$to; done"
    catches = "until [ -s $ball ]; do sleep 0.02; done; cat $ball"
    thrower = specs.Role(
        name="thrower", image="", entrypoint="sh", args=["-c", throw or throws], resource=small
    )
    catcher = specs.Role(
        name="catcher",
        image="",
        entrypoint="sh",
        args=["-c", f"ball=ball.$SLURM_JOB_ID.$SLURM_PROCID; {catches}"],
        num_replicas=2,
        resource=small,
    )
    return specs.AppDef(name="relay", roles=[thrower, catcher])
