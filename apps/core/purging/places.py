"""The one list of all columns that hold text, with what a purge does in each, what an app adds to a purge, and looking there.
A column that stands neither in PLACES nor in WORDLESS fails a test (`tests/memory/test_purge_places.py`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from django.apps import apps
from django.db import models, transaction
from django.db.models.functions import Cast
from django.utils.text import capfirst

from apps.core.purging.trace import Fragments, Trace, leaves, redact
from apps.core.registries import Registry
from apps.core.text import truncated

EXCERPT = 300
_OWNERS = {"chat.turnevent": "conversation__user_id"}  # the path to the user where it is no `user_id`


class Rule(Enum):
    """A purge's action in a place."""

    CLEAN = "words are taken out of each string"
    APP = "its app cleans it, or it goes with its row; a name that something goes by stays, and is reported"
    KEEP = "the user's own: stays, and what it says is taken out nowhere"
    OFFER = "stays unless the user has it cleaned too"


@dataclass(frozen=True, slots=True)
class RedactionTarget:
    """One line of a receipt. Without a label it has one only where something was found, named after the table."""

    name: str
    columns: tuple[str, ...]  # `app_label.model.field`
    rule: Rule
    label: str = ""
    why: str = ""  # it means when something is left
    subject: str = ""  # the field by which a row belongs to a note or file


def _columns(tables: str) -> tuple[str, ...]:
    """The columns of tables, each a line of a table's name and its fields."""
    lines = [line.split() for line in tables.strip().splitlines()]
    return tuple(f"{table}.{name}" for table, *names in lines for name in names)


def _target(
    name: str, tables: str, rule: Rule, label: str = "", why: str = "", subject: str = ""
) -> RedactionTarget:
    return RedactionTarget(name, _columns(tables), rule, label, why, subject)


def _each(rule: Rule, tables: str) -> list[RedactionTarget]:
    """A place for each column by itself."""
    return [RedactionTarget(name, (name,), rule) for name in _columns(tables)]


_SAID = "What you and Izzy said stays unless you have these messages redacted too."
_ATTACHED = "A file that you attached says it; delete it, or have its message redacted too."
_STAYS = {Rule.KEEP, Rule.OFFER}
PLACES = (
    _target(
        "accounts.instructions",
        "accounts.preferences instructions display_name\nchat.conversation instructions",
        Rule.KEEP,
        "Your name and instructions",
        "Your own settings stay; change them there.",
    ),
    _target(
        "memory.notes",
        "memory.memory content tags category occasions",
        Rule.KEEP,
        "Notes",
        "Other notes say the same; they stay.",
        subject="pk",
    ),
    _target(
        "memory.history",
        "memory.memoryrevision content state reason",
        Rule.KEEP,
        "What notes were before",
        "The history of other notes says the same; it stays with them.",
        subject="memory_id",
    ),
    _target(
        "memory.files",
        "memory.memoryfile content path",
        Rule.KEEP,
        "Files",
        "Other files say the same; they stay.",
        subject="pk",
    ),
    _target(
        "memory.file_history",
        "memory.memoryfilerevision content path reason",
        Rule.KEEP,
        "What files were before",
        "The history of other files says the same; it stays with them.",
        subject="file_id",
    ),
    _target("memory.links", "memory.memoryedge relation", Rule.APP, "Links between notes"),
    _target("memory.uses", "memory.memoryuse question reason", Rule.CLEAN, "When notes came up"),
    _target(
        "memory.windows",
        "memory.capturewindow segments shown gate_reason dropped error",
        Rule.CLEAN,
        "What waits to be read for memories",
        "Messages that stay, waiting to be read.",
    ),
    _target(
        "agent.tool_calls",
        "agent.toolcall input result answer",
        Rule.CLEAN,
        "Tool calls: what was asked and answered",
    ),
    _target(
        "search.passages",
        "search.passage text terms labels session speaker external_id",
        Rule.APP,
        "The search index",
        "Passages of messages, notes or files that stay.",
    ),
    _target("search.vectors", "", Rule.APP, "Vectors"),
    _target("search.full_text", "", Rule.APP, "Full text"),
    _target("search.memory", "", Rule.APP, "The index in this process' memory"),
    _target(
        "capabilities",
        "capabilities.capability name description tags input_schema output_schema path status_reason\ncapabilities.capabilityversion description tags input_schema output_schema examples hosts secrets path test_failures",
        Rule.OFFER,
        "Capabilities",
        "A capability says it of itself; change or delete it on its page.",
    ),
    _target(
        "capabilities.files",
        "",
        Rule.OFFER,
        "Files of capabilities",
        "A version of a capability has it in its code or its description; delete the capability on its page.",
    ),
    _target(
        "chat.messages", "chat.message text", Rule.OFFER, "Messages, as you and Izzy wrote them", _SAID
    ),
    _target("chat.blocks", "chat.message blocks", Rule.APP, "Messages, as the model gets them", _SAID),
    _target("chat.events", "chat.turnevent payload", Rule.APP, "The stored stream of answers", _SAID),
    _target(
        "chat.turns", "chat.turn memories waiting_for", Rule.APP, "Notes brought up beside messages"
    ),
    _target(
        "chat.titles",
        "chat.conversation title\nchat.folder name",
        Rule.APP,
        "Titles of conversations and folders",
        "A title that you gave stays.",
    ),
    _target(
        "chat.names",
        "chat.conversation session tools\nchat.message external_id",
        Rule.OFFER,
        "Names of sessions, messages and tools",
        "Something goes by this name; it goes with its conversation.",
    ),
    _target("chat.attachments", "chat.attachment name text", Rule.OFFER, "Attachments", _ATTACHED),
    _target("chat.zz_summaries", "chat.conversation summary", Rule.APP, "Summaries of conversations"),
    _target("admin.log", "admin.logentry object_repr change_message", Rule.CLEAN, "The admin's log"),
    _target("sessions", "", Rule.APP, "Browser sessions"),
    *_each(
        Rule.CLEAN,
        """
        memory.import name report error
        memory.memory proposed_fields
        agent.toolcall permission
        gateway.clientsession prompts shown
        gateway.waitingcall input reason
        gateway.proxyturn block shown
        builder.build description feedback hosts input_schema last_error reason request secrets
        builder.buildermessage payload
        builder.dialoguemessage blocks
        capabilities.execution error_message hosts_used input result stderr stdout
        chat.turn error_message said
        """,
    ),
    *_each(
        Rule.APP,
        """
        accounts.apitoken name
        accounts.preferences put_away tool_approval toolsets
        accounts.secret name
        agent.toolcall name
        agent.toolgrant reach
        builder.build name
        chat.conversation channel
        gateway.clientsession client key
        gateway.waitingcall client reach tool
        memory.memorysummary categories figures made_from tags
        chat.message speaker
        chat.turn client_id
        """,
    ),
)

