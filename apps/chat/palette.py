"""The command palette: what fits a few words among a user's conversations, memories, files and capabilities, and what can be done."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.urls import reverse

from apps.accounts.models import User
from apps.capabilities.models import Capability
from apps.chat.conversations.selectors import conversations_for
from apps.chat.models import Conversation
from apps.core.addressing import addressed
from apps.core.db.saying import says
from apps.core.text import truncated
from apps.core.unmarked import unmarked
from apps.memory.models import Memory, MemoryFile, Status
from apps.memory.notes.selectors import memories_by_id
from apps.search.documents import Hit, Scope, Source
from apps.search.selectors import search

Row = TypeVar("Row", bound=Model)

EACH = 5
"""Results of a kind at most."""
MAX_QUERY_CHARS = 200
FOUND = 24
"""Documents looked at: so many messages, and so many of the other kinds together."""
MESSAGES = Scope(sources=frozenset({Source.CONVERSATION}))
OTHERS = Scope(sources=frozenset({Source.MEMORY, Source.FILE, Source.CAPABILITY}))
"""A search each: a talkative conversation would else leave no place for the rest."""
LEAST_SCORE = 0.35
NOTE_CHARS = 120
RECENT_NOTES = 200
"""The newest, looked through sign by sign where the search finds none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the palette. It leads to `url`, or does what the page knows as `does`; `keys` do the same."""

    title: str
    url: str = ""
    more: str = ""
    icon: str = "right"
    does: str = ""
    keys: str = ""
    words: str = ""  # further ones by which it is found
    at: datetime | None = None  # when something last happened there


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    entries: list[Entry]


def palette(user: User, query: str) -> list[Group]:
    """Hits for the words, in groups that are not empty; without words the newest conversations and all actions."""
    words = " ".join(query.split())[:MAX_QUERY_CHARS]
    if not words:
        newest = conversations_for(user.pk).order_by("-updated_at")[:EACH]
        groups = [
            Group("Conversations", list(map(_conversation, newest))),
            Group("Go to", _actions(user)),
        ]
    else:
        asked = words.casefold().split()
        fitting = [each for each in _actions(user) if _fits(each, asked)]
        groups = [*_found(user.pk, words), Group("Go to", fitting[:EACH])]
        if fitting and len(words) < 3:
            groups = [groups[-1], *groups[:-1]]
    return [group for group in groups if group.entries]


def _fits(entry: Entry, asked: list[str]) -> bool:
    """Whether each word that was asked for begins one of the entry's."""
    own = f"{entry.title} {entry.words}".casefold().split()
    return all(any(word.startswith(each) for word in own) for each in asked)


def _actions(user: User) -> list[Entry]:
    def to(title: str, name: str, icon: str, words: str = "", keys: str = "") -> Entry:
        return Entry(title, reverse(name), icon=icon, words=words, keys=keys)

    own = [
        to("New conversation", "chat:home", "new-chat", "chat begin", "Alt N"),
        to("Memories", "memory:overview", "memory", "notes overview", "Alt M"),
        to("Browse memories", "memory:list", "memory", "notes list add"),
        to("Review", "memory:review", "check", "waiting accept contradictions"),
        to("Timeline", "memory:timeline", "clock", "life when history"),
        to("Graph", "memory:graph", "graph", "links map"),
        to("Files", "memory:files", "archive", "memory texts"),
        to("All conversations", "chat:conversation-list", "chat", "archived pinned"),
        to("Capabilities", "capabilities:list", "tool", "tools"),
        to("Build a capability", "builder:new", "tool", "new tool make"),
        to("Usage and cost", "agent:usage", "chart", "tokens money"),
        to("Settings", "accounts:settings", "settings", "preferences language time zone"),
        to("API tokens", "accounts:tokens", "key", "programs keys"),
        to("Secrets", "capabilities:secrets", "lock", "keys passwords"),
        to("Import and export", "memory:data", "download", "download backup data take out"),
        Entry("Switch theme", does="theme", icon="theme", words="dark light"),
        Entry("Keyboard shortcuts", does="shortcuts", icon="keyboard", words="keys help", keys="?"),
    ]
    if user.is_superuser:
        own += [
            to("Users", "accounts:users", "users", "people accounts"),
            to("Instance", "accounts:instance", "server", "model key health"),
            to("Admin", "admin:index", "shield", "administration rows"),
        ]
    return own


