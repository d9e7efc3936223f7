from pathlib import Path

import pytest

from muster.doors.kubernetes.foreign import page
from muster.doors.kubernetes.foreign.definitions import BUILT_IN, DEFINITIONS
from muster.doors.kubernetes.foreign.fields import REFUSED, WARNED, refusals, table, warnings
from muster.doors.kubernetes.foreign.kinds import foreign_kinds

PAGE = Path(__file__).parents[5] / "docs" / "reference" / "kubernetes-foreign.md"


def test_the_page_of_the_docs_is_up_to_date() -> None:
    assert page.page() == PAGE.read_text(encoding="utf-8"), "run `make reference`"


@pytest.mark.parametrize("where", [*WARNED, *REFUSED])
def test_what_is_said_of_a_field_is_said_of_one_that_there_is(where: str) -> None:
    name, _, field = where.partition(".")
    assert field in table()[name]


def test_what_has_no_effect_is_said() -> None:
    spec = {"runPolicy": {"schedulingPolicy": {"minResources": {"cpu": "1"}}}}

    assert warnings(spec, "PyTorchJob") == (
        "spec.runPolicy.schedulingPolicy.minResources has no effect: what the pods ask for counts",
    )


def test_what_cannot_be_had_is_refused() -> None:
    assert refusals({"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}, "PyTorchJob")
    assert not refusals(
        {"runPolicy": {"managedBy": "kubeflow.org/training-operator"}}, "PyTorchJob"
    )


def test_a_definition_of_a_built_in_kind_is_kept_and_says_so() -> None:
    crd = {
        "metadata": {"name": "pytorchjobs.kubeflow.org"},
        "spec": {"versions": [{"name": "v1", "storage": True}]},
    }
    assert DEFINITIONS.prepare is not None

    made = DEFINITIONS.prepare(crd, None)

    assert made["status"]["conditions"][-1]["type"] == BUILT_IN


def test_every_kind_has_a_schema_with_the_fields_of_its_spec() -> None:
    for custom in foreign_kinds().values():
        assert custom.schema["properties"]["spec"]["properties"], custom.kind
