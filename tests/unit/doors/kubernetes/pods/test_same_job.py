"""The same job through the Slurm, REST and Kubernetes doors is the same spec."""

from datetime import UTC

import pytest

from muster.api.requests import JobFile
from muster.client.sending import Origin, sent
from muster.doors.kubernetes.pods.defaults import admitted, defaulted
from muster.doors.kubernetes.pods.job_of import PodWorld, job_of
from muster.doors.request.parse import Submitter, wanted
from muster.model.job import JobSpec
from muster.model.launch import NO_LAUNCH
from muster.model.value import ClassName, GpuModel, QueuePath, UserName, replace
from unit.doors.kubernetes.pods.golden import pod
from unit.doors.slurm.asked import NOW, asked

BY = Submitter(user=UserName("ann"), queue=QueuePath("nlp"), now=NOW)
HERE = Origin(workdir="/home/ann", environ={}, umask=0o022, zone=UTC)
WORLD = PodWorld(
    by=BY,
    origin=HERE,
    classes={"high": ClassName("high")},
    products={"A100-40GB": GpuModel("A100-40GB")},
)

LARGE = (
    ["-J", "p", "-A", "nlp", "-q", "high", "-t", "90", "-c", "4", "--mem=16G", "--gpus=2"],
    JobFile(name="p", queue="nlp", job_class="high", time="90m", cpus=4, memory="16G", gpus=2),
    """
    priorityClassName: high
    activeDeadlineSeconds: 5400
    containers:
    - {name: a, image: i, resources: {limits: {cpu: 4, memory: 16Gi, nvidia.com/gpu: 2}}}
    """,
)
PLACED = (
    ["-J", "p", "-A", "nlp", "-C", "nvlink=true", "-w", "node1", "-p", "gpu", "--gpus=A100-40GB:1"],
    JobFile(
        name="p",
        queue="nlp",
        cpus=1,
        require={"nvlink": "true"},
        nodes=("node1",),
        pools=("gpu",),
        gpus=1,
        gpu_models=("A100-40GB",),
    ),
    """
    nodeSelector:
      nvlink: "true"
      kubernetes.io/hostname: node1
      muster.io/pool: gpu
      nvidia.com/gpu.product: A100-40GB
    containers: [{name: a, image: i, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]
    """,
)


@pytest.mark.parametrize("job", [LARGE, PLACED], ids=["large", "placed"])
def test_three_doors_give_one_spec(job: tuple[list[str], JobFile, str]) -> None:
    words, file, manifest = job

    by_slurm = asked(*words).spec
    by_rest = wanted(sent(replace(file, command=("true",)), HERE), BY).spec
    by_pod = job_of(admitted(defaulted(pod(manifest)), None), WORLD).spec

    assert without_launch(by_pod) == without_launch(by_rest)
    assert without_launch(by_slurm) == without_launch(by_rest)


def without_launch(spec: JobSpec) -> JobSpec:
    """What runs differs by its nature; and Slurm's own words are kept for its own lists."""
    labels = {key: text for key, text in spec.labels.items() if not key.startswith("slurm/")}
    return replace(spec, launch=NO_LAUNCH, labels=labels)
