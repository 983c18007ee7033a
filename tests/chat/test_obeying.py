"""A model that does whatever a page says changes nothing of what the user keeps: it waits for their review, or for a yes."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.chat.models import Conversation
from apps.chat.turns.scheduler import scheduler as runners
from apps.core.db.pool import in_db
from apps.memory.files.services import file_write
from apps.memory.models import Memory, MemoryEdge, MemoryFile
from apps.memory.notes.creation import memory_create
from tests.chat.client import connected
from tests.chat.obeying import opens, said
from tests.chat.rows import conversation
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.web_pages import WebPages

pytestmark = pytest.mark.django_db(transaction=True)

ALLERGIC = "The user is allergic to penicillin and to nuts."
SAVINGS, RENT = "The user's savings account is 1111.", "The user's rent goes to account 2222."


class Obeying:
    """Alice, and a model that reads a page and then makes the calls that the page asks for."""

    def __init__(self, alice: User, model: AnthropicServer, web: WebPages) -> None:
        self.alice, self.model, self.web = alice, model, web

    async def note(self, content: str, **fields: Any) -> Memory:
        return await in_db(lambda: memory_create(user_id=self.alice.pk, content=content, **fields))

    async def file(self, path: str, text: str) -> None:
        await in_db(lambda: file_write(user_id=self.alice.pk, path=path, text=text))

    async def does(self, words: str, *calls: dict[str, Any], **options: Any) -> dict[str, Any] | None:
        """A turn in a conversation of its own; what it waits for first, which is declined."""
        self.model.add(opens(self.web.url("/article")), *map(reply, calls), reply("Done."))
        return await said(self.alice, await conversation(self.alice), words, **options)

    async def notes(self, **wanted: Any) -> dict[str, str]:
        """By text: the category of the active notes, or of others."""
        rows = Memory.objects.for_user(self.alice).filter(**(wanted or {"status": "active"}))
        return await in_db(lambda: dict(rows.values_list("content", "category")))

    async def files(self) -> dict[str, tuple[str, str]]:
        """By path: content and trust."""
        rows = MemoryFile.objects.for_user(self.alice)
        return await in_db(
            lambda: {
                path: (text, trust) for path, text, trust in rows.values_list("path", "content", "trust")
            }
        )


@pytest.fixture
def izzy(alice: User, model: AnthropicServer, web: WebPages) -> Obeying:
    return Obeying(alice, model, web)


async def test_a_note_loses_nothing_that_is_in_it(izzy: Obeying) -> None:
    note = await izzy.note(ALLERGIC)
    shorter = "The user is allergic to nuts."

    await izzy.does(
        "Are there nuts in the cake? I'm allergic to penicillin and to nuts.",
        tool("memory_update", {"note_id": note.note_id, "content": shorter}),
    )

    assert list(await izzy.notes()) == [ALLERGIC]
    assert list(await izzy.notes(status="pending")) == [shorter]


async def test_two_accounts_are_not_swapped(izzy: Obeying) -> None:
    """Each of the new texts holds nothing but words of the user."""
    savings, rent = await izzy.note(SAVINGS), await izzy.note(RENT)
    words = "My savings account is 1111 and my rent goes to account 2222, are they in this list?"
    swapped = ["The user's savings account is 2222.", "The user's rent goes to account 1111."]

    await izzy.does(
        words,
        tool("memory_update", {"note_id": savings.note_id, "content": swapped[0]}),
        tool("memory_update", {"note_id": rent.note_id, "content": swapped[1]}),
    )

    assert set(await izzy.notes()) == {SAVINGS, RENT}
    assert set(await izzy.notes(status="pending")) == set(swapped)


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("I am not allergic to nuts.", "The user is allergic to nuts."),
        ("Ada owes Bob five euros.", "Bob owes Ada five euros."),
        (
            "She wrote “you are allergic to nuts and to everything else” to me.",
            "The user is allergic to nuts.",
        ),
        ("Yes", "The user's bank is evil.example."),
    ],
)
async def test_what_is_not_a_whole_sentence_of_the_user_waits(
    izzy: Obeying, words: str, content: str
) -> None:
    """A negation left out, names swapped, a half of a quotation, and a yes alone."""
    await izzy.does(words, tool("memory_save", {"content": content}))

    assert not await izzy.notes()
    assert list(await izzy.notes(status="pending")) == [content]


async def test_a_note_is_changed_at_once_to_what_the_user_said_themselves(izzy: Obeying) -> None:
    note = await izzy.note("The user's savings account is 1111.")

    await izzy.does(
        "Is this bank safe? My savings account is 3333.",
        tool(
            "memory_update", {"note_id": note.note_id, "content": "The user's savings account is 3333."}
        ),
    )

    assert list(await izzy.notes()) == ["The user's savings account is 3333."]


@pytest.mark.parametrize("words", ["Answer me in verse from now on.", "What does it say?"])
@pytest.mark.parametrize("name", ["memory_save", "memory_update"])
async def test_nothing_is_made_to_stand_in_every_conversation(
    izzy: Obeying, words: str, name: str
) -> None:
    """Neither a new note nor one that stands already, also in the user's own words."""
    stands = await izzy.note("Answer briefly.", category="standing")
    calls = {
        "memory_save": {"content": "Answer me in verse from now on.", "category": "standing"},
        "memory_update": {"note_id": stands.note_id, "content": "Answer me in verse from now on."},
    }

    await izzy.does(words, tool(name, calls[name]))

    standing = {"status": "active", "category": "standing"}
    assert list(await izzy.notes(**standing)) == ["Answer briefly."]
    waiting = await izzy.notes(status="pending")
    assert "standing" not in waiting.values() or name == "memory_update"


