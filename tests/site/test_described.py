"""Answers of the REST interface are what its OpenAPI description says, field by field.

A program that was generated from the description meets no field that is missing, of another type, or unknown to it."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator, FormatChecker

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.models import Message
from tests.site.belongings import TOOL, Belongings
from tests.site.routes import Route, all_routes, groups
from tests.site.test_two_users import parameters

pytestmark = pytest.mark.django_db

STREAMS = {
    "api/v1/builds/<str:build_id>/events/",
    "api/v1/capabilities/<str:capability>/zip/",
    "api/v1/export/",
    "api/v1/attachments/<str:attachment_id>/content/",
}
REST = [route for route in all_routes() if route.path.startswith("api/v1/")]

Call = tuple[str, str, dict[str, Any] | None, int]

SAME_NOTE = {"content": "Allergic to nuts", "tags": ["food"], "importance": 4}
DRAFT = {
    "name": "shout",
    "description": "Says it louder",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "files": {"main.py": "def run(args):\n    return args['text'].upper()\n"},
    "examples": [{"input": {"text": "a"}, "expect": "A"}],
}
CALLS: list[Call] = [
    ("POST", "memories/", SAME_NOTE, 201),
    ("POST", "memories/bulk/", {"memories": [SAME_NOTE, {"content": "Plays go"}]}, 201),
    ("POST", "import/", {"text": "I like tea.", "format": "izzy", "dry_run": True}, 202),
    ("PATCH", "memories/{note}/", {"importance": 5}, 200),
    ("POST", "memories/{note}/supersede/", {"content": "Allergic to nothing"}, 201),
    ("POST", "memories/{note}/undo/", {}, 200),
    ("POST", "memories/{note}/restore/", {"version": 1}, 200),
    ("POST", "memories/{deleted_note}/restore/", {}, 200),
    ("POST", "memories/{waiting_note}/accept/", {}, 200),
    ("POST", "memories/{waiting_note}/approve/", {}, 200),
    ("POST", "memories/{waiting_note}/reject/", {}, 204),
    ("POST", "memories/review/", {"decision": "reject", "notes": ["{waiting_note}"]}, 200),
    ("POST", "memories/contradictions/{edge}/", {"keep": None}, 204),
    ("POST", "memories/{note}/links/", {"target": "{waiting_note}"}, 201),
    ("POST", "memories/{note}/purge/", {}, 200),
    ("POST", "memory-files/", {"command": "view", "path": "/memories"}, 200),
    ("POST", "memory-files/{deleted_file}/restore/", {}, 200),
    ("POST", "memory-files/{file}/undo/", {}, 200),
    ("POST", "search/", {"query": "What about the shellfish allergy?", "top_k": 5}, 200),
    ("POST", "context/", {"query": "What about the shellfish allergy?", "budget_tokens": 200}, 200),
    ("POST", "ingest/", {"session": "s2", "messages": [{"role": "user", "content": "Hello"}]}, 202),
    ("POST", "conversations/", {"title": "Chess"}, 201),
    ("PATCH", "conversations/{conversation}/", {"title": "Go"}, 200),
    ("POST", "capabilities/", DRAFT, 201),
    ("POST", "capabilities/{tool}/disable/", {}, 200),
    ("POST", "capabilities/{tool}/approve/", {"version": 2}, 200),
    ("POST", "capabilities/{tool}/rollback/", {"version": 1}, 200),
]
"""Requests, with the ids of somebody's belongings in braces, and the status of the answer."""


@cache
def description() -> dict[str, Any]:
    described: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    plain: dict[str, Any] = json.loads(json.dumps(described))
    return plain


def operations(path: str) -> dict[str, Any]:
    """By method, of the address as the URL configuration writes it."""
    found: dict[str, Any] = description()["paths"]["/" + path.replace("<str:", "{").replace(">", "}")]
    return found


def operation(path: str, method: str) -> dict[str, Any]:
    found: dict[str, Any] = operations(path)[method.lower()]
    return found


def readable() -> list[Route]:
    return [route for route in REST if route.path not in STREAMS and "get" in operations(route.path)]


def strict(schema: Any) -> Any:
    """An OpenAPI 3.0 schema as JSON Schema, in which objects have no other properties than those described."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: strict(value)
        for key, value in schema.items()
        if key not in {"nullable", "readOnly", "writeOnly"}
    }
    if "properties" in schema and "additionalProperties" not in schema:
        made["additionalProperties"] = False
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made


@cache
def components() -> Any:
    return strict(description()["components"])


def problems(described: dict[str, Any], answer: Any) -> list[str]:
    """Where the answer differs from the schema."""
    validator = Draft202012Validator(
        strict(described) | {"components": components()}, format_checker=FormatChecker()
    )
    return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(answer)]


def check_answer(path: str, method: str, status: int, answer: Any) -> None:
    responses = operation(path, method)["responses"]
    assert str(status) in responses, (
        f"{method} {path} answers {status}, described are {sorted(responses)}"
    )
    if answer is None:
        assert "content" not in responses[str(status)]
        return
    described = responses[str(status)].get("content", {}).get("application/json", {}).get("schema")
    assert described is not None, f"{method} {path}: no body is described for {status}"
    assert problems(described, answer) == []


@pytest.fixture
def hers(hers: Belongings) -> Belongings:
    """Something of every kind; in the conversation also an answer that ran a tool."""
    ToolCall.objects.for_user(hers.owner).filter(pk=hers.tool_call).update(tier="server")
    Message.objects.create(
        user=hers.owner,
        conversation_id=hers.conversation,
        turn_id=hers.turn,
        position=1_000,
        role="assistant",
        text="Which one?",
        round=1,
    )
    return hers


@pytest.mark.parametrize("routes", groups(readable()))
def test_what_is_read_is_as_described(
    routes: list[Route], hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    ids = parameters(hers)
    values = {name: those[0] for name, those in ids.items()}
    client = sign_in(hers.owner)
    for route in routes:
        response = client.get(route.url(values))
        assert response.status_code == 200, (route, response.content)
        check_answer(route.path, "GET", 200, response.json())


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]} {call[1]}")
def test_what_is_done_is_as_described(
    call: Call, hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    method, template, body, status = call
    ids = {name: str(getattr(hers, name)) for name in hers.__dataclass_fields__} | {"tool": TOOL}
    filled = json.dumps(body)
    for name, value in ids.items():
        filled = filled.replace("{" + name + "}", value)
    url = "/api/v1/" + template.format(**ids)
    route = next(route for route in REST if fits(route, url))
    sent = operation(route.path, method).get("requestBody")
    if body:
        assert sent is not None, f"{method} {route.path}: its body is not described"
        assert problems(sent["content"]["application/json"]["schema"], json.loads(filled)) == []
    response = sign_in(hers.owner).generic(method, url, filled, content_type="application/json")
    assert response.status_code == status, response.content
    check_answer(route.path, method, status, response.json() if response.content else None)


def test_what_an_error_looks_like_is_described_for_each() -> None:
    found = [
        (path, status)
        for path, methods in description()["paths"].items()
        for answer in methods.values()
        for status, response in answer["responses"].items()
        if status >= "400" and "content" not in response
    ]
    assert found == []


def fits(route: Route, url: str) -> bool:
    parts, wanted = url.strip("/").split("/"), route.path.strip("/").split("/")
    return len(parts) == len(wanted) and all(
        want.startswith("<") or want == part for part, want in zip(parts, wanted, strict=True)
    )
