"""Which model server is used, and which model for which purpose."""

from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings

from apps.accounts.secrets import secret_get
from apps.agent.models import ModelCall

Purpose: TypeAlias = Literal["chat", "builder", "extract", "fast"]

ANTHROPIC_URL = "https://api.anthropic.com"
OFFLINE = ModelCall.Endpoint.OFFLINE.value  # stands for the model where none answers
NO_KEY = "none-needed"
"""Sent as the key to a server of one's own that asks for none; the SDK refuses to send no key at all."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go: Anthropic's own API, a custom server that speaks it, or the offline model in this process."""

    kind: ModelCall.Endpoint
    base_url: str = ""
    api_key: str = ""

    @property
    def server(self) -> str:
        """The address as anybody may read it."""
        return without_user(self.base_url)

    @property
    def is_anthropic(self) -> bool:
        """Whether cache markers and server tools may be sent."""
        return self.kind == ModelCall.Endpoint.ANTHROPIC

    @property
    def is_offline(self) -> bool:
        return self.kind == ModelCall.Endpoint.OFFLINE

    @property
    def searches_the_web(self) -> bool:
        """Whether the endpoint itself searches the web; the setting may leave that to Izzy."""
        return self.is_anthropic and settings.IZZY_WEB_SEARCH in {"auto", "anthropic"}

    def answering(self, model: str) -> str:
        """The name under which an answer to a request for `model` is recorded."""
        return OFFLINE if self.is_offline else model


def without_user(url: str) -> str:
    """The address without the user name, password or query it may carry."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def current_endpoint() -> Endpoint:
    """The endpoint by the environment, else by what the superuser set on the instance page. Reads the database."""
    key, url = secret_get("anthropic_api_key"), secret_get("anthropic_base_url").rstrip("/")
    if not key and not url:
        return Endpoint(ModelCall.Endpoint.OFFLINE)
    if not url or urlsplit(url).hostname == urlsplit(ANTHROPIC_URL).hostname:
        return Endpoint(ModelCall.Endpoint.ANTHROPIC, url or ANTHROPIC_URL, key or NO_KEY)
    return Endpoint(ModelCall.Endpoint.CUSTOM, url, key or NO_KEY)


def model_for(purpose: Purpose) -> str:
    """The model that the settings name for this purpose."""
    names = {
        "chat": settings.IZZY_CHAT_MODEL,
        "builder": settings.IZZY_BUILDER_MODEL,
        "extract": settings.IZZY_EXTRACT_MODEL,
        "fast": settings.IZZY_FAST_MODEL,
    }
    return str(names[purpose])
