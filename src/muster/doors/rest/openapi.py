"""The description of the API, made from the same table as its routes."""

import html
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from muster import __version__
from muster.api.site import Problem
from muster.doors.rest.operation import JSON, Asked, Content, Operation, Parameter

Schema = dict[str, Any]

_KINDS = {"int": "integer", "str": "string", "path": "string"}
_IN_PATH = re.compile(r"\{(\w+)(?::(\w+))?\}")
_REFERENCE = "#/components/schemas/{name}"


def description(operations: Sequence[Operation]) -> Schema:
    """OpenAPI 3.1."""
    types = _types(operations)
    _, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    paths: dict[str, Schema] = {}
    for each in operations:
        paths.setdefault(shown_path(each.path), {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Muster",
            "version": __version__,
            "description": "One queue, one policy, every decision explained.",
        },
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Over TCP. On the unix socket the kernel says who you are.",
                }
            },
        },
    }


def shown_path(path: str) -> str:
    """`/v1/jobs/{id}`: without the kinds that routes know."""
    return _IN_PATH.sub(r"{\1}", path)


def described(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """The routes that show the description: for programs, and as a page for people."""
    own = (
        Operation(
            method="GET",
            path="/v1/openapi.json",
            summary="Read this description",
            answer=_nothing,
            open=True,
        ),
        Operation(
            method="GET",
            path="/v1/docs",
            summary="Read this description as a page",
            answer=_nothing,
            media="text/html",
            open=True,
        ),
    )
    whole = description((*operations, *own))
    json = Content(body=msgspec.json.encode(whole))
    page = Content(body=_page(whole).encode(), media="text/html; charset=utf-8")
    return tuple(_answering(each, what) for each, what in zip(own, (json, page), strict=True))


async def _nothing(_: Asked) -> Content:
    return Content(body=b"")


def _answering(operation: Operation, content: Content) -> Operation:
    async def answer(_: Asked) -> Content:
        return content

    return replace(operation, answer=answer)


def _types(operations: Sequence[Operation]) -> list[type]:
    named = [kind for each in operations for kind in (each.takes, each.gives) if kind is not None]
    return [*dict.fromkeys(named), Problem]


def _operation(operation: Operation) -> Schema:
    found: Schema = {
        "operationId": _identity(operation),
        "summary": operation.summary,
        "tags": [operation.path.removeprefix("/v1").strip("/").partition("/")[0]],
        "parameters": [
            *(_in_path(name, kind) for name, kind in _IN_PATH.findall(operation.path)),
            *map(_parameter, operation.parameters),
        ],
        "responses": {
            str(operation.status): {
                "description": operation.summary,
                "content": {operation.media: {"schema": _answer_schema(operation)}},
            },
            "default": {
                "description": "What went wrong, and what to do",
                "content": {"application/problem+json": {"schema": _reference(Problem)}},
            },
        },
    }
    if operation.takes is not None:
        found["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": _reference(operation.takes)}},
        }
    return found | ({"security": []} if operation.open else {})


def _identity(operation: Operation) -> str:
    words = re.findall(r"[a-z]+", shown_path(operation.path).removeprefix("/v1"))
    return "_".join((operation.method.lower(), *words))


def _in_path(name: str, kind: str) -> Schema:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": _KINDS[kind or "str"]},
    }


def _parameter(parameter: Parameter) -> Schema:
    one: Schema = {"type": parameter.kind}
    schema = {"type": "array", "items": one} if parameter.repeated else one
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.text,
        "schema": schema,
    }


def _answer_schema(operation: Operation) -> Schema:
    if operation.gives is not None:
        return _reference(operation.gives)
    return {"type": "object"} if operation.media == JSON else {"type": "string"}


def _reference(kind: type) -> Schema:
    return {"$ref": _REFERENCE.format(name=kind.__name__)}


def _page(whole: Schema) -> str:
    """A plain page that needs nothing from elsewhere."""
    rows = "".join(
        f"<tr><td>{method.upper()}</td><td><code>{html.escape(path)}</code></td>"
        f"<td>{html.escape(operation['summary'])}</td><td>{_names(operation)}</td></tr>"
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
    )
    schemas = "".join(
        f'<h3 id="{html.escape(name)}">{html.escape(name)}</h3>'
        f"<p>{html.escape(schema.get('description', ''))}</p>"
        f"<p>{', '.join(map(_code, schema['properties']))}</p>"
        for name, schema in whole["components"]["schemas"].items()
        if "properties" in schema
    )
    style = "body{font:16px sans-serif;max-width:70em;margin:2em auto}td{padding:.2em .8em}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Muster's API</title>"
        f"<style>{style}</style><h1>Muster {__version__}</h1>"
        f'<p>For programs: <a href="openapi.json">openapi.json</a></p>'
        f"<table>{rows}</table><h2>Documents</h2>{schemas}</html>"
    )


def _code(name: str) -> str:
    return f"<code>{html.escape(name)}</code>"


def _names(operation: Schema) -> str:
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    schemas = (content["schema"] for body in bodies for content in body.get("content", {}).values())
    named = (schema["$ref"].rpartition("/")[2] for schema in schemas if "$ref" in schema)
    return " ".join(f'<a href="#{name}">{name}</a>' for name in dict.fromkeys(named))
