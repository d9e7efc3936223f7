"""Trains a small network with plain PyTorch, on a GPU if there is one, and survives interruptions.

    muster submit --gpus 1 --checkpoint checkpoints -- python train.py --steps 2000

Model, optimiser, random numbers and the step go into every checkpoint, so that on a CPU an
interrupted training ends with the very loss that an undisturbed one ends with.
"""

import argparse
import sys

import torch

from muster.checkpoint import latest, on_preemption, restarts, saving


class Training:
    """Everything that a checkpoint has to hold."""

    def __init__(self, device: torch.device) -> None:
        torch.manual_seed(7)
        self.device = device
        self.model = torch.nn.Sequential(
            torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
        ).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.step = 0
        self.loss = float("inf")

    def advance(self) -> None:
        inputs = torch.randn(128, 8).to(self.device)
        wanted = inputs.square().sum(dim=1, keepdim=True)
        loss = torch.nn.functional.mse_loss(self.model(inputs), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        self.loss = loss.item()

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "step": self.step,
            "loss": self.loss,
        }
        with saving(f"step-{self.step}.pt") as path:
            torch.save(state, path)

    def restore(self) -> None:
        found = latest()
        if found is None:
            return
        print(f"going on from {found.name}", flush=True)
        state = torch.load(found, map_location="cpu")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.step, self.loss = state["step"], state["loss"]


def main() -> None:
    asked = arguments()
    # Small as it is, one thread is fastest, and adds up in the same order every time.
    torch.set_num_threads(1)
    training = Training(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    training.restore()
    with on_preemption() as preemption:
        while training.step < asked.steps:
            training.advance()
            if training.step % asked.every == 0 or preemption.asked:
                training.save()
                print(f"step {training.step} loss {training.loss:.6f}", flush=True)
            if preemption.asked:
                sys.exit(preemption.exit_code)
    print(f"trained {training.step} steps, loss {training.loss:.6f}, {restarts()} restarts")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains, and survives interruptions.")
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--every", type=int, default=100, help="steps from save to save")
    return parser.parse_args()


if __name__ == "__main__":
    main()
