"""What fields mean that objects of every kind have, for `kubectl explain`: in our own words."""

from typing import Any

OF_OBJECTS = {
    "apiVersion": "APIVersion defines in which version of its kind the object is written.",
    "kind": "Kind is a string that says what the object is; it never changes.",
    "metadata": "Standard object's metadata: what it is called, and what all objects have.",
}
"""Fields of an object itself."""

OF_METADATA = {
    "annotations": "Annotations are texts that programs keep with the object.",
    "creationTimestamp": "CreationTimestamp is a timestamp of when the object was created.",
    "deletionTimestamp": "DeletionTimestamp is when the object goes, if somebody has deleted it.",
    "finalizers": "Finalizers name those who finish something before the object goes.",
    "generateName": "GenerateName is how the name begins where the server chooses it.",
    "generation": "Generation is a number that grows when what is wanted changes.",
    "labels": "Labels are names and values by which objects are selected.",
    "managedFields": "ManagedFields say who set which fields last.",
    "name": "Name is what the object is called, and no other of its kind there.",
    "namespace": "Namespace is where the object is.",
    "ownerReferences": "OwnerReferences name the objects with which this one goes.",
    "resourceVersion": "ResourceVersion says which version of the object this is.",
    "uid": "UID is no other object's, not even of one that had this name before.",
}
"""Fields of its metadata."""


def with_words(schema: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    """The schema with these words at its fields, where they have none."""
    fields = {
        name: {"description": words[name], **field} if name in words else field
        for name, field in schema.get("properties", {}).items()
    }
    return {**schema, "properties": fields}
