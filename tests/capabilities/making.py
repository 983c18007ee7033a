"""Capabilities as the tests need them."""

from typing import Any
from uuid import UUID

from apps.accounts.models import User
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.versions import capability_create
from apps.capabilities.models import Capability

GREETING = '''def run(args: dict) -> str:
    """Say hello. Pass the name as people write it."""
    return f"Hello, {args['name']}!"
'''
NAME_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Whom to greet."}},
    "required": ["name"],
    "additionalProperties": False,
}


def draft(**parts: Any) -> Draft:
    """A draft of a tool that greets, but for the given parts."""
    values: dict[str, Any] = {
        "description": "Greet somebody by name.",
        "input_schema": NAME_SCHEMA,
        "main": GREETING,
        "tags": ["greeting"],
    }
    return Draft(**values | parts)


def make(
    owner: User, name: str = "greeter", *, approved_by: UUID | None = None, **parts: Any
) -> Capability:
    return capability_create(user_id=owner.pk, name=name, draft=draft(**parts), approved_by=approved_by)
