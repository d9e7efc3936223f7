"""Which pods are refused because of the tool that would run them."""

import re

import pytest

from muster.backends.local.isolation.users import LaunchError
from muster.backends.local.pods.starting import demand_tool
from muster.model.pod import Container, EmptyFolder, HostFolder, Mount, PodLaunch, Volume

SCRATCH = Volume(name="v", source=EmptyFolder())
HOST = Volume(name="v", source=HostFolder(path="/data"))


def a_pod(volume: Volume, part: str = "") -> PodLaunch:
    mount = Mount(volume="v", path="/v", part=part)
    main = Container(name="main", image="busybox", mounts=(mount,))
    return PodLaunch(namespace="n", name="p", uid="u", containers=(main,), volumes=(volume,))


@pytest.mark.parametrize(
    ("tool", "pod", "is_root", "why"),
    [
        (
            "/usr/bin/docker",
            a_pod(HOST),
            True,
            "docker does not see what Muster opens for a hostPath",
        ),
        (
            "/usr/bin/docker",
            a_pod(SCRATCH, "a"),
            True,
            "a subPath: leave it out, or install podman",
        ),
        ("/usr/bin/apptainer", a_pod(SCRATCH), True, "runs no pods: install podman or docker"),
        ("/usr/bin/singularity", a_pod(SCRATCH), False, "runs no pods: install podman or docker"),
    ],
)
def test_a_pod_that_its_tool_would_run_wrongly_is_refused(
    tool: str, pod: PodLaunch, is_root: bool, why: str
) -> None:
    with pytest.raises(LaunchError, match=re.escape(why)):
        demand_tool(tool, pod, is_root=is_root)


@pytest.mark.parametrize(
    ("tool", "pod", "is_root"),
    [
        ("/usr/bin/docker", a_pod(SCRATCH), True),
        ("/usr/bin/docker", a_pod(HOST, "a"), False),
        ("/usr/bin/podman", a_pod(HOST, "a"), True),
    ],
)
def test_other_pods_are_run(tool: str, pod: PodLaunch, is_root: bool) -> None:
    demand_tool(tool, pod, is_root=is_root)