def _conversation(row: Conversation) -> Entry:
    return Entry(str(row), reverse("chat:conversation", args=[row.pk]), at=row.updated_at, icon="chat")


def _found(user_id: UUID, words: str) -> list[Group]:
    """Hits by name first, then by text and likeness."""
    hits: dict[Source, list[Hit]] = {source: [] for source in Source}
    for scope in (MESSAGES, OTHERS):
        for hit in search(user_id, words, top_k=FOUND, scope=scope, threshold=LEAST_SCORE):
            hits[Source(hit.source)].append(hit)
    return [
        Group("Conversations", _conversations(user_id, words, hits[Source.CONVERSATION])[:EACH]),
        Group("Memories", list(_notes(user_id, words, hits[Source.MEMORY]))),
        Group("Files", list(_files(user_id, words, hits[Source.FILE]))),
        Group("Capabilities", list(_capabilities(user_id, words, hits[Source.CAPABILITY]))),
    ]


def _conversations(user_id: UUID, words: str, hits: list[Hit]) -> list[Entry]:
    named = conversations_for(user_id).filter(says("title", words)).order_by("-updated_at")[:EACH]
    found = {row.pk: _conversation(row) for row in named}
    said: dict[UUID, Hit] = {}
    for hit in hits:
        if hit.conversation_id:
            said.setdefault(hit.conversation_id, hit)
    rows = conversations_for(user_id).in_bulk(list(said))
    for key, hit in said.items():
        if key in rows:
            url = f"{reverse('chat:conversation', args=[key])}#message-{hit.source_id}"
            found.setdefault(
                key, Entry(str(rows[key]), url, _short(hit.text), "chat", at=rows[key].updated_at)
            )
    return list(found.values())


def _notes(user_id: UUID, words: str, hits: list[Hit]) -> Iterator[Entry]:
    notes = memories_by_id(user_id, [hit.source_id for hit in hits])
    found = [notes[hit.source_id] for hit in hits if hit.source_id in notes]
    found = [note for note in found if note.status == Status.ACTIVE]
    if (
        not found
    ):  # a word that stands in nearly every text tells none from the others, and no search looks for it
        newest = Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).order_by("-created_at")
        asked = words.casefold()
        found = [note for note in newest[:RECENT_NOTES] if asked in note.content.casefold()]
    for note in found[:EACH]:
        url = reverse("memory:note", args=[note.pk])
        yield Entry(_short(addressed(unmarked(note.content))), url, icon="memory")


def _files(user_id: UUID, words: str, hits: list[Hit]) -> Iterator[Entry]:
    rows = MemoryFile.objects.for_user(user_id).defer("content")
    for row in _named_first(rows, rows.filter(says("path", words)).order_by("path"), hits):
        yield Entry(
            row.path.removeprefix("/memories/"),
            f"{reverse('memory:files')}?file={row.pk}",
            icon="archive",
        )


def _capabilities(user_id: UUID, words: str, hits: list[Hit]) -> Iterator[Entry]:
    rows = Capability.objects.for_user(user_id)
    named = rows.filter(name__icontains=words.replace(" ", "_")).order_by("name")
    for row in _named_first(rows, named, hits):
        url = reverse("capabilities:overview", args=[row.name])
        yield Entry(row.name.replace("_", " "), url, _short(row.description), "tool")


def _named_first(rows: QuerySet[Row], named: QuerySet[Row], hits: list[Hit]) -> list[Row]:
    """EACH of the rows: those that are called so, then those that a search found, best first."""
    about = rows.in_bulk([hit.source_id for hit in hits])
    ordered = [*named[:EACH], *(about[hit.source_id] for hit in hits if hit.source_id in about)]
    return list({row.pk: row for row in ordered}.values())[:EACH]


def _short(text: str) -> str:
    return truncated(" ".join(unmarked(text).split()), NOTE_CHARS)
