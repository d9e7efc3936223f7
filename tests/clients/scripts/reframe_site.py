"""A site for ReFrame: the same nodes, looked at with sacct or squeue, used with srun or not."""

ACCESS = ["-p local"]
GPU = {"name": "gpu", "options": ["--gres=gpu:{num}"]}


def partition(name: str, scheduler: str, launcher: str) -> dict[str, object]:
    return {
        "name": name,
        "scheduler": scheduler,
        "launcher": launcher,
        "access": ACCESS,
        "environs": ["plain"],
        "resources": [GPU],
        "max_jobs": 8,
    }


site_configuration = {
    "systems": [
        {
            "name": "muster",
            "hostnames": [".*"],
            "modules_system": "nomod",
            "partitions": [
                partition("sacct", "slurm", "local"),
                partition("squeue", "squeue", "local"),
                partition("steps", "slurm", "srun"),
            ],
        }
    ],
    "environments": [{"name": "plain"}],
}
