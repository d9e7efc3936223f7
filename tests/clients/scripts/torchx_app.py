"""A component for TorchX: two roles that say who they are."""

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
