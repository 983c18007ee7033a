"""Finds what a draft asks for and what of it is allowed by now, and asks for its secrets. The builder's model learns
whether the user said yes, never a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

from apps.accounts.secrets import secret_get
from apps.agent.tools.base import ToolFailure
from apps.builder.models import Build
from apps.builder.services.ending import secrets_allowed
from apps.builder.workshop.workshop import Workshop
from apps.capabilities.drafts import Draft
from apps.core.database import in_db

WISH = "May it use your secret {names}?"
DECLINED = "The user declined {names}. Do not ask again: build it without, or end with what is missing."


@dataclass(frozen=True, slots=True)
class Allowed:
    """`complete` where all that the draft declares is allowed and at hand, so that its examples can be run as they will be
    later. `environment` has the values of its secrets by name."""

    complete: bool
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)


def is_undecided(shop: Workshop, build: Build, draft: Draft) -> bool:
    """Whether something that the draft declares is not allowed yet."""
    return bool(set(draft.hosts) - shop.bench.hosts) or not secrets_allowed(build, draft)


async def allowed_for(shop: Workshop, draft: Draft) -> Allowed:
    """Asks for secrets that are not allowed yet, once for the same wish. Raises ToolFailure where the user declined."""
    if set(draft.hosts) - shop.bench.hosts:
        return Allowed(complete=False)
    if not draft.secrets:
        return Allowed(complete=True)
    if not await in_db(_granted, shop.build_id, draft):
        await _ask(shop, draft)
    environment = await in_db(_environment, shop, draft)
    return Allowed(complete=bool(environment), environment=environment)


async def _ask(shop: Workshop, draft: Draft) -> None:
    names = ", ".join(draft.secrets)
    if shop.declined_secrets & set(draft.secrets):
        raise ToolFailure(DECLINED.format(names=names))
    wish = frozenset(draft.secrets), frozenset(draft.hosts)
    if wish in shop.asked_secrets:
        return
    shop.asked_secrets.add(wish)
    question = {
        "kind": "secrets",
        "secrets": list(draft.secrets),
        "hosts": list(draft.hosts),
        "text": WISH.format(names=names),
    }
    answer = await shop.post.ask(question, seconds=shop.answer_seconds)
    if answer is not None and answer.get("decision") != "allow":
        shop.declined_secrets |= set(draft.secrets)
        raise ToolFailure(DECLINED.format(names=names))


def _granted(build_id: UUID, draft: Draft) -> bool:
    return secrets_allowed(Build.objects.unscoped().get(pk=build_id), draft)


def _environment(shop: Workshop, draft: Draft) -> dict[str, str]:
    """The values of the allowed secrets; empty where one is not allowed, not stored, or cannot be read."""
    if not _granted(shop.build_id, draft):
        return {}
    values = {name: secret_get(name, user_id=shop.user_id) for name in draft.secrets}
    return values if all(values.values()) else {}
