"""A user of Lightning whose job must make room: it checkpoints, requeues itself, goes on."""

import os
import signal
import time
from pathlib import Path

import lightning
import torch
from lightning.pytorch.plugins.environments import SLURMEnvironment
from torch.utils.data import DataLoader, TensorDataset

RESTARTS = os.environ.get("SLURM_RESTART_COUNT", "0")


class Line(lightning.LightningModule):
    """Learns a line, slowly in its first life."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def _register_sharded_tensor_state_dict_hooks_if_available(self) -> None:
        """Debian's PyTorch 1.13 cannot import sharded tensors with Python 3.11."""

    def on_train_start(self) -> None:
        with Path("lives.txt").open("a", encoding="utf-8") as file:
            print(RESTARTS, self.global_step, file=file)

    def on_train_batch_end(self, *_: object) -> None:
        if self.global_step == 5:
            Path("warm").touch()

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        if RESTARTS == "0":
            time.sleep(0.1)
        (numbers,) = batch
        return torch.nn.functional.mse_loss(self.layer(numbers), 2 * numbers)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    numbers = DataLoader(TensorDataset(torch.rand(64, 1)), batch_size=4)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=400,
        max_epochs=-1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=".",
        plugins=[SLURMEnvironment(auto_requeue=True, requeue_signal=signal.SIGUSR1)],
    )
    trainer.fit(Line(), numbers)
    print("steps", trainer.global_step)


if __name__ == "__main__":
    main()
