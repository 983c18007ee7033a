"""Saving what the assistant wants to remember. What the notes say already need not be noted twice, and what a new note
corrects has to be told to whoever saves it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.agent.tools.base import ToolContext
from apps.memory.models import Memory, Origin, Relation, Status, Tier, Trust
from apps.memory.notes.changes import access_record, memory_update
from apps.memory.notes.creation import memory_submit
from apps.memory.notes.fields import clean_changes
from apps.memory.notes.joining import edge_create, joined_tags
from apps.memory.notes.revisions import Change, Provenance
from apps.memory.selectors import memories_by_id
from apps.memory.similarity import adds_to, denies_other, near_notes, same_words
from apps.memory.trust import least_trust, needs_a_look, note_judged

from .answers import known, left_out, waits

LEAST = 0.25
"""Calibrated similarity from which on a note may be what the new one corrects: of everyday corrections ("works as a nurse",
"works as a teacher") 11 of 14 pairs lie above, of unrelated notes 3 in 100."""
MOST = 3

SAVED = "Saved."
KNOWN = "Known already: you had this note, so no second one was made."
CLOSE = (
    "Saved. Look at the similar notes: what the new one makes untrue, delete with memory_delete, so that only what holds "
    "now remains."
)


def note_save(context: ToolContext, given: Mapping[str, Any]) -> dict[str, Any]:
    """Saves the `content` among these fields with the others that are not None; the answer to the assistant.

    `{note_id, message}` of the new note, or of the one that says the same already. With `status: known` and the note's
    `text` where one says the same, `status: pending` where it waits for the user's review; else with `similar`, the notes
    that are about the same, `{note_id, text}` each, where there are any.
    """
    fields = clean_changes({name: value for name, value in given.items() if value is not None})
    content = fields.pop("content")
    judged = note_judged(context.taint, content, fields)
    provenance = Provenance(
        origin=Origin.ASSISTANT,
        trust=judged.trust,
        conversation_id=context.conversation_id,
        message_id=context.message_id,
    )
    near = notes_near(context.user_id, content)
    same = says_already(near, content, provenance.trust)
    if same is not None:
        return said_again(same, judged.fields, provenance.change(reason="said again"))
    words = [content, *fields.get("tags", []), fields.get("category", "")]
    note = memory_submit(
        user_id=context.user_id,
        content=content,
        provenance=provenance,
        sensitive=needs_a_look(context.taint, words),
        **judged.fields,
    )
    if note.status == Status.PENDING:
        return waits(note, "The note")
    return saved(note, near) | left_out(judged.left_out)


def notes_near(user_id: UUID, content: str) -> list[tuple[Memory, float]]:
    """The active notes nearest to a text, none that repeats what others said."""
    near = near_notes(user_id, content)
    notes = memories_by_id(user_id, [key for key, _ in near])
    found = [(notes[key], value) for key, value in near if key in notes]
    return [
        (note, value)
        for note, value in found
        if note.status == Status.ACTIVE and note.trust != Trust.UNTRUSTED
    ]


def says_already(near: Sequence[tuple[Memory, float]], content: str, trust: Trust) -> Memory | None:
    """The one of them that says a text in the same words, and is trusted no less than it would be."""
    for note, _ in near:
        trusted = least_trust(note.trust, trust) == trust
        if trusted and same_words(content, note.content) and not adds_to(content, note.content):
            return note
    return None


def said_again(note: Memory, fields: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Let the note take over what is said of it beyond its text (cleaned `fields`), unless others may have said that;
    the answer to the assistant."""
    wanted = {
        "tags": joined_tags([note.tags, fields.get("tags", [])]),
        "importance": max(note.importance, fields.get("importance", 1)),
        "category": fields.get("category") or note.category,
        "tier": Tier.LONG_TERM if fields.get("tier") == Tier.LONG_TERM else note.tier,
    }
    more: Any = {name: value for name, value in wanted.items() if value != getattr(note, name)}
    message = KNOWN
    if more and change.words != Trust.UNTRUSTED:
        memory_update(user_id=note.user_id, memory_id=note.pk, change=change, **more)
        message = f"{KNOWN} Brought up to date: {', '.join(more)}."
    access_record(user_id=note.user_id, memory_ids=[note.pk])
    return known(note, message)


def saved(note: Memory, near: Sequence[tuple[Memory, float]]) -> dict[str, Any]:
    """The answer to the assistant, with the notes that are about the same as the new one.

    What says the opposite is noted as a contradiction, which the user settles if the assistant does not.
    """
    for one, _ in near:
        if denies_other(one.content, note.content):
            edge_create(
                user_id=note.user_id, source_id=note.pk, target_id=one.pk, relation=Relation.CONTRADICTS
            )
    similar = [{"note_id": one.note_id, "text": one.content} for one, value in near if value >= LEAST][:MOST]
    if not similar:
        return {"note_id": note.note_id, "message": SAVED}
    return {"note_id": note.note_id, "message": CLOSE, "similar": similar}
