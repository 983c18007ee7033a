"""Whether a run could carry something out that others' words made Izzy put into its input: then the user is asked first."""

from typing import Any

from django.utils import timezone

from apps.accounts.selectors import user_time_zone
from apps.agent.tools.base import Asking
from apps.core.errors import NotFound

from .models import Capability, CapabilityVersion, Execution
from .selectors import capability_get
from .unsaid import unsaid

MOST_RUNS = 100
"""Of the newest runs in a conversation so many are looked at for what was given before."""


def reason_to_ask(name: object, args: dict[str, Any], asking: Asking) -> str:
    """Why this run waits, in a sentence for the card; "" where the current version reaches no host and holds no secret, or
    nothing in the input could tell anybody anything that the user has not said."""
    try:
        capability = capability_get(asking.user_id, name)
    except NotFound:
        return ""
    version = capability.current
    if version is None or not (version.hosts or version.secrets):
        return ""
    piece = unsaid(
        args,
        schema=version.input_schema,
        said=asking.own(),
        known=[*(example["input"] for example in version.examples), *_given_before(version, asking)],
        today=timezone.now().astimezone(user_time_zone(asking.user_id)).date(),
    )
    if not piece:
        return ""
    return f"{_what_for(capability, version)} Izzy has read here what others wrote, and this did not come from you: “{piece}”."


def _given_before(version: CapabilityVersion, asking: Asking) -> list[Any]:
    """What this version was given in the conversation already: what is out is out."""
    runs = Execution.objects.for_user(asking.user_id).filter(
        conversation_id=asking.conversation_id, capability_id=version.capability_id, version=version.number
    )
    return list(runs.order_by("-created_at").values_list("input", flat=True)[:MOST_RUNS])


def _what_for(capability: Capability, version: CapabilityVersion) -> str:
    if version.hosts:
        return f"{capability.name} can pass on what it is given to {', '.join(version.hosts)}."
    return f"{capability.name} works with your secret {', '.join(version.secrets)}."