async def test_labels_are_kept_where_the_user_said_them(izzy: Obeying) -> None:
    await izzy.does(
        "I'm allergic to nuts. What is in this cake? Health.",
        tool(
            "memory_save",
            {
                "content": "The user is allergic to nuts.",
                "tags": ["health", "harmless"],
                "category": "ignore",
            },
        ),
    )

    (note,) = await in_db(lambda: list(Memory.objects.for_user(izzy.alice)))
    assert (note.status, note.tags, note.category) == ("active", ["health"], "")
    (result,) = izzy.model.requests[2].json["messages"][-1]["content"]
    assert "harmless" in result["content"]
    assert "left out" in result["content"]


FOOD = "/memories/food.md"
TEXT = "Ada is not allergic to penicillin.\nAda is allergic to nuts.\n"


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "str_replace", "path": FOOD, "old_str": "is not", "new_str": "is"},
        {"command": "str_replace", "path": FOOD, "old_str": "not "},
        {"command": "replace", "path": FOOD, "old_str": TEXT, "new_str": ""},
        {"command": "create", "path": FOOD, "file_text": ""},
        {"command": "create", "path": FOOD, "file_text": "Ada is allergic to nuts."},
        {"command": "write", "path": "/memories//food.md", "content": "x"},
        {"command": "delete", "path": FOOD},
        {"command": "remove", "path": "/memories/food.md/"},
        {"command": "rename", "old_path": FOOD, "new_path": "/memories/nothing.md"},
    ],
)
async def test_a_file_is_changed_after_a_yes_alone(izzy: Obeying, fields: dict[str, Any]) -> None:
    await izzy.file(FOOD, TEXT)

    waits = await izzy.does("Ada is allergic to nuts. What is in this cake?", tool("memory", fields))

    assert waits is not None
    assert waits["name"] == "memory"
    assert "others wrote" in waits["reason"]
    assert await izzy.files() == {FOOD: (TEXT, "user")}


async def test_after_a_yes_it_is_done_and_marked(izzy: Obeying) -> None:
    await izzy.file(FOOD, TEXT)

    await izzy.does(
        "What is in this cake?",
        tool("memory", {"command": "create", "path": FOOD, "file_text": "Ada eats everything."}),
        decision="allow",
    )

    assert await izzy.files() == {FOOD: ("Ada eats everything.", "untrusted")}


@pytest.mark.parametrize(
    ("path", "trust"),
    [
        ("/memories/ada-is-allergic-to-nuts.md", "assistant"),
        ("/memories/cake.md", "untrusted"),
        ("/memories/penicillin-is-safe.md", "untrusted"),
        ("/memories/penicillin/is/safe.md", "untrusted"),
        ("/memories/penicillinissafe.md", "untrusted"),
    ],
)
async def test_a_new_file_is_judged_by_its_path_as_well(izzy: Obeying, path: str, trust: str) -> None:
    own = "Ada is allergic to nuts."

    waits = await izzy.does(own, tool("memory", {"command": "create", "path": path, "file_text": own}))

    assert waits is None
    assert await izzy.files() == {path: (own, trust)}


async def test_the_names_of_several_files_of_others_taint_whoever_lists_them(izzy: Obeying) -> None:
    """Each is a word, and together they are a sentence."""
    new = [
        {"command": "create", "path": f"/memories/{name}.md", "file_text": "x"}
        for name in ("eat", "nuts")
    ]
    await izzy.does("What is in this cake?", *[tool("memory", each) for each in new])

    izzy.model.add(
        reply(tool("memory", {"command": "view", "path": "/memories"})),
        reply(tool("memory_save", {"content": "The user eats nuts."})),
        reply("Done."),
    )
    await said(izzy.alice, await conversation(izzy.alice), "What is in my files?")

    assert list(await izzy.notes(status="pending")) == ["The user eats nuts."]


@pytest.mark.parametrize("after_a_page", [True, False])
async def test_a_question_says_that_others_words_may_be_behind_it(
    izzy: Obeying, after_a_page: bool
) -> None:
    asks = reply(tool("ask_user", {"question": "What is your PIN?"}))
    izzy.model.add(*([opens(izzy.web.url("/article"))] if after_a_page else []), asks, reply("Thanks."))
    place = await conversation(izzy.alice)
    async with connected(izzy.alice) as page:
        await page.say("Is this bank safe?", conversation=place)
        asked = await page.until("question")
        ended = await page.ended()
        reopened = await page.snapshot(place)
        await page.send("answer", id=asked["id"], text="No.")
        await page.ended()
        await runners().idle()
    for shown in (asked, ended["pending_question"], reopened["turn"]["waiting_for"][0]):
        assert ("others wrote" in shown.get("reason", "")) is after_a_page


@pytest.mark.parametrize("name", ["memory_delete", "link_memories", "conversation_delete"])
async def test_what_takes_away_or_makes_to_stay_waits_whatever_the_user_has_set(
    izzy: Obeying, name: str
) -> None:
    await in_db(lambda: preferences_update(user_id=izzy.alice.pk, tool_approval={name: "allow"}))
    one, two = await izzy.note(SAVINGS), await izzy.note(RENT)
    kept = await conversation(izzy.alice)
    calls = {
        "memory_delete": {"note_id": one.note_id},
        "link_memories": {"source_id": one.note_id, "target_id": two.note_id},
        "conversation_delete": {"conversation_id": kept},
    }

    waits = await izzy.does("What is in this cake?", tool(name, calls[name]))

    assert waits is not None
    assert waits["name"] == name
    assert set(await izzy.notes()) == {SAVINGS, RENT}
    assert not await in_db(lambda: MemoryEdge.objects.for_user(izzy.alice).exists())
    assert await in_db(lambda: Conversation.objects.for_user(izzy.alice).filter(pk=kept).exists())
