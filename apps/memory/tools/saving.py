"""The tools that write notes. What the notes say already need not be noted twice, and what a new note corrects has to be named
to whoever saves it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

from apps.agent.tools.base import Tier, ToolContext, may_be_behind
from apps.core.ids import note_id
from apps.memory.models import STANDING, Memory, Relation, ReviewReason, Status, Trust
from apps.memory.models import Tier as NoteTier
from apps.memory.notes import changes
from apps.memory.notes.creation import memory_submit
from apps.memory.notes.fields import (
    MAX_CONTENT_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    TIER_DEFAULTS,
    clean_changes,
    clean_content,
)
from apps.memory.notes.joining import MAX_RELATION_CHARS, edge_create, joined_tags
from apps.memory.notes.revisions import BY_ASSISTANT, BY_PROGRAM, Change
from apps.memory.notes.selectors import memory_get
from apps.memory.occasions.phrases import MAX_OCCASION_CHARS, MAX_OCCASIONS
from apps.memory.similarity import adds_nothing, denies_other, near_notes
from apps.memory.trust import Judged, needs_a_look, note_judged, program_judged, texts_judged

from .search import (
    CLASSIC,
    Category,
    NoteId,
    Tags,
    TierName,
    change_by,
    known_notes,
    note_tool,
    shown_text,
)

LEAST = 0.25
"""Calibrated similarity from which on a note may be what the new one corrects: of everyday corrections ("works as a nurse",
"works as a teacher") 11 of 14 pairs lie above, of unrelated notes 3 in 100."""
MOST = 3

SAVED = "Saved."
KNOWN = "Known already: you had this note, so no second one was made."
UNCHANGED = "Known already: the note says just that, so nothing was changed."
CLOSE = (
    "Saved. Look at the similar notes: what the new one makes untrue, delete with memory_delete, so that only what holds "
    "now remains."
)
WAITING = {
    ReviewReason.UNTRUSTED: "it may repeat what a page, a file or somebody else said",
    ReviewReason.SENSITIVE: "it is sensitive and they did not ask you to save it",
    ReviewReason.EVERYTHING: "they review everything you remember",
}
TO_REVIEW = (
    "{what} waits for the user's review, because {why}. Until they accept it on the review page it is not remembered, "
    "and you cannot accept it: tell them that it waits there."
)
LEFT_OUT = (
    "These labels were left out: others' words were read in this conversation, and the user did not say them. They can "
    "set them on the memories page."
)
TIER_WORDS = " or ".join(
    f"{tier} (priority {priority}, falling by {rate} with every chat turn)"
    for tier, (priority, rate) in reversed(TIER_DEFAULTS.items())
)

Content = Annotated[str, {"maxLength": MAX_CONTENT_CHARS}]

saving_tool = partial(note_tool, tier=Tier.SIDE_EFFECTING, timeout=10.0)


@dataclass(frozen=True, slots=True)
class Save:
    content: Annotated[Content, "The note, in natural language."]
    tags: Annotated[
        list[Annotated[str, {"maxLength": MAX_TAG_CHARS}]] | None,
        {"maxItems": MAX_TAGS},
        "A few single words to find it by, such as health or work.",
    ] = None
    tier: Annotated[
        str | None,
        {"enum": list(NoteTier.values)},
        "long_term (default), or short_term for what matters only for days.",
    ] = None
    importance: Annotated[
        int | None,
        {"minimum": 1, "maximum": 5},
        "1 trivial, 3 normal (default), 5 vital, such as an allergy.",
    ] = None
    category: Annotated[
        Category,
        f"An optional group, such as travel. The group {STANDING} is shown to you at the beginning of every "
        "conversation: only for how the user wants you to behave from now on, and for what must never be "
        "overlooked, such as an allergy.",
    ] = None
    occasions: Annotated[
        list[Annotated[str, {"minLength": 1, "maxLength": MAX_OCCASION_CHARS}]] | None,
        {"maxItems": MAX_OCCASIONS},
        "When the note will matter, as up to eight short phrases in the user's language: the situations in which you "
        "should think of it unasked, not what it is about. For a fear of heights not phobias, but: planning a hike, "
        "booking a hotel room, choosing seats. Nothing that would fit any conversation.",
    ] = None


@saving_tool(
    title="Save a memory",
    doing="Saving a memory",
    done="Saved a memory",
    shows=("content",),
    notes="written",
)
def memory_save(context: ToolContext, arguments: Save) -> dict[str, Any]:
    """Save one thing worth knowing about the user as a note that lasts across all conversations. Do it
    without being asked, as soon as they share a preference, a fact about themselves or people close to
    them, a decision, a plan or a correction that will matter again. Write one self-contained sentence in
    the third person that makes sense months later ("The user is allergic to shellfish."), with names
    and full dates rather than 'she' or 'tomorrow'. One fact per note. If it replaces something you have
    saved, use memory_update on that note instead. Do not save small talk, or what pages and files merely
    claim; passwords, accounts and cards only if the user asks you to, in their words. Returns the note_id;
    with status pending the note waits for the user's review and is not remembered yet."""
    return note_save(context, asdict(arguments))


