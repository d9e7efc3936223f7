import re

import msgspec
import pytest

from muster.doors.rest.app import TABLE
from muster.doors.rest.openapi import described, description, shown_path
from muster.doors.rest.operation import Operation

WHOLE = (*TABLE, *described(TABLE))
DESCRIPTION = description(WHOLE)


@pytest.mark.parametrize("operation", WHOLE, ids=lambda each: f"{each.method} {each.path}")
def test_every_route_is_described(operation: Operation) -> None:
    found = DESCRIPTION["paths"][shown_path(operation.path)][operation.method.lower()]

    assert found["summary"] == operation.summary
    assert str(operation.status) in found["responses"]
    assert ("requestBody" in found) == (operation.takes is not None)
    in_path = re.findall(r"\{(\w+)\}", shown_path(operation.path))
    assert [each["name"] for each in found["parameters"] if each["in"] == "path"] == in_path


def test_every_reference_leads_somewhere() -> None:
    schemas = DESCRIPTION["components"]["schemas"]

    names = {reference.rpartition("/")[2] for reference in references(DESCRIPTION)}

    assert names - schemas.keys() == set()
    assert {"JobDocument", "SubmitDocument", "Problem"} <= names


def test_operations_have_names_of_their_own() -> None:
    names = [
        operation["operationId"]
        for methods in DESCRIPTION["paths"].values()
        for operation in methods.values()
    ]

    assert len(names) == len(set(names)) == len(WHOLE)


def test_the_description_says_what_it_is() -> None:
    assert DESCRIPTION["openapi"] == "3.1.0"
    assert DESCRIPTION["info"]["title"] == "Muster"
    assert DESCRIPTION["paths"]["/healthz"]["get"]["security"] == []


def test_a_document_describes_its_fields() -> None:
    submit = DESCRIPTION["components"]["schemas"]["SubmitDocument"]

    assert submit["properties"]["command"]["type"] == "array"
    assert submit["additionalProperties"] is False
    assert "script" in submit["description"]


def references(node: object) -> set[str]:
    text = msgspec.json.encode(node).decode()
    return set(re.findall(r'"\$ref":"([^"]+)"', text))
