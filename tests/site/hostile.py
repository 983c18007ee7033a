"""A user all of whose words are made to break pages: markup, an image of another host, one long line, right-to-left, emoji."""

from uuid import UUID

from apps.accounts.models import User
from apps.accounts.services import preferences_update, token_create
from apps.builder.models import Build
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.versions import capability_begin, capability_create
from apps.capabilities.models import Execution
from apps.chat.attachments.files import file_write as attachment_file_write
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.models import Attachment, Conversation, Folder
from apps.memory.files.services import file_write
from apps.memory.models import Import, Memory, Status
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create

MARKUP = """'"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{ 7|add:7 }}"""
IMAGE = "![x](https://evil.example/x.png) [y](javascript:window.hacked=1) <img src=//evil.example/y.png>"
LINE = "x" * 50_000
HEBREW = "\u202eשלום עולם 123 (מבחן)"
EMOJI = "👩‍👩‍👧‍👦🏳️‍🌈" * 12
WORDS = (MARKUP, IMAGE, LINE, HEBREW, EMOJI)
TOOL = "hostile_words"


def make_hostile(user: User) -> dict[str, str]:
    """Rows of every kind that a person, a file, a program or a page can name; the ids of some, by the parameter of their
    pages."""
    made: dict[str, list[UUID]] = {"memory": [], "file": [], "conversation": []}
    for place, words in enumerate(WORDS):
        tag = words[:40].replace(",", "")
        note = memory_create(
            user_id=user.pk,
            content=words[:20_000],
            tags=[tag],
            category=tag,
            occasions=[words[:60].replace("\u202e", "")],
        )
        made["memory"].append(note.pk)
        name = words[:60].replace("/", "|").replace("\u202e", "")
        made["file"].append(
            file_write(user_id=user.pk, path=f"/memories/{name}/{name}.md", text=words).pk
        )
        made["conversation"].append(make_conversation(user, words, place))
        Import.objects.create(
            user=user, name=words[:200], reader="izzy", state="failed", error=words[:500]
        )
        token_create(user=user, name=words[:60], scopes=["read"])
    first, *others = made["memory"]
    for other in others:
        edge_create(user_id=user.pk, source_id=first, target_id=other, relation="contradicts")
    waiting = [
        memory_create(user_id=user.pk, content=f"It waits: {words[:9_000]}").pk for words in WORDS
    ]
    Memory.everything.filter(pk__in=waiting).update(status=Status.PENDING, proposed_action="add")
    preferences_update(user_id=user.pk, display_name=MARKUP[:60], instructions=IMAGE)
    build = make_tool(user)
    return {
        **{f"{kind}{place}": str(key) for kind, keys in made.items() for place, key in enumerate(keys)},
        "build": str(build),
    }


def make_conversation(user: User, words: str, place: int) -> UUID:
    said = [
        {"role": role, "content": words, "external_id": f"{role}{place}"}
        for role in ("user", "assistant")
    ]
    key = messages_ingest(
        user_id=user.pk, session=f"s{place}", channel="mail", messages=said
    ).conversation_id
    folder = Folder.objects.create(user=user, name=words[:60])
    Conversation.objects.for_user(user).filter(pk=key).update(
        title=words[:200], channel="chat", session="", summary=words, summary_by="extract", folder=folder
    )
    row = Attachment(
        user=user,
        conversation_id=key,
        name=words[:100] + ".txt",
        kind="text",
        media_type="text/plain",
        size=len(words),
        text=words,
        characters=len(words),
    )
    attachment_file_write(row, words.encode(), b"")
    row.save(force_insert=True)
    return key


def make_tool(user: User) -> UUID:
    """A capability whose every text is hostile, a run of it for each, and a failed build."""
    text = " ".join((MARKUP, IMAGE, HEBREW, EMOJI))
    main = f"def run(args: dict) -> str:\n    return {LINE[:9_000]!r} + {MARKUP!r}\n"
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": text}}}
    draft = Draft(description=text[:900], input_schema=schema, main=main, tags=[MARKUP[:30], "x" * 30])
    tool = capability_create(user_id=user.pk, name=TOOL, draft=draft)
    for words in WORDS:
        Execution.objects.create(
            user=user,
            capability=tool,
            version=1,
            state="ok",
            input={"a": words},
            result=words,
            stdout=words,
        )
    begun = capability_begin(
        user_id=user.pk, name="never_built", description=text[:900], input_schema={"type": "object"}
    )
    build = Build.objects.create(
        user=user, capability=begun, name=begun.name, description=text[:900], state="failed",
        input_schema={"type": "object"}, error_code="gave_up", reason=text[:900] + LINE[:5_000], request=text,
    )  # fmt: skip
    return build.pk
