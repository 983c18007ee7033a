"""Reading the bodies of REST requests: every wrong type or value is an InvalidInput that names the field."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http import QueryDict

from apps.core.errors import InvalidInput, NotFound
from apps.core.ids import parse_id
from apps.core.registries import owners
from apps.core.text import clean_text
from apps.memory.database.lookups import has_tag
from apps.memory.fields import clean_tag, clean_threshold, clean_time
from apps.memory.history.versions import Version
from apps.memory.models import Memory
from apps.search.documents import Scope, Source

MAX_QUERY_CHARS = 10_000
MESSAGES_USED = 3
MAX_IDS = 200


def body_object(data: object, allowed: Collection[str]) -> dict[str, Any]:
    """The JSON object of a request, with no other fields than the allowed ones."""
    if not isinstance(data, Mapping) or isinstance(data, QueryDict):
        raise InvalidInput("The body must be a JSON object.", code="wrong_type")
    if unknown := [str(name)[:50] for name in data if name not in allowed]:
        raise InvalidInput(f"Unknown field: {unknown[0]}.", code="unknown_field", field=unknown[0])
    return dict(data)


def whole_number(value: object, *, field: str, low: int, high: int) -> int:
    """An integer within limits."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(f"{field} must be a whole number from {low} to {high}.", field=field)
    return value


def version_given(data: object) -> int | None:
    """The `version` of a body with nothing else in it; None where it names none."""
    value = body_object(data, {"version"}).get("version")
    return None if value is None else whole_number(value, field="version", low=1, high=2**31 - 1)


def version_wanted(data: object, versions: Sequence[Version]) -> int:
    """The same, or else the version before the last change; `versions` are newest first."""
    given = version_given(data)
    if given is None and len(versions) < 2:
        raise NotFound("Nothing has changed here yet.", code="unknown_version")
    return versions[1].version if given is None else given


def id_list(value: object, *, field: str) -> list[UUID]:
    """Ids of rows, each once. Raises NotFound for one that is none."""
    texts = _text_list(value, field=field, most=MAX_IDS)
    if not texts:
        raise InvalidInput(f"{field} must name at least one.", field=field)
    return list(dict.fromkeys(map(parse_id, texts)))


def optional_number(body: Mapping[str, Any], field: str, default: int, *, high: int) -> int:
    """An integer from 1 to `high`; `default` where it is missing or null."""
    value = body.get(field)
    return default if value is None else whole_number(value, field=field, low=1, high=high)


def optional_threshold(body: Mapping[str, Any]) -> float:
    """The `threshold` of a search, 0 to 1; 0 where it is missing or null."""
    return 0.0 if (value := body.get("threshold")) is None else clean_threshold(value)


def search_query(body: Mapping[str, Any]) -> str:
    """The `query` of a search."""
    return clean_text(body.get("query"), field="query", max_chars=MAX_QUERY_CHARS)


def context_query(body: Mapping[str, Any]) -> str:
    """What `/context/` looks for: `query`, or the text of the last three `messages`."""
    query, messages = body.get("query"), body.get("messages")
    if query is not None and messages:
        raise InvalidInput("Send either query or messages.", field="query")
    if query is not None:
        return search_query(body)
    if messages is None:
        raise InvalidInput("Send either query or messages.", field="query")
    if not isinstance(messages, list) or not messages:
        raise InvalidInput("messages must be a list with at least one message.", field="messages")
    texts = [_message_text(message)[:MAX_QUERY_CHARS] for message in messages[-MESSAGES_USED:]]
    joined = "\n".join(text for text in texts if text)
    return clean_text(joined, field="messages", max_chars=MESSAGES_USED * (MAX_QUERY_CHARS + 1))


def _message_text(message: object) -> str:
    """The text of a message: itself, or its `content`, which may be a list of blocks of which the texts count."""
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, Mapping) and block.get("type") == "text"]
        content = "\n".join(_text_list([block.get("text") for block in blocks], field="messages"))
    if not isinstance(content, str):
        raise InvalidInput(
            "A message is a text or an object with content.", code="wrong_type", field="messages"
        )
    return content


def search_scope(user_id: UUID, body: Mapping[str, Any]) -> Scope:
    """The limits of a search: `sources`, `conversation`, `as_of`, `tags`. Null is the same as absent."""
    sources = _sources(body.get("sources"))
    tags = _text_list(body.get("tags"), field="tags")
    only_ids: frozenset[UUID] | None = None
    if tags:
        sources = frozenset({Source.MEMORY}) & (sources or frozenset(Source))
        only_ids = _tagged(user_id, tags)
    as_of = body.get("as_of")
    return Scope(
        sources=sources,
        only_ids=only_ids,
        conversation_id=_conversation(user_id, body.get("conversation")),
        as_of=None if as_of is None else clean_time(as_of, field="as_of"),
    )


def _sources(value: object) -> frozenset[Source] | None:
    names = _text_list(value, field="sources")
    if unknown := [name for name in names if name not in {str(source) for source in Source}]:
        message = f"sources must be among {', '.join(Source)}; {unknown[0][:50]!r} is not."
        raise InvalidInput(message, field="sources")
    return frozenset(map(Source, names)) or None


def _text_list(value: object, *, field: str, most: int = 100) -> Sequence[str]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{field} must be a list of texts.", code="wrong_type", field=field)
    return value


def _tagged(user_id: UUID, tags: Sequence[str]) -> frozenset[UUID]:
    notes = Memory.objects.for_user(user_id)
    for tag in tags:
        notes = notes.filter(has_tag(clean_tag(tag)))
    return frozenset(notes.values_list("pk", flat=True))


def _conversation(user_id: UUID, value: object) -> UUID | None:
    """The id of one of the user's conversations; whose it is knows the app that owns conversations."""
    if value is None:
        return None
    conversation_id = parse_id(value)
    if "conversation" in owners and not owners["conversation"](user_id, conversation_id):
        raise NotFound("There is no conversation with this id.")
    return conversation_id
