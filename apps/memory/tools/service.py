"""The notes of one user as the tools see them: implements `apps.agent.protocols.MemoryTools`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from apps.agent.protocols import Progress
from apps.core.database import in_db
from apps.core.errors import NotFound
from apps.core.ids import note_id, parse_id
from apps.core.shapes import clean_time
from apps.core.text import clean_text
from apps.memory import services
from apps.memory.capture.unread import unread_scope
from apps.memory.deep import Asked, deep_memory
from apps.memory.fields import (
    STANDING,
    clean_category,
    clean_changes,
    clean_content,
    clean_threshold,
)
from apps.memory.models import Origin, Status, Trust
from apps.memory.searching import NOTES, notes_search, untrusted_among
from apps.memory.selectors import (
    NoteFilter,
    RecallFilter,
    memory_get,
    memory_recall,
    related_notes,
    texts_at,
)
from apps.memory.services import BY_ASSISTANT, Change, Provenance
from apps.memory.trust.reading import Reading
from apps.search.documents import Scope, Source
from apps.search.selectors import search

from .answers import fragment_json, known, left_out, near_json, note_json, said_json, waits, with_hint
from .saving import notes_near, said_again, saved, says_already

MAX_QUERY_CHARS = 10_000
FOLLOWED = (Status.ACTIVE, Status.SUPERSEDED)
"""The notes that the assistant gets to see by following links: none that wait for review or were put away."""

UNKNOWN_NOTE = (
    "There is no note with the id {id!r}. Call memory_search to find the note and use the note_id it gives."
)
UNCHANGED = "Known already: the note says just that, so nothing was changed."


class NoteTools:
    """The note tools of one user in one turn.

    `conversation_id` is what `include_conversation` searches beside the notes, and with `message_id` (the
    user's message of the turn) where new notes come from. `reading` says how far what is written is trusted.
    """

    def __init__(
        self,
        *,
        user_id: UUID,
        conversation_id: UUID | None = None,
        message_id: UUID | None = None,
        reading: Reading | None = None,
    ) -> None:
        self.user_id = user_id
        self.conversation_id = conversation_id
        self.message_id = message_id
        self.reading = reading or Reading(user_id=user_id, conversation_id=conversation_id)

    async def search(
        self,
        query: str,
        *,
        top_k: int,
        include_conversation: bool,
        category: str | None,
        as_of: str | None,
        threshold: float | None = None,
    ) -> list[dict[str, Any]]:
        """`{note_id, text, score, source, created_at}`, best first, with `faded: true` where decay has set in.

        None has a `score` below `threshold`. What comes from the conversation has no note_id. Counts the access.
        """
        scope = replace(NOTES, as_of=clean_time(as_of, field="as_of") if as_of else None)
        query = clean_text(query, field="query", max_chars=MAX_QUERY_CHARS)
        wanted = clean_category(category)
        conversation = self.conversation_id if include_conversation else None
        least = 0.0 if threshold is None else clean_threshold(threshold)
        return await in_db(self._search, query, top_k, (scope, wanted), conversation, least)

    def _search(
        self,
        query: str,
        top_k: int,
        notes: tuple[Scope, str],
        conversation_id: UUID | None,
        threshold: float,
    ) -> list[dict[str, Any]]:
        scope, category = notes
        found = found_notes(self.user_id, query, top_k=top_k, scope=scope, category=category)
        if conversation_id is not None:
            said = Scope(sources=frozenset({Source.CONVERSATION}), conversation_id=conversation_id)
            unread = unread_scope(self.user_id, other_than=conversation_id)
            for talk in filter(None, (said, unread)):
                found += [said_json(hit) for hit in search(self.user_id, query, top_k=top_k, scope=talk)]
            found.sort(key=lambda item: -item["score"])
        found = [item for item in found if item["score"] >= threshold][:top_k]
        shown = [parse_id(item["note_id"]) for item in found if item["note_id"]]
        services.access_record(user_id=self.user_id, memory_ids=shown)
        return found

    async def save(
        self,
        content: str,
        *,
        tags: list[str] | None,
        tier: str | None,
        importance: int | None,
        category: str | None,
    ) -> dict[str, Any]:
        """`{note_id, message}` of the new note, or of the one that says the same already.

        With `status: known` and the note's `text` where one says the same, `status: pending` where it waits for the user's
        review; else with `similar`, the notes that are about the
        same, `{note_id, text}` each, where there are any.
        """
        given = {"tags": tags, "tier": tier, "importance": importance, "category": category}
        return await in_db(self._save, content, {name: it for name, it in given.items() if it is not None})

    def _save(self, content: str, fields: dict[str, Any]) -> dict[str, Any]:
        content = clean_content(content)
        given = clean_changes(fields)
        judged = self.reading.judged(content, given)
        provenance = Provenance(
            origin=Origin.ASSISTANT,
            trust=judged.trust,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )
        near = notes_near(self.user_id, content)
        same = says_already(near, content, provenance.trust)
        if same is not None:
            return said_again(same, judged.fields, provenance.change(reason="said again"))
        words = [content, *given.get("tags", []), given.get("category", "")]
        note = services.memory_submit(
            user_id=self.user_id,
            content=content,
            provenance=provenance,
            sensitive=self.reading.needs_a_look(words),
            **judged.fields,
        )
        if note.status == Status.PENDING:
            return waits(note, "The note")
        return saved(note, near) | left_out(judged.left_out)

    async def update(self, note_id: str, content: str) -> dict[str, Any]:
        """`{note_id, message}`; the id stays. With `status: pending` where the change waits for the user's review,
        `known` where it changes nothing."""
        return await self._change(self._update, note_id, content)

    def _update(self, memory_id: UUID, content: str) -> dict[str, Any]:
        present = memory_get(self.user_id, memory_id)
        if clean_content(content) == present.content:
            return known(present, UNCHANGED)
        trust = self.reading.trust_of([content])
        if present.category == STANDING and self.reading.is_untrusted:
            trust = Trust.UNTRUSTED  # it stands in every conversation: the user has to see what it will say
        change = Change(
            actor=Origin.ASSISTANT,
            trust=trust,
            sensitive=self.reading.needs_a_look([content], known=present.content),
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )
        note = services.memory_update(
            user_id=self.user_id, memory_id=memory_id, change=change, content=content
        )
        if note.pk != memory_id:
            return waits(note, "The change") | {"note_id": present.note_id}
        return {"note_id": note.note_id, "message": "Updated; the old text is kept in the note's history."}

    async def delete(self, note_id: str) -> dict[str, Any]:
        """`{note_id, message}`"""
        return await self._change(self._delete, note_id)

    def _delete(self, memory_id: UUID) -> dict[str, Any]:
        note = services.memory_delete(user_id=self.user_id, memory_id=memory_id, change=BY_ASSISTANT)
        return {"note_id": note.note_id, "message": "Deleted; the user can restore it for 30 days."}

    async def recall(
        self, keywords: list[str], *, tier: str | None, tags: list[str] | None
    ) -> dict[str, Any]:
        """`{count, memories}`: the notes that contain a keyword, highest priority first. Counts the access."""
        only = RecallFilter(tier=tier or "", tags=tags or ())
        return await in_db(self._recall, keywords, only)

    def _recall(self, keywords: list[str], only: RecallFilter) -> dict[str, Any]:
        notes = [found.note for found in memory_recall(self.user_id, keywords, only=only)]
        services.access_record(user_id=self.user_id, memory_ids=[note.pk for note in notes])
        return with_hint({"count": len(notes), "memories": [fragment_json(note) for note in notes]})

    async def link(self, source_id: str, target_id: str, *, relation: str, weight: float) -> dict[str, Any]:
        """`{source_id, target_id, relation, weight, message}`"""
        ends = [_known_id(source_id), _known_id(target_id)]
        try:
            edge = await in_db(
                services.edge_create,
                user_id=self.user_id,
                source_id=ends[0],
                target_id=ends[1],
                relation=relation,
                weight=weight,
            )
        except NotFound as error:
            raise NotFound(UNKNOWN_NOTE.format(id=f"{source_id[:60]} or {target_id[:60]}")) from error
        ids = {"source_id": note_id(edge.source_id), "target_id": note_id(edge.target_id)}
        return {**ids, "relation": edge.relation, "weight": edge.weight, "message": "Linked."}

    async def related(self, note_id: str, *, depth: int, limit: int) -> dict[str, Any]:
        """`{count, memories}`, each with depth, relation, weight and via; nearest first. Counts the access."""
        try:
            return await in_db(self._related, _known_id(note_id), depth, limit)
        except NotFound as error:
            raise NotFound(UNKNOWN_NOTE.format(id=note_id[:60])) from error

    def _related(self, memory_id: UUID, depth: int, limit: int) -> dict[str, Any]:
        near = related_notes(self.user_id, memory_id, depth=depth, limit=limit, statuses=FOLLOWED)
        services.access_record(user_id=self.user_id, memory_ids=[found.note.pk for found in near])
        return with_hint({"count": len(near), "memories": [near_json(found) for found in near]})

    async def deep(self, query: str, *, progress: Progress, turn_id: UUID | None) -> dict[str, Any]:
        """See `apps.memory.deep`. Counts the access."""
        asked = Asked(
            user_id=self.user_id,
            query=clean_text(query, field="query", max_chars=MAX_QUERY_CHARS),
            conversation_id=self.conversation_id,
            turn_id=turn_id,
        )
        return await deep_memory(asked, progress)

    async def _change(
        self, work: Callable[..., dict[str, Any]], note_id: str, *values: str
    ) -> dict[str, Any]:
        try:
            return await in_db(work, parse_id(note_id), *values)
        except NotFound as error:
            raise NotFound(UNKNOWN_NOTE.format(id=note_id[:60])) from error


def _known_id(value: str) -> UUID:
    try:
        return parse_id(value)
    except NotFound as error:
        raise NotFound(UNKNOWN_NOTE.format(id=value[:60])) from error


def found_notes(
    user_id: UUID, query: str, *, top_k: int, scope: Scope, category: str = ""
) -> list[dict[str, Any]]:
    """The best notes for a query as `memory_search` answers them."""
    found = notes_search(user_id, query, wanted=NoteFilter(category=category), top_k=top_k, scope=scope)
    if scope.as_of is None:
        return [note_json(hit, note) for hit, note in found]
    former = texts_at(user_id, [note.pk for _, note in found], scope.as_of)
    untrusted = untrusted_among(user_id, [hit for hit, _ in found], as_of=scope.as_of)
    return [
        note_json(hit, note, former=former.get(note.pk, ""), untrusted=note.pk in untrusted)
        for hit, note in found
    ]
