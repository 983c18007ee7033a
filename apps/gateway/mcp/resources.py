"""Memory files and recent notes as MCP resources, and the context block as a prompt. Synchronous, for the database pool."""

from datetime import tzinfo
from urllib.parse import quote, unquote
from uuid import UUID

from mcp.types import (
    Annotations,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from apps.accounts.selectors import user_time_zone
from apps.agent.tools.results import UNTRUSTED
from apps.core.errors import REFUSALS, NotFound
from apps.core.ids import parse_id
from apps.core.text import clean_text, truncated
from apps.memory.files.selectors import file_at, files_in
from apps.memory.files.texts import ROOT, clean_path
from apps.memory.models import Memory, MemoryFile, Status, Trust, UsedIn
from apps.memory.notes.selectors import memory_get
from apps.memory.notes.uses import uses_record
from apps.memory.recall.searching import context_for
from apps.search.documents import Scope

FILES = "izzy://files"
NOTES = "izzy://notes/"
RECENT = f"{NOTES}recent"
RECENT_NOTES = 20
FROM_OTHERS = "from an untrusted source"
TITLE_CHARS = 80
PAGE = 200
MAX_QUERY_CHARS = 10_000
BUDGET_TOKENS = 500
CONTEXT = "context"
MARKDOWN = "text/markdown"
TYPES = {".json": "application/json", ".md": MARKDOWN}

TEMPLATES = [
    ResourceTemplate(
        name="file",
        title="A memory file",
        uri_template=f"{FILES}{ROOT}/{{+path}}",
        description="A file of the memory, by its path below /memories.",
    ),
    ResourceTemplate(
        name="note",
        title="A note",
        uri_template=f"{NOTES}{{note_id}}",
        description="A note, by the id that memory_search or memory_save gave.",
        mime_type=MARKDOWN,
    ),
]
PROMPTS = [
    Prompt(
        name=CONTEXT,
        title="What Izzy knows about this",
        description="The notes, files and past messages that matter for a question, within about 500 tokens.",
        arguments=[
            PromptArgument(name="query", description="The question, or its topic.", required=True)
        ],
    )
]


def resources_page(user_id: UUID, after: str) -> tuple[list[Resource], str]:
    """The resources after a cursor ("" for the beginning), and the cursor of the next page ("" where there is none): the
    recent notes first, newest first, then the files by path."""
    found = [] if after else [_recent(), *map(_note, _recent_notes(user_id))]
    files = list(files_in(user_id).filter(path__gt=after).defer("content")[: PAGE + 1])
    found += map(_file, files[:PAGE])
    return found, files[PAGE - 1].path if len(files) > PAGE else ""


def resource_read(user_id: UUID, uri: str) -> list[TextResourceContents]:
    """Raises NotFound."""
    if uri == RECENT:
        zone = user_time_zone(user_id)
        lines = [_line(note, zone) for note in _recent_notes(user_id)]
        return [_contents(uri, "\n".join(lines) or "There are no notes yet.", MARKDOWN)]
    if uri.startswith(NOTES):
        note = memory_get(user_id, parse_id(uri.removeprefix(NOTES)))
        if note.status != Status.ACTIVE:
            raise NotFound("There is no note with this id.")
        uses_record(user_id=user_id, reasons={note.pk: ""}, used_in=UsedIn.READ)
        return [_contents(uri, _marked(note.content, note.trust), MARKDOWN)]
    if uri.startswith(f"{FILES}/"):
        try:
            file = file_at(user_id, clean_path(unquote(uri.removeprefix(FILES))))
        except REFUSALS as error:
            raise NotFound(error.message) from error
        if file is not None:
            return [_contents(uri, _marked(file.content, file.trust), _mime_type(file.path))]
    raise NotFound("There is no resource with this address.")


def context_prompt(user_id: UUID, arguments: dict[str, str]) -> GetPromptResult:
    """The prompt `context`. Raises InvalidInput without a query."""
    query = clean_text(arguments.get("query"), field="query", max_chars=MAX_QUERY_CHARS)
    packed, _ = context_for(user_id, query, budget_tokens=BUDGET_TOKENS, scope=Scope())
    text = packed.text or "Izzy knows nothing about this yet."
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(
        description=f"What is known about: {truncated(query, TITLE_CHARS)}", messages=[message]
    )


def resource_times(user_id: UUID) -> dict[str, str]:
    """When each resource was last changed, by its address."""
    times = {f"{NOTES}{note.note_id}": note.updated_at.isoformat() for note in _recent_notes(user_id)}
    for path, at in files_in(user_id).values_list("path", "updated_at"):
        times[f"{FILES}{quote(path)}"] = at.isoformat()
    return times


def _recent_notes(user_id: UUID) -> list[Memory]:
    notes = Memory.objects.for_user(user_id).filter(status=Status.ACTIVE)
    return list(notes.order_by("-updated_at", "-pk")[:RECENT_NOTES])


def _recent() -> Resource:
    return Resource(
        uri=RECENT,
        name="recent notes",
        title="Recent notes",
        mime_type=MARKDOWN,
        description=f"The {RECENT_NOTES} notes that were written or changed last.",
    )


def _note(note: Memory) -> Resource:
    quoted = truncated(" ".join(note.content.split()), TITLE_CHARS)
    return Resource(
        uri=f"{NOTES}{note.note_id}",
        name=note.note_id,
        title=f"A note {FROM_OTHERS}" if note.trust == Trust.UNTRUSTED else quoted,
        mime_type=MARKDOWN,
        annotations=Annotations(last_modified=note.updated_at.isoformat(timespec="seconds")),
    )


def _file(file: MemoryFile) -> Resource:
    path, untrusted = file.path.removeprefix(f"{ROOT}/"), file.trust == Trust.UNTRUSTED
    return Resource(
        uri=f"{FILES}{quote(file.path)}",
        name=file.path,
        title=f"{path} ({FROM_OTHERS})" if untrusted else path,
        description=f"A file {FROM_OTHERS}: others may have given it its name." if untrusted else None,
        mime_type=_mime_type(file.path),
        size=file.size,
        annotations=Annotations(last_modified=file.updated_at.isoformat(timespec="seconds")),
    )


def _line(note: Memory, zone: tzinfo) -> str:
    mark = f" ({FROM_OTHERS})" if note.trust == Trust.UNTRUSTED else ""
    return f"- {' '.join(note.content.split())}{mark} ({note.note_id}, {note.updated_at.astimezone(zone):%Y-%m-%d})"


def _marked(text: str, trust: str) -> str:
    return UNTRUSTED + text if trust == Trust.UNTRUSTED else text


def _mime_type(path: str) -> str:
    return next((kind for end, kind in TYPES.items() if path.lower().endswith(end)), "text/plain")


def _contents(uri: str, text: str, mime_type: str) -> TextResourceContents:
    return TextResourceContents(uri=uri, text=text, mime_type=mime_type)
