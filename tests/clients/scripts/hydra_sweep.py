"""A user of Hydra with its submitit launcher: `-m rate=0.1,0.2` makes an array of jobs."""

import os
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@hydra.main(version_base=None, config_path=None)
def main(config: DictConfig) -> float:
    done = Path(HydraConfig.get().runtime.output_dir, "done.txt")
    done.write_text(f"{config.rate} {os.environ['SLURM_ARRAY_TASK_ID']}\n", encoding="utf-8")
    return config.rate


if __name__ == "__main__":
    main()
