from muster.doors.kubernetes.objects.errors import (
    forbidden_field,
    invalid,
    invalid_object,
    not_found,
    not_supported,
    required,
)
from muster.doors.kubernetes.objects.kinds import CONFIG_MAP, JOB, POD


def test_what_is_not_there_is_named_with_its_resource() -> None:
    assert not_found(JOB, "train").status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'jobs.batch "train" not found',
        "reason": "NotFound",
        "details": {"name": "train", "group": "batch", "kind": "jobs"},
        "code": 404,
    }


def test_one_cause_stands_alone_and_several_in_brackets() -> None:
    one = invalid_object(POD, "p", [required("spec.containers")])
    two = invalid_object(POD, "p", [required("a", "say it"), forbidden_field("b", "no")])

    assert one.message == 'Pod "p" is invalid: spec.containers: Required value'
    assert two.message == 'Pod "p" is invalid: [a: Required value: say it, b: Forbidden: no]'


def test_equal_lines_are_said_once_and_counted_as_causes_twice() -> None:
    same = [invalid("metadata.name", "A", "bad"), invalid("metadata.name", "A", "bad")]

    error = invalid_object(CONFIG_MAP, "A", same)

    assert error.message == 'ConfigMap "A" is invalid: metadata.name: Invalid value: "A": bad'
    assert error.details is not None
    assert len(error.details["causes"]) == 2


def test_the_values_that_would_do_are_listed() -> None:
    cause = not_supported("spec.type", "x", ["A", "B"])

    assert cause.message == 'Unsupported value: "x": supported values: "A", "B"'
