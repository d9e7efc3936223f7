import pytest

from muster.doors.kubernetes.pods import support
from muster.doors.kubernetes.pods.support import TABLE, Treatment
from unit.doors.kubernetes.pods.golden import GOLDEN, pod

TWINS = {
    "ConfigMapKeySelector": "KeySelector",
    "SecretKeySelector": "KeySelector",
    "ConfigMapEnvSource": "EnvSource",
    "SecretEnvSource": "EnvSource",
    "PodAntiAffinity": "PodAffinity",
    "ConfigMapProjection": "ObjectProjection",
    "SecretProjection": "ObjectProjection",
    "DownwardAPIProjection": "DownwardAPIVolumeSource",
}
"""Parts of the schema that have the same fields, and are one part of ours."""

PAGE = GOLDEN.parents[2] / "docs" / "reference" / "kubernetes-pods.md"


def schema() -> dict[str, set[str]]:
    """Every part of the schema of a pod's spec, with its fields."""
    found: dict[str, set[str]] = {}
    for line in (GOLDEN / "pod-fields.txt").read_text(encoding="utf-8").splitlines()[3:]:
        name, _, fields = line.partition(":")
        found[name] = set(fields.split())
    return found


@pytest.mark.parametrize("name", sorted(schema()))
def test_every_field_is_used_refused_or_warned_about(name: str) -> None:
    known = TABLE.get(TWINS.get(name, name))

    if known is None:
        assert name not in used_parts()
    else:
        assert schema()[name] - known.keys() == set()


def test_the_table_names_no_field_that_kubernetes_does_not_have() -> None:
    fields = {(TWINS.get(name, name), field) for name, found in schema().items() for field in found}

    ours = {(name, field) for name, found in TABLE.items() for field in found}

    assert ours - fields == set()


def test_what_has_no_effect_is_said() -> None:
    resizes = "{name: a, image: i, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]}"
    spec = pod(f"shareProcessNamespace: true\ncontainers: [{resizes}]")["spec"]

    assert support.warnings(spec) == (
        "spec.shareProcessNamespace has no effect: each container sees its own processes",
        "spec.containers[0].resizePolicy has no effect: resources do not change while a pod runs",
    )


def test_what_means_nothing_else_is_not_said() -> None:
    spec = pod("shareProcessNamespace: false\nhostNetwork: false\ncontainers: []")["spec"]

    assert support.warnings(spec) == ()
    assert support.refusals(spec) == ()


def test_the_page_of_the_docs_is_up_to_date() -> None:
    assert support.page() in PAGE.read_text(encoding="utf-8"), "run `make reference`"


def used_parts() -> set[str]:
    """Parts that a field leads to which is used."""
    return {
        field.of
        for fields in TABLE.values()
        for field in fields.values()
        if field.treatment is Treatment.USED
    }