WORDLESS = frozenset(
    _columns("""
        accounts.apitoken digest hint scopes
        accounts.preferences language model speech_language time_zone
        accounts.secret ciphertext
        accounts.signinattempt address_hash name_hash
        accounts.user email first_name last_name password username
        admin.logentry object_id
        agent.modelcall error_code model purpose request_id stop_reason
        agent.toolcall build_id covered error_code tool_use_id
        agent.toolgrant program
        auth.group name
        auth.permission codename name
        builder.build error_code runner
        builder.dialoguemessage stop_reason
        capabilities.capabilityversion checksum checksums runner
        capabilities.execution backend error_code runner
        chat.attachment media_type sha256 shown_type
        chat.conversation model runner summary_by
        chat.message stop_reason
        chat.turn error_code model usage
        chat.turnevent type
        gateway.waitingcall digest program
        contenttypes.contenttype app_label model
        core.instancestate value
        core.integrityrun asked_by error findings step
        memory.capturelease runner
        memory.import cursor error_code format reader runner
        memory.memory folded_content folded_tags
        memory.capturewindow error_code fingerprint memory_ids message_ids
        memory.purgereceipt message_ids places related_ids source_messages subject_ids
        gateway.proxyturn chain key reply_id
        search.embeddingspace concern document_prefix name query_prefix
        search.passage features side_vector vector
        sessions.session session_data
    """)
)
"""Columns without words of a note: hashes, codes, ids; what goes with its text or row; sessions, which their app unpacks."""


def model_of(column: str) -> type[models.Model]:
    return apps.get_model(column.rpartition(".")[0])


def rows_of(model: type[models.Model], user_id: UUID) -> models.QuerySet[Any]:
    """The user's rows of a table."""
    return model._base_manager.filter(**{_OWNERS.get(model._meta.label_lower, "user_id"): user_id})


def texts(
    place: RedactionTarget, user_id: UUID, *, without: Collection[UUID] = ()
) -> Iterator[tuple[str, Any, str]]:
    """(column, primary key, text) of the user's rows in a place but those that belong to the notes or files `without`."""
    tables: dict[type[models.Model], list[str]] = {}
    for column in place.columns:
        tables.setdefault(model_of(column), []).append(column)
    for model, columns in tables.items():
        casts = {
            f"text_{at}": Cast(name.rpartition(".")[2], models.TextField())
            for at, name in enumerate(columns)
        }
        rows = rows_of(model, user_id).annotate(**casts).order_by().values_list("pk", *casts)
        others = rows.exclude(**{f"{place.subject}__in": without}) if without else rows
        for pk, *values in others.iterator(chunk_size=500):
            yield from ((name, pk, text) for name, text in zip(columns, values, strict=True) if text)