@dataclass(frozen=True, slots=True)
class Store:
    content: Annotated[Content, "What to remember."]
    tags: Annotated[Tags, "Single words such as health, allergy, food."] = None
    tier: TierName = None


@saving_tool(
    description=(
        "Store one fact about the user as a memory: one self-contained sentence in the third person, with a few "
        "single-word tags, which are what recall_memory finds it by most surely. "
        f"tier is {TIER_WORDS}; long_term unless given. Returns the note_id."
    ),
    toolset=CLASSIC,
    title="Store a memory",
    doing="Saving a memory",
    done="Saved a memory",
    shows=("content",),
    notes="written",
)
def store_memory(context: ToolContext, arguments: Store) -> dict[str, Any]:
    """A new note begins with its tier's priority and decay."""
    return note_save(context, asdict(arguments))


def note_save(context: ToolContext, given: Mapping[str, Any]) -> dict[str, Any]:
    """Saves the `content` among these fields with the others that are not None; the answer to the assistant.

    `{note_id, message}` of the new note, or of the one that says the same already. With `status: known` and the note's
    `text` where one says the same, `status: pending` where it waits for the user's review; else with `similar`, the notes
    that are about the same, `{note_id, text}` each, where there are any.
    """
    user_id = context.user_id
    fields = clean_changes({name: value for name, value in given.items() if value is not None})
    content = fields.pop("content")
    author, judged = BY_ASSISTANT, Judged(Trust.ASSISTANT, fields)
    if context.by_program:
        author, judged = BY_PROGRAM, program_judged(fields)
    elif context.taint.is_tainted:
        judged = note_judged(context.taint.own(), content, fields)
    words = [content, fields.get("category", ""), *fields.get("tags", []), *fields.get("occasions", [])]
    change = replace(
        author,
        trust=judged.trust,
        sensitive=needs_a_look(context.taint, words),
        conversation_id=context.conversation_id,
        message_id=context.message_id,
    )
    found = near_notes(user_id, content)
    trusted = Memory.objects.owned_by(user_id).exclude(trust=Trust.UNTRUSTED)
    notes = trusted.filter(status=Status.ACTIVE).in_bulk([key for key, _ in found])
    # None of them repeats others' words, so what any says is trusted no less than what is said now.
    near = [(notes[key], value) for key, value in found if key in notes]
    for note, _ in near:
        if adds_nothing(content, note.content):
            return _said_again(
                note, judged.fields, replace(change, reason="said again", sensitive=False)
            )
    note = memory_submit(user_id=user_id, content=content, change=change, **judged.fields)
    if note.status == Status.PENDING:
        return _waits(note, "The note")
    left_out = {"left_out": list(judged.left_out), "note": LEFT_OUT} if judged.left_out else {}
    return _saved(note, near) | left_out


