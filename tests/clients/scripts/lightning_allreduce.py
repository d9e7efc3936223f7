"""A user of Lightning: two tasks of a job add their ranks, as its SLURM environment joined them."""

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments import SLURMEnvironment


def main() -> None:
    assert SLURMEnvironment.detect()
    fabric = Fabric(accelerator="cpu", devices=2, num_nodes=1, strategy="ddp")
    fabric.launch()
    total = fabric.all_reduce(torch.tensor(float(fabric.global_rank + 1)), reduce_op="sum")
    print("rank", fabric.global_rank, "of", fabric.world_size, "sum", int(total))


if __name__ == "__main__":
    main()
