"""Requests as they are written at each door: exact flags and fields (pure)."""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.launch import Launch
from muster.model.value import HOUR, MINUTE, SECOND, Duration, NodeId


class Language(StrEnum):
    """How requests are written at the door that a job came through.

    muster: options of `muster submit`; in job files, REST and Python the same names are keys.
    """

    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    MUSTER = "muster"


def language_of(launch: Launch | None) -> Language:
    """How the job was written, as far as what it runs tells."""
    if launch is None:
        return Language.MUSTER
    if launch.pods or launch.adopts:
        return Language.KUBERNETES
    return Language.SLURM if launch.submit_line is not None else Language.MUSTER


def cpus(count: int, language: Language) -> str:
    """CPUs of each task."""
    return _CPUS[language].format(count)


def gpus(count: int, language: Language) -> str:
    """Whole GPUs of each task."""
    return _GPUS[language].format(count)


def memory(mib: int, language: Language) -> str:
    """Memory of each task."""
    return _MEMORY[language].format(mib)


def profile(name: str, language: Language) -> str:
    """One MIG instance."""
    return _PROFILES[language].format(name)


def share(percent: int, language: Language) -> str:
    """A part of a GPU under MPS; empty where pods cannot ask for one."""
    return _SHARES[language].format(percent)


def time_limit(limit: Duration, language: Language) -> str:
    """The time limit, in whole minutes."""
    minutes = -(-limit // MINUTE)
    match language:
        case Language.SLURM:
            return f"--time={minutes // 60}:{minutes % 60:02d}:00"
        case Language.KUBERNETES:
            return f"activeDeadlineSeconds: {minutes * MINUTE // SECOND}"
        case Language.MUSTER:
            return f"--time {minutes // 60}h" if limit % HOUR == 0 else f"--time {minutes}m"


def without(node: NodeId, language: Language) -> str:
    """Anywhere but on this node."""
    match language:
        case Language.SLURM:
            return f"--exclude={node}"
        case Language.KUBERNETES:
            return (
                f"nodeAffinity: {{key: kubernetes.io/hostname, operator: NotIn, values: [{node}]}}"
            )
        case Language.MUSTER:
            return f"--exclude {node}"


def one_node(language: Language) -> str:
    """All tasks beside each other."""
    return _ONE_NODE[language]


def variable(name: str, value: str, language: Language) -> str:
    """A variable of the environment."""
    match language:
        case Language.SLURM:
            return f"--export=ALL,{name}={value}"
        case Language.KUBERNETES:
            return f'env: {{name: {name}, value: "{value}"}}'
        case Language.MUSTER:
            return f"--env {name}={value}"


_Words = Mapping[Language, str]

_CPUS: _Words = {
    Language.SLURM: "--cpus-per-task={}",
    Language.KUBERNETES: "resources.limits.cpu: {}",
    Language.MUSTER: "--cpus {}",
}
_GPUS: _Words = {
    Language.SLURM: "--gpus-per-task={}",
    Language.KUBERNETES: "resources.limits.nvidia.com/gpu: {}",
    Language.MUSTER: "--gpus {}",
}
_MEMORY: _Words = {
    Language.SLURM: "--mem={}M",
    Language.KUBERNETES: "resources.limits.memory: {}Mi",
    Language.MUSTER: "--memory {}M",
}
_PROFILES: _Words = {
    Language.SLURM: "--gres=gpu:{}:1",
    Language.KUBERNETES: "resources.limits.nvidia.com/mig-{}: 1",
    Language.MUSTER: "--gpus 1 --slice mig:{}",
}
_SHARES: _Words = {
    Language.SLURM: "--gres=mps:{}",
    Language.KUBERNETES: "",
    Language.MUSTER: "--gpus 1 --slice mps:{}%",
}
_ONE_NODE: _Words = {
    Language.SLURM: "--nodes=1",
    Language.KUBERNETES: "podAffinity: {topologyKey: kubernetes.io/hostname}",
    Language.MUSTER: "--together node",
}
