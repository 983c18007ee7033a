"""Callers: the other end of an MCP connection, and what it may do."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from apps.accounts.access import has_scope
from apps.accounts.credentials import Credentials
from apps.accounts.models import APIToken, Scope
from apps.agent.tools.base import Tier, Tool
from apps.capabilities.catalog.drafts import PREFIX

STDIO = "stdio"
"""The program that `manage.py mcp` speaks with: it has no token, the command's options say what it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`program` is the API token's id, or `stdio`. `gone` is set once nobody waits for the answer any more."""

    user_id: UUID
    program: str
    may_write: bool
    reaches_out: bool = False
    person_answers: bool = False
    base_url: str = ""  # of the pages, for people
    credentials: Credentials | None = None  # those of a connection that ends with them
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of_token(cls, token: APIToken, base_url: str) -> "Caller":
        """The caller with what the token allows."""
        return cls(
            user_id=token.user_id,
            program=str(token.pk),
            may_write=has_scope(token, Scope.WRITE),
            reaches_out=token.reaches_out,
            person_answers=token.person_answers,
            base_url=base_url,
            credentials=Credentials.of(token.user, token, None),
        )


FindCaller: TypeAlias = Callable[[Any], Awaitable[Caller]]
"""(the request's context) -> Caller."""


def scope_for(tool: Tool) -> Scope:
    """The scope a call needs: as over REST, running a capability is more than reading."""
    reads = tool.tier == Tier.READ_ONLY and not tool.name.startswith(PREFIX) and not tool.reach
    return Scope.READ if reads else Scope.WRITE
