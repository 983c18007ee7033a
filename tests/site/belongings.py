"""Alice's belongings when bob looks around: something of every kind, with a word in it that nobody else uses."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection, models

from apps.accounts.models import User
from apps.accounts.services import preferences_update, token_create
from apps.agent.models import ModelCall, ToolCall
from apps.agent.services import grant_add
from apps.builder.builds.messages import message_add
from apps.builder.models import Build, DialogueMessage, Follower, MessageType
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.catalog.versions import capability_begin, capability_create, capability_update
from apps.capabilities.models import Execution
from apps.chat.attachments.files import file_write as attachment_file_write
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.conversations.links import through
from apps.chat.models import Attachment, Conversation, Folder, Message, Turn
from apps.core.ids import uuid7
from apps.gateway.mcp.approvals import call_wait
from apps.gateway.mcp.callers import STDIO
from apps.gateway.models import ClientSession
from apps.memory.files.services import file_delete, file_write
from apps.memory.models import Import, MemoryEdge, Origin, PurgeReceipt, Trust, UsedIn
from apps.memory.notes.changes import memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create
from apps.memory.notes.revisions import Change
from apps.memory.notes.uses import uses_record

MARK = "xylographicwalrus"
SECRET = "XYLOGRAPHIC_KEY"
TOOL = "count_for_her"
HOOK_SESSION = "the-session-of-her-editor"
FILE, GONE = "/memories/hers/allergies.txt", "/memories/hers/gone.txt"


@dataclass(frozen=True)
class Belongings:
    owner: User
    note: UUID
    deleted_note: UUID
    waiting_note: UUID
    edge: UUID
    conversation: UUID
    message: UUID
    turn: UUID
    tool_call: UUID
    token: UUID
    file: UUID
    deleted_file: UUID
    receipt: UUID
    capability: UUID
    execution: UUID
    build: UUID
    question: UUID
    signed_link: str
    grant: UUID
    waiting_call: UUID
    imported: UUID
    attachment: UUID
    folder: UUID

    def ids(self) -> list[str]:
        """Every id of hers, in the forms in which they may appear in an answer."""
        values = [getattr(self, name) for name in self.__dataclass_fields__ if name != "owner"]
        return [str(self.owner.pk), *(str(value) for value in values)]


def make_belongings(owner: User) -> Belongings:
    note = memory_create(
        user_id=owner.pk, content=f"Allergic to shellfish, says the {MARK}", tags=[MARK], category=MARK
    )
    memory_update(user_id=owner.pk, memory_id=note.pk, content=f"Allergic to prawns, says the {MARK}")
    other = memory_create(user_id=owner.pk, content=f"The {MARK} plays chess on Sundays")
    deleted = memory_create(user_id=owner.pk, content=f"The {MARK} was deleted")
    memory_delete(user_id=owner.pk, memory_id=deleted.pk)
    edge_create(user_id=owner.pk, source_id=note.pk, target_id=other.pk, relation="contradicts")
    edge = MemoryEdge.everything.get(source_id=note.pk)
    waiting = memory_update(
        user_id=owner.pk,
        memory_id=other.pk,
        change=Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED),
        content=f"The {MARK} plays go on Sundays",
    )
    ingested = [{"role": "user", "content": f"My shellfish allergy and the {MARK}", "external_id": "m1"}]
    ingestion = messages_ingest(user_id=owner.pk, session="s1", channel="mail", messages=ingested)
    conversation = Conversation.objects.for_user(owner).get(pk=ingestion.conversation_id)
    folder = Folder.objects.create(user=owner, name=f"Hers, the {MARK}")
    Conversation.objects.for_user(owner).filter(pk=conversation.pk).update(
        pinned=True,
        folder=folder,
        title=f"About the {MARK}",
        channel="chat",
        summary=f"The {MARK} is allergic",
        summary_by="extract",
    )
    turn = Turn.objects.create(user=owner, conversation=conversation, state="waiting")
    Message.objects.for_user(owner).filter(conversation=conversation).update(turn=turn)
    call = ToolCall.objects.create(
        user=owner, conversation_id=conversation.pk, turn_id=turn.pk, round=1, position=0, tool_use_id="toolu_1",
        name="ask_user", state="waiting", waits_for="answer", input={"question": MARK},
    )  # fmt: skip
    turn.waiting_for = [{"type": "question", "id": str(call.pk), "text": MARK}]
    turn.save()
    ModelCall.objects.create(
        user=owner, conversation_id=conversation.pk, purpose="chat", model=MARK, endpoint="custom"
    )
    token, _ = token_create(user=owner, name=MARK, scopes=["read"])
    preferences_update(user_id=owner.pk, display_name=MARK, instructions=f"Mention the {MARK}")
    reach = {"tool": f"cap_{TOOL}", "hosts": [MARK], "secrets": [], "capability": "", "version": 1}
    grant = grant_add(user_id=owner.pk, reach=reach, conversation_id=conversation.pk)
    message = Message.objects.for_user(owner).get()
    uses_record(
        user_id=owner.pk,
        reasons={note.pk: f"Has the word {MARK}"},
        used_in=UsedIn.SURFACED,
        question=f"What about the {MARK}?",
        conversation_id=conversation.pk,
        message_id=message.pk,
    )
    file, deleted_file = make_files(owner)
    imported = Import.objects.create(
        user=owner, name=f"{MARK}.jsonl", reader="izzy", state="failed", error=MARK
    )
    receipt = PurgeReceipt.objects.create(
        user=owner, source="memory", subject_ids=[str(uuid7())], state="done"
    )
    ClientSession.objects.create(
        user=owner,
        surface=ClientSession.Surface.HOOK,
        client="claude-code",
        key=HOOK_SESSION,
        conversation_id=conversation.pk,
        shown=[{"id": str(note.pk), "text": f"Allergic to prawns, says the {MARK}"}],
        prompts=[{"turn": "t1", "text": MARK, "at": "2026-05-01T12:00:00+00:00"}],
    )
    return Belongings(
        owner, note.pk, deleted.pk, waiting.pk, edge.pk, conversation.pk, message.pk, turn.pk, call.pk, token.pk,
        file, deleted_file, receipt.pk, *make_capability(owner), *make_build(owner, conversation), through(conversation.pk, f"https://{MARK}.example/").split("/")[-2],
        grant.pk, make_waiting_call(owner, reach), imported.pk, make_attachment(owner, conversation), folder.pk,
    )  # fmt: skip


def make_attachment(owner: User, conversation: Conversation) -> UUID:
    """A text beside a message of hers."""
    text = f"Prawns and shellfish, attached by the {MARK}"
    row = Attachment(
        user=owner,
        conversation=conversation,
        name=f"{MARK}.txt",
        kind="text",
        media_type="text/plain",
        size=len(text),
        text=text,
        characters=len(text),
    )
    attachment_file_write(row, text.encode(), b"")
    row.save(force_insert=True)
    return row.pk


def make_waiting_call(owner: User, reach: dict[str, Any]) -> UUID:
    """A call that a program of hers wanted to run."""
    call = call_wait(
        user_id=owner.pk,
        program=STDIO,
        client=MARK,
        tool=f"cap_{TOOL}",
        shown_input={"text": MARK},
        digest="0" * 64,
        reach=reach,
        reason=f"It can pass on what it is given to {MARK}.",
    )
    return call.pk


def make_build(owner: User, conversation: Conversation) -> tuple[UUID, UUID]:
    """A build that failed, with a question that nobody answered."""
    capability = capability_begin(
        user_id=owner.pk,
        name="never_built",
        description=f"For the {MARK}",
        input_schema={"type": "object"},
    )
    build = Build.objects.create(
        user=owner, capability=capability, name=capability.name, description=f"For the {MARK}", state="failed",
        input_schema=capability.input_schema,
        error_code="gave_up", reason=f"The {MARK} is too large", request=MARK, conversation_id=conversation.pk,
    )  # fmt: skip
    Follower.objects.create(user=owner, build=build, conversation_id=conversation.pk, turn_id=uuid7())
    message_add(build=build, type=MessageType.PROGRESS, payload={"text": MARK, "stage": "working"})
    payload = {"kind": "network", "hosts": [f"{MARK}.org"], "why": MARK, "text": MARK}
    question = message_add(build=build, type=MessageType.QUESTION, payload=payload)
    blocks = json.dumps([{"type": "text", "text": f"Building for the {MARK}"}])
    DialogueMessage.objects.create(
        user=owner, build=build, position=0, role="assistant", blocks=blocks, round=1
    )
    return build.pk, question.pk


def make_capability(owner: User) -> tuple[UUID, UUID]:
    """A capability with a past, a run and a secret that it asks for."""
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
        "additionalProperties": False,
    }
    main = f'def run(args: dict) -> str:\n    """Count for the {MARK}."""\n    return "{MARK} " * args["count"]\n'
    draft = Draft(
        description=f"Counts shellfish for the {MARK}",
        input_schema=schema,
        main=main,
        tags=[MARK],
        hosts=[f"{MARK}.org"],
        secrets=[SECRET],
    )
    made = capability_create(user_id=owner.pk, name=TOOL, draft=draft)
    capability_update(
        user_id=owner.pk, capability_id=made.pk, description=f"Counts chess games for the {MARK}"
    )
    user_secret_set(user_id=owner.pk, name=SECRET, value=f"{MARK}-value")
    run = Execution.objects.create(
        user=owner, capability=made, version=1, state="ok", input={"count": 1}, result=MARK, stdout=MARK
    )
    return made.pk, run.pk


def make_files(owner: User) -> tuple[UUID, UUID]:
    """A file with a past and a deleted one."""
    gone = file_write(user_id=owner.pk, path=GONE, text=f"The {MARK} was deleted")
    file_delete(user_id=owner.pk, path=GONE)
    file_write(user_id=owner.pk, path=FILE, text=f"Allergic to shellfish, wrote the {MARK}")
    return file_write(user_id=owner.pk, path=FILE, text=f"Prawns, wrote the {MARK}").pk, gone.pk


def rows_of(owner: User) -> dict[str, list[dict[str, Any]]]:
    """Every row that hangs on the user, as the database has it, to see afterwards that nobody touched one."""
    found = {}
    with connection.cursor() as cursor:
        for place, query in _queries().items():
            cursor.execute(query, [owner.pk.hex])
            names = [column[0] for column in cursor.description]
            found[place] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return found


@cache
def _queries() -> dict[str, str]:
    """A query for each column that refers to a user. Written out, since they run before and after thousands of requests."""
    return {
        f"{model._meta.db_table}.{field.column}": (
            f"SELECT * FROM {model._meta.db_table} WHERE {field.column} = %s ORDER BY {model._meta.pk.column}"
        )
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.ForeignKey) and field.related_model is User
    }
