import pytest

from muster.doors.kubernetes.pods import security
from muster.doors.kubernetes.pods.security import Identity
from unit.doors.kubernetes.pods.golden import pod

ADA = Identity(uid=1_000, gid=100, groups=(4, 24))


CAPABILITIES = (
    'non-default capabilities (container "a" must not include "SYS_ADMIN" in '
    "securityContext.capabilities.add)"
)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("hostNetwork: true\nhostPID: true", "host namespaces (hostNetwork=true, hostPID=true)"),
        (
            "containers: [{name: a, securityContext: {privileged: true}}]",
            'privileged (container "a" must not set securityContext.privileged=true)',
        ),
        (
            "containers: [{name: a, securityContext: {capabilities: {add: [SYS_ADMIN, CHOWN]}}}]",
            CAPABILITIES,
        ),
        (
            "volumes: [{name: a, hostPath: {path: /root}}, {name: b, hostPath: {path: /data}}]",
            'hostPath volumes (volume "a")',
        ),
        (
            "securityContext: {sysctls: [{name: kernel.x, value: '1'}]}",
            "forbidden sysctls (kernel.x)",
        ),
    ],
)
def test_what_goes_beyond_the_person_is_refused(manifest: str, told: str) -> None:
    refused = security.refusal(pod(manifest), ADA, lambda path: path == "/data")

    assert refused is not None
    assert refused.code == 403
    assert (
        refused.message == f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {told}'
    )


def test_a_pod_runs_as_nobody_else() -> None:
    manifest = (
        "securityContext: {runAsUser: 0, supplementalGroups: [24, 27]}\n"
        "containers: [{name: a, securityContext: {runAsUser: 1000, runAsGroup: 5}}]"
    )

    refused = security.refusal(pod(manifest), ADA, lambda _: True)

    assert refused is not None
    assert refused.message == (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": '
        "runAsUser (pod must not set runAsUser=0: its processes have uid 1000), "
        'runAsGroup (container "a" must not set runAsGroup=5, '
        "pod must not set supplementalGroups=27)"
    )


def test_what_the_person_may_anyway_is_let_in() -> None:
    manifest = (
        "securityContext: {runAsUser: 1000, runAsGroup: 24, supplementalGroups: [4]}\n"
        "containers: [{name: a, securityContext: {capabilities: {drop: [ALL]}}}]\n"
        "volumes: [{name: v, hostPath: {path: /data}}]"
    )

    assert security.refusal(pod(manifest), ADA, lambda _: True) is None


def test_root_may_become_anybody() -> None:
    manifest = "securityContext: {runAsUser: 1000, runAsGroup: 7, supplementalGroups: [8]}"

    assert security.refusal(pod(manifest), Identity(uid=0, gid=0), lambda _: True) is None
    assert security.refusal(pod(manifest), ADA, lambda _: True) is not None
