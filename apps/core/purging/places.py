"""The one list of all columns that hold text, with what a purge does in each (`trace.py` looks there).
A column that stands neither in PLACES nor in WORDLESS fails a test (`tests/memory/test_purge_places.py`).
"""

from dataclasses import dataclass
from enum import Enum

OWNERS = {"chat.turnevent": "conversation__user_id"}  # the path to the user where it is no `user_id`
GOES_BY = {"agent.toolcall": ("pk", "tool_use_id")}
"""Ids by which others know a row: where its texts name what is purged, these stand for that."""


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
        agent.toolcall permission reach
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