def _said_again(note: Memory, fields: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Let the note take over what is said of it beyond its text (cleaned `fields`), unless others may have said that;
    the answer to the assistant."""
    wanted = {
        "tags": joined_tags([note.tags, fields.get("tags", [])]),
        "importance": max(note.importance, fields.get("importance", 1)),
        "category": fields.get("category") or note.category,
        "tier": NoteTier.LONG_TERM if fields.get("tier") == NoteTier.LONG_TERM else note.tier,
    }
    more: Any = {name: value for name, value in wanted.items() if value != getattr(note, name)}
    message = KNOWN
    if more and change.trust != Trust.UNTRUSTED:
        now = changes.memory_update(user_id=note.user_id, memory_id=note.pk, change=change, **more)
        names = ", ".join(more)
        message = f"{KNOWN} Brought up to date: {names}."
        if now.pk != note.pk:
            message = f"{KNOWN} {_waits(now, f'The change of its {names}')['message']}"
    changes.access_record(user_id=note.user_id, memory_ids=[note.pk])
    return _known(note, message)


def _saved(note: Memory, near: Sequence[tuple[Memory, float]]) -> dict[str, Any]:
    """The answer to the assistant, with the notes that are about the same as the new one.

    What says the opposite is noted as a contradiction, which the user settles if the assistant does not.
    """
    for one, _ in near:
        if denies_other(one.content, note.content):
            edge_create(
                user_id=note.user_id, source_id=note.pk, target_id=one.pk, relation=Relation.CONTRADICTS
            )
    close = [one for one, value in near if value >= LEAST][:MOST]
    if not close:
        return {"note_id": note_id(note.pk), "message": SAVED}
    similar = [{"note_id": note_id(one.pk), "text": one.content} for one in close]
    return {"note_id": note_id(note.pk), "message": CLOSE, "similar": similar}


def _waits(note: Memory, what: str) -> dict[str, Any]:
    """The answer for a note that the user has to see first."""
    why = WAITING[ReviewReason(note.review_reason)]
    return {
        "note_id": note.note_id,
        "status": note.status,
        "message": TO_REVIEW.format(what=what, why=why),
    }


def _known(note: Memory, message: str) -> dict[str, Any]:
    """The answer to the model where the note says already what it was to say, with the note's own words."""
    return {"note_id": note.note_id, "status": "known", "message": message, "text": shown_text(note)}


@dataclass(frozen=True, slots=True)
class Update:
    note_id: NoteId
    content: Annotated[Content, "The whole new text of the note."]


@saving_tool(
    title="Correct a memory",
    doing="Correcting a memory",
    done="Corrected a memory",
    shows=("content",),
    notes="changed",
)
def memory_update(context: ToolContext, arguments: Update) -> dict[str, Any]:
    """Replace the text of a note that is no longer right or complete, when the user corrects or changes
    something you have saved. Find it with memory_search first, unless a context block names it (n7), and pass
    its note_id with the whole new text. The id stays; the old text leaves search and is kept in the note's history."""
    content, taint = arguments.content, context.taint
    with known_notes(context, arguments.note_id) as (memory_id,):
        present = memory_get(context.user_id, memory_id)
        if clean_content(content) == present.content:
            return _known(present, UNCHANGED)
        trust = Trust.ASSISTANT if context.by_program else texts_judged(taint, [content])
        if present.category == STANDING and taint.is_tainted:
            trust = (
                Trust.UNTRUSTED
            )  # it stands in every conversation: the user has to see what it will say
        change = replace(
            change_by(context),
            trust=trust,
            sensitive=needs_a_look(taint, [content], known=present.content),
            conversation_id=context.conversation_id,
            message_id=context.message_id,
        )
        note = changes.memory_update(
            user_id=context.user_id, memory_id=memory_id, change=change, content=content
        )
    if note.pk != memory_id:
        return _waits(note, "The change") | {"note_id": present.note_id}
    return {"note_id": note.note_id, "message": "Updated; the old text is kept in the note's history."}


@dataclass(frozen=True, slots=True)
class Delete:
    note_id: NoteId


@saving_tool(
    takes=may_be_behind,
    title="Delete a memory",
    doing="Forgetting a memory",
    done="Forgot a memory",
    shows=("note_id",),
    notes="deleted",
)
def memory_delete(context: ToolContext, arguments: Delete) -> dict[str, Any]:
    """Delete a note when the user asks you to forget something. Find it with memory_search first, unless a
    context block names it (n7), and pass its note_id; delete only what they meant, and ask if several notes could be meant. To correct
    something use memory_update. The user can restore a deleted note for 30 days."""
    with known_notes(context, arguments.note_id) as (memory_id,):
        note = changes.memory_delete(
            user_id=context.user_id, memory_id=memory_id, change=change_by(context)
        )
    return {"note_id": note.note_id, "message": "Deleted; the user can restore it for 30 days."}


@dataclass(frozen=True, slots=True)
class Link:
    source_id: Annotated[NoteId, "The note the link starts at."]
    target_id: Annotated[NoteId, "The note it leads to."]
    relation: Annotated[
        str,
        {"minLength": 1, "maxLength": MAX_RELATION_CHARS},
        f"{', '.join(Relation.values)} or a few words of your own; related unless given.",
    ] = str(Relation.RELATED)
    weight: Annotated[
        float, {"minimum": 0, "maximum": 1}, "How closely they belong together, 1 unless given."
    ] = 1.0


@saving_tool(
    takes=may_be_behind,
    title="Link two memories",
    doing="Linking memories",
    done="Linked memories",
    shows=("relation",),
    notes="linked",
)
def link_memories(context: ToolContext, arguments: Link) -> dict[str, Any]:
    """Link two notes that belong together, so that whoever finds one finds the other: a person and their
    birthday, a decision and its reason, a project and its people. Linking them again with the same relation
    sets the weight. Needs note_ids that memory_search or memory_save gave, or short names."""
    with known_notes(context, arguments.source_id, arguments.target_id) as (source, target):
        edge = edge_create(
            user_id=context.user_id,
            source_id=source,
            target_id=target,
            relation=arguments.relation,
            weight=arguments.weight,
        )
    return {
        "source_id": note_id(edge.source_id),
        "target_id": note_id(edge.target_id),
        "relation": edge.relation,
        "weight": edge.weight,
        "message": "Linked.",
    }
