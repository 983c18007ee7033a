"""The note tools on a real memory."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import Review, User
from apps.accounts.services import preferences_update
from apps.agent.selectors import ConversationTaint
from apps.core.db.pool import in_db
from apps.core.errors import InvalidInput, IzzyError, NotFound, TooLarge
from apps.core.ids import parse_id, uuid7
from apps.memory.models import Memory, MemoryRevision, Origin, Trust
from apps.memory.notes.changes import cycle_advance, memory_archive, memory_update
from apps.memory.notes.revisions import Change
from apps.memory.notes.selectors import note_history, open_contradictions
from apps.memory.notes.undoing import memory_restore
from apps.memory.tools.saving import UNCHANGED
from apps.memory.tools.search import UNKNOWN_NOTE
from apps.search.documents import Document, Source
from apps.search.services import documents_index
from tests.memory.conftest import MakeNote
from tests.tools import Tools

pytestmark = pytest.mark.django_db(transaction=True)


async def search(tools: Tools, query: str, **options: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = await tools.call("memory_search", query=query, **options)
    return found


async def save(tools: Tools, content: str, **options: object) -> str:
    return str((await tools.call("memory_save", content=content, **options))["note_id"])


async def update(tools: Tools, note_id: str, content: str) -> dict[str, str]:
    answer: dict[str, str] = await tools.call("memory_update", note_id=note_id, content=content)
    return answer


async def delete(tools: Tools, note_id: str) -> dict[str, str]:
    answer: dict[str, str] = await tools.call("memory_delete", note_id=note_id)
    return answer


async def test_a_note_lives_through_save_search_update_and_delete(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    note_id = await save(tools, "The user's name is Shantanu.")
    assert [hit["note_id"] for hit in await search(tools, "name")] == [note_id]
    updated = await update(tools, note_id, "The user prefers to be called SG; the name is theirs.")
    assert updated["note_id"] == note_id
    (hit,) = await search(tools, "name")
    assert hit["text"] == "The user prefers to be called SG; the name is theirs."
    assert not any("Shantanu" in str(found["text"]) for found in await search(tools, "Shantanu"))
    assert (await delete(tools, note_id))["note_id"] == note_id
    assert await search(tools, "name") == []


async def test_a_result_has_the_documented_fields(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    note_id = await save(tools, "The router stands in the hall.")
    (hit,) = await search(tools, "router")
    assert set(hit) == {"note_id", "text", "score", "reason", "source", "created_at"}
    assert hit["reason"] == "Has the word ‘router’."
    assert (hit["note_id"], hit["source"]) == (note_id, "memory")
    assert 0 <= float(str(hit["score"])) <= 1


async def test_a_threshold_leaves_out_what_scores_less_and_falls_over_notes_and_talk(
    alice: User, bob: User
) -> None:
    conversation = uuid7()
    tools = Tools(user_id=alice.pk, conversation_id=conversation)
    wanted = await save(tools, "The dentist is Dr Weber in Lindenstrasse.")
    await save(tools, "The garden needs water every second evening.")
    await save(Tools(user_id=bob.pk), "The dentist is Dr Hofmann.")
    said = Document(
        source=Source.CONVERSATION,
        source_id=uuid7(),
        text="Let us talk about teeth and gardens.",
        happened_at=timezone.now(),
        conversation_id=conversation,
    )
    await in_db(lambda: documents_index(user_id=alice.pk, documents=[said]))
    every = await search(tools, "Who is my dentist?", include_conversation=True)
    assert len(every) == 3
    scores = [float(str(hit["score"])) for hit in every]
    assert scores == sorted(scores, reverse=True)
    (hit,) = await search(tools, "Who is my dentist?", include_conversation=True, threshold=0.45)
    assert hit["note_id"] == wanted


async def test_saving_keeps_what_was_given_and_where_it_came_from(alice: User) -> None:
    conversation, message = uuid7(), uuid7()
    tools = Tools(user_id=alice.pk, conversation_id=conversation, message_id=message)
    plain = await save(tools, "Likes tea.")
    full = await save(
        tools, "Meeting at three.", tags=["work"], tier="short_term", importance=5, category="diary"
    )
    rows = await in_db(lambda: {row.note_id: row for row in Memory.objects.for_user(alice)})
    assert (rows[plain].tier, rows[plain].importance, rows[plain].priority) == ("long_term", 3, 0.9)
    assert (rows[full].tier, rows[full].importance, rows[full].priority) == ("short_term", 5, 0.6)
    assert (rows[full].tags, rows[full].category) == (["work"], "diary")
    for row in rows.values():
        assert (row.origin, row.trust) == ("assistant", "assistant")
        assert (row.source_conversation_id, row.source_message_id) == (conversation, message)


async def test_what_is_known_already_is_not_noted_twice(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    first = await save(tools, "The user's sister Ada lives in Rome.", tags=["family"])
    again = await save(
        tools, "The user's sister Ada lives in Rome!", tags=["people"], importance=4, category="standing"
    )
    assert again == first
    (row,) = await in_db(lambda: list(Memory.objects.for_user(alice)))
    assert (row.tags, row.importance, row.category) == (["family", "people"], 4, "standing")
    assert row.access_count == 1
    others = [
        "The user's sister Ada lives in Paris.",
        "The user's sister Ada does not live in Rome.",
        "The user's sister Ada lives in Rome with her husband Piet.",
        "The user's sisters Ada and Eva live in Rome.",
    ]
    assert len({first, *[await save(tools, text) for text in others]}) == 5


async def test_who_saves_a_correction_is_told_what_it_makes_untrue(alice: User, note: MakeNote) -> None:
    tools = Tools(user_id=alice.pk)
    old = await save(tools, "The user works as a nurse at the city hospital.")
    await save(tools, "The router stands in the hall.")
    others = Change(actor=Origin.USER, trust=Trust.UNTRUSTED)
    await in_db(note, alice, "The user works as a nurse at the old hospital.", change=others)
    answer = await tools.call("memory_save", content="The user works as a teacher at the city school.")
    assert [one["note_id"] for one in answer["similar"]] == [old]
    assert "memory_delete" in answer["message"]
    assert "similar" not in await tools.call(
        "memory_save", content="The cellar key hangs behind the door."
    )


async def test_a_note_that_denies_another_waits_for_the_users_word(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    old = await save(tools, "The user eats meat.")
    await save(tools, "The user eats fish on Fridays.")
    new = await save(tools, "The user does not eat meat.")
    (edge,) = await in_db(lambda: list(open_contradictions(alice.pk)))
    assert (edge.source.note_id, edge.target.note_id) == (new, old)
    await delete(tools, old)
    assert not await in_db(lambda: list(open_contradictions(alice.pk)))


async def test_what_is_known_already_is_not_called_saved(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    note_id = await save(tools, "The user likes tea.")
    again = await tools.call("memory_save", content="the user likes Tea", tags=["drinks"])
    same = await update(tools, note_id, " The user likes tea. ")
    assert (again["status"], again["note_id"], again["text"]) == (
        "known",
        note_id,
        "The user likes tea.",
    )
    assert again["message"].endswith("Brought up to date: tags.")
    assert (same["status"], same["message"]) == ("known", UNCHANGED)
    assert "updated" not in same["message"].lower()
    changed = await update(tools, note_id, "The user likes green tea.")
    assert "status" not in changed


async def test_labels_that_wait_for_review_are_not_called_done(alice: User, note: MakeNote) -> None:
    made = await in_db(lambda: note(alice, "The user likes tea."))
    await in_db(lambda: preferences_update(user_id=alice.pk, review=str(Review.EVERYTHING)))
    again = await Tools(user_id=alice.pk).call(
        "memory_save", content="The user likes tea.", tags=["drinks"]
    )
    assert (again["status"], again["note_id"]) == ("known", made.note_id)
    assert "Brought up to date" not in again["message"]
    assert "The change of its tags waits for the user's review" in again["message"]


async def test_words_of_others_change_nothing_in_a_note_that_says_the_same(alice: User) -> None:
    first = await save(Tools(user_id=alice.pk), "The user likes tea.")
    taint = ConversationTaint(user_id=alice.pk, shown_untrusted=lambda: True)
    again = await save(Tools(user_id=alice.pk, taint=taint), "The user likes tea.", category="standing")
    assert again == first
    (row,) = await in_db(lambda: list(Memory.objects.for_user(alice)))
    assert (row.category, row.trust) == ("", "assistant")


async def test_the_history_tells_that_the_assistant_changed_it(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    note_id = await save(tools, "Likes tea.")
    await update(tools, note_id, "Likes coffee.")
    newest, _ = await in_db(note_history, alice.pk, parse_id(note_id))
    assert (newest.action, newest.actor) == ("updated", "assistant")


async def test_only_what_is_returned_counts_as_read(alice: User, note: MakeNote) -> None:
    tools = Tools(user_id=alice.pk)
    read = await in_db(note, alice, "The router stands in the hall.")
    unread = await in_db(note, alice, "The router manual is in the desk.")
    await search(tools, "router hall", top_k=1)
    rows = await in_db(lambda: {row.pk: row for row in Memory.objects.for_user(alice)})
    assert (rows[read.pk].access_count, rows[unread.pk].access_count) == (1, 0)
    assert rows[read.pk].last_accessed is not None


async def test_a_faded_note_is_found_and_marked(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    await save(tools, "Parking ticket is in the drawer.", tier="short_term")
    for _ in range(28):
        await in_db(cycle_advance, user_id=alice.pk)
    await save(tools, "Parking at work is free.")
    hits = {str(hit["text"]): hit.get("faded") for hit in await search(tools, "parking")}
    assert hits == {"Parking ticket is in the drawer.": True, "Parking at work is free.": None}


async def test_a_search_keeps_to_its_category(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    await save(tools, "Tea is for the morning.", category="home")
    await save(tools, "Tea is served at four.", category="work")
    assert [hit["text"] for hit in await search(tools, "tea", category="work")] == [
        "Tea is served at four."
    ]
    assert await search(tools, "tea", category="nothing") == []


async def test_the_conversation_is_searched_only_on_request_and_only_this_one(
    alice: User, note: MakeNote
) -> None:
    here, elsewhere = uuid7(), uuid7()
    await in_db(note, alice, "The router stands in the hall.")

    def said(conversation: object, text: str) -> None:
        document = Document(
            source=Source.CONVERSATION,
            source_id=uuid7(),
            text=text,
            happened_at=timezone.now(),
            conversation_id=conversation,  # type: ignore[arg-type]
            speaker="user",
        )
        documents_index(user_id=alice.pk, documents=[document])

    await in_db(said, here, "My router keeps dropping the connection.")
    await in_db(said, elsewhere, "A router at work is broken.")
    tools = Tools(user_id=alice.pk, conversation_id=here)
    assert [hit["source"] for hit in await search(tools, "router")] == ["memory"]
    hits = await search(tools, "router", include_conversation=True)
    assert {str(hit["text"]): (hit["source"], hit["note_id"] is None) for hit in hits} == {
        "The router stands in the hall.": ("memory", False),
        "My router keeps dropping the connection.": ("conversation", True),
    }
    assert len(await search(tools, "router", include_conversation=True, top_k=1)) == 1


async def test_an_earlier_time_gives_the_text_of_that_time(alice: User, note: MakeNote) -> None:
    tools = Tools(user_id=alice.pk)
    made = await in_db(note, alice, "The user lives in Portland.")
    moment = timezone.now()
    await in_db(memory_update, user_id=alice.pk, memory_id=made.pk, content="The user lives in Austin.")
    before = await search(tools, "where does the user live", as_of=moment.isoformat())
    assert [hit["text"] for hit in before] == ["The user lives in Portland."]
    assert [hit["text"] for hit in await search(tools, "where does the user live")] == [
        "The user lives in Austin."
    ]
    assert await search(tools, "lives", as_of=(moment - timedelta(days=1)).isoformat()) == []


async def test_a_time_that_is_none_is_refused(alice: User) -> None:
    with pytest.raises(InvalidInput, match="as_of"):
        await search(Tools(user_id=alice.pk), "tea", as_of="last spring")


async def test_a_long_note_is_answered_by_its_fitting_passage(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    filler = " ".join(f"Sentence {number} is about gardens and nothing else." for number in range(200))
    await save(tools, f"{filler} The spare key lies under the blue flowerpot. {filler}")
    (hit,) = await search(tools, "spare key flowerpot")
    assert "blue flowerpot" in str(hit["text"])
    assert len(str(hit["text"])) < 4000


@pytest.mark.parametrize(
    "note_id",
    ["note-00000000-0000-7000-8000-000000000000", "note-1", "", "x" * 500, "../etc", "a\x00b", "🦞"],
)
async def test_an_unknown_or_malformed_id_says_how_to_find_the_right_one(
    alice: User, note_id: str
) -> None:
    tools = Tools(user_id=alice.pk)
    for change in (update(tools, note_id, "New."), delete(tools, note_id)):
        with pytest.raises(NotFound, match="Call memory_search"):
            await change


async def test_a_foreign_id_is_answered_like_an_unknown_one(alice: User, bob: User) -> None:
    note_id = await save(Tools(user_id=alice.pk), "Alice's secret.")
    tools = Tools(user_id=bob.pk)
    for change in (update(tools, note_id, "Bob was here."), delete(tools, note_id)):
        with pytest.raises(NotFound) as refused:
            await change
        assert refused.value.message == UNKNOWN_NOTE.format(id=note_id)
    assert await search(tools, "secret") == []
    assert [hit["text"] for hit in await search(Tools(user_id=alice.pk), "secret")] == [
        "Alice's secret."
    ]


@pytest.mark.parametrize("text", ["", "  \n ", "a\x00b", "\ud800"])
async def test_empty_and_unstorable_text_is_refused(alice: User, text: str) -> None:
    tools = Tools(user_id=alice.pk)
    note_id = await save(tools, "Likes tea.")
    for attempt in (save(tools, text), update(tools, note_id, text), search(tools, text)):
        with pytest.raises(InvalidInput):
            await attempt
    assert await in_db(Memory.objects.for_user(alice).count) == 1
    assert await in_db(MemoryRevision.objects.for_user(alice).count) == 0


async def test_text_over_the_limit_is_refused_with_the_limit(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    note_id = await save(tools, "Likes tea.")
    for attempt in (save(tools, "x" * 20_001), update(tools, note_id, "x" * 20_001)):
        with pytest.raises(TooLarge, match="20,000"):
            await attempt


async def test_bad_options_are_refused_by_name(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    for options in ({"tier": "medium"}, {"importance": 9}, {"tags": [""]}, {"category": "x" * 65}):
        with pytest.raises(IzzyError) as refused:
            await save(tools, "Likes tea.", **options)
        assert refused.value.extra["field"] == next(iter(options))


async def test_a_note_whose_text_is_a_command_stays_a_text(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    text = "'; DROP TABLE memory_memory; -- \" OR 1=1 * NEAR(a b) {x}"
    note_id = await save(tools, text)
    hits = await search(tools, "'; DROP TABLE memory_memory; -- \" OR NEAR(")
    assert [(hit["note_id"], hit["text"]) for hit in hits] == [(note_id, text)]


async def test_a_restored_note_is_found_again(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    note_id = await save(tools, "Likes tea.")
    await delete(tools, note_id)
    await in_db(memory_restore, user_id=alice.pk, memory_id=parse_id(note_id))
    assert [hit["note_id"] for hit in await search(tools, "tea")] == [note_id]
    await in_db(memory_archive, user_id=alice.pk, memory_id=parse_id(note_id))
    assert await search(tools, "tea") == []