Hits: TypeAlias = Mapping[str, Sequence[Any]]
"""By column (`chat.message.text`) the primary keys of the rows in which something was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A message that says what a note says."""

    id: UUID
    conversation_id: UUID
    role: str
    title: str
    text: str
    created_at: datetime
    recorded: bool = False  # the note itself names it as its source

    @property
    def excerpt(self) -> str:
        """Its beginning, for a list to choose from."""
        return truncated(self.text, EXCERPT)


def _nothing(*given: object) -> tuple[()]:
    """Stands for what an app has no part in."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePart:
    """One app's part in a purge."""

    related: Callable[[Trace], Collection[str]] = _nothing  # ids that stand for what is purged
    busy: Callable[[Trace, Hits], object] = _nothing  # true where somebody would write it again
    clear: Callable[[Trace, Hits], object] = _nothing  # idempotent, in short transactions
    counts: Mapping[str, Callable[[Trace], int]] = field(
        default_factory=dict
    )  # by place, what no column shows
    messages: Callable[[UUID, Collection[Any]], Sequence[SourceText]] = _nothing  # oldest first
    before_disk: Callable[[], object] = _nothing  # before the disk is cleaned, in short transactions
    in_use: Callable[[], object] = _nothing  # true where a long write would hold somebody up right now


purge_parts: Registry[PurgePart] = Registry()
"""name of an app -> what it does in a purge beyond PLACES."""


@transaction.atomic
def rewrite(rows: models.QuerySet[Any], change: Callable[[Any], Mapping[str, Any]]) -> None:
    """Gives each row the values that `change` has for it, where they differ."""
    for row in rows.select_for_update():
        values = {name: value for name, value in change(row).items() if getattr(row, name) != value}
        if values:
            rows.model._base_manager.filter(pk=row.pk).update(**values)


def find(trace: Trace, rules: Collection[Rule] = tuple(Rule)) -> tuple[Trace, dict[str, list[Any]]]:
    """The trace with what is its own alone and the ids that stand for it; and `look` in places of these rules."""
    shared = Fragments()
    for place in (each for each in PLACES if each.rule == Rule.KEEP):
        for _, _, text in texts(place, trace.user_id, without=trace.ids if place.subject else ()):
            if trace.own.match(text):
                shared |= trace.own.found_in(" ".join(leaves(text)))
    related = {name for part in purge_parts.values() for name in part.related(trace)}
    trace = replace(
        trace, exclusive=trace.own.without(shared), related=trace.related | frozenset(related)
    )
    return trace, look(trace, rules)


def look(
    trace: Trace, rules: Collection[Rule] = tuple(Rule), *, again: bool = False
) -> dict[str, list[Any]]:
    """By column, the rows that name what is purged or quote it; `again`, those that still quote it."""
    hits: dict[str, list[Any]] = defaultdict(list)
    for place in PLACES:
        if place.rule not in rules:
            continue
        matches = trace.same.match if place.rule in _STAYS else trace.leaks if again else trace.concerns
        for column, pk, text in texts(place, trace.user_id):
            if matches(text):
                hits[column].append(pk)
    return dict(hits)


def clear(trace: Trace, hits: Hits) -> None:
    """Clean what was found. Idempotent, in short transactions."""
    for part in purge_parts.values():
        part.clear(trace, hits)
    cleaned = {column for place in PLACES if place.rule == Rule.CLEAN for column in place.columns}
    for column in hits.keys() & cleaned:
        model, name = model_of(column), column.rpartition(".")[2]
        limit = getattr(model._meta.get_field(name), "max_length", None)
        rewrite(model._base_manager.filter(pk__in=hits[column]), partial(_cleaned, name, limit, trace))


def _cleaned(name: str, limit: int | None, trace: Trace, row: Any) -> dict[str, Any]:
    value = redact(getattr(row, name), trace, about=str(row.pk) in trace.related)
    return {name: value[:limit] if isinstance(value, str) else value}


def counted(trace: Trace) -> dict[str, int]:
    """By place, what no column shows."""
    return {name: count(trace) for part in purge_parts.values() for name, count in part.counts.items()}


def tallies(
    hits: Hits, left: Hits, before: Mapping[str, int], after: Mapping[str, int]
) -> list[dict[str, Any]]:
    """A receipt's lines `{place, label, why, found, removed, left}` by name, in rows: each counts once, in however many of its
    columns something was found."""
    lines = []
    for place in sorted(PLACES, key=lambda place: place.name):
        found_rows, left_rows = _rows(place, hits), _rows(place, left)
        remain = max(len(left_rows), after.get(place.name, 0))
        found = max(len(found_rows | left_rows), before.get(place.name, 0), remain)
        if found or place.label:
            why = place.why if remain else ""
            label = place.label or capfirst(str(model_of(place.columns[0])._meta.verbose_name_plural))
            line = {"place": place.name, "label": label, "why": why}
            lines.append({**line, "found": found, "removed": found - remain, "left": remain})
    return lines


def _rows(place: RedactionTarget, hits: Hits) -> set[Any]:
    return {(column.rpartition(".")[0], key) for column in place.columns for key in hits.get(column, ())}
