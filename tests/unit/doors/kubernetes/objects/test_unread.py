from muster.doors.kubernetes.objects.unread import unread_conditions, unread_rules
from muster.doors.kubernetes.objects.value import JsonObject

RULE = {"x-kubernetes-validations": [{"rule": "self.size > 0"}]}


def definition(schema: JsonObject) -> JsonObject:
    return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}


def test_a_definition_without_rules_is_not_warned_of() -> None:
    assert unread_rules(definition({"type": "object", "x-kubernetes-validations": []})) == ()


def test_rules_are_told_of_once_with_the_place_of_the_first() -> None:
    nested = {"properties": {"a": {"items": RULE}, "b": RULE}}

    (told,) = unread_rules(definition(nested))

    first = "spec.versions[0].schema.openAPIV3Schema.properties.a.items.x-kubernetes-validations"
    assert told.startswith(f"{first}, and 1 more: rules are kept, and not evaluated")


def test_each_webhook_with_conditions_is_told_of() -> None:
    condition = {"name": "only", "expression": "object.metadata.name != 'skip-me'"}
    found = {"webhooks": [{"name": "a"}, {"name": "b", "matchConditions": [condition]}]}

    (told,) = unread_conditions(found)

    assert told.startswith("webhooks[1].matchConditions are kept, and not evaluated")
