"""When a note matters, on each surface where it is shown or may be said: REST, pages, tools, admin, purge."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.agent.selectors import ConversationTaint
from apps.agent.tools.base import find_tool
from apps.agent.tools.schema import schema_error
from apps.core.ids import parse_id
from apps.core.purging.trace import MARKER
from apps.memory.models import Memory
from apps.memory.notes.changes import memory_update
from apps.memory.notes.creation import memory_submit
from apps.memory.notes.revisions import BY_ASSISTANT
from apps.memory.purge import memory_purge
from apps.memory.tools.search import fragment_json
from apps.memory.transfer.note_records import note_rows
from tests.memory.calling import BASE, post, send
from tests.memory.calling import alices as alices
from tests.memory.conftest import MakeNote
from tests.memory.purged import WORD
from tests.memory.purged import talk as talk
from tests.memory.test_deleting_notes import rows_with
from tests.memory.test_occasions import ALLERGY, FOREIGN, MINE, NO_KIND, indexed, now
from tests.tools import Tools

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
BAD: list[Any] = [
    "at sea",
    [5],
    [""],
    ["x" * 61],
    ["two\nlines"],
    ["a"] * 9,
    ["note-0190a5e0-ab"],
    {"a": 1},
]


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


def the_note(user: User) -> Memory:
    return Memory.objects.for_user(user).get()


# REST


def test_rest_takes_and_shows_them(alice: User, alices: Client) -> None:
    made = post(alices, BASE, {"content": NO_KIND, "occasions": [" at sea ", "At sea"]}).json()
    assert (made["occasions"], made["occasions_by"]) == (["at sea"], "user")
    path = f"{BASE}{made['id']}/"
    changed = send(alices, "PATCH", path, {"occasions": MINE}).json()
    assert (changed["occasions"], changed["occasions_by"]) == (MINE, "user")
    assert alices.get(path).json()["occasions"] == MINE
    newest, first = alices.get(f"{path}history/").json()["results"]
    assert (newest["occasions"], first["occasions"]) == (MINE, ["at sea"])
    assert send(alices, "PATCH", path, {"occasions": None}).json()["occasions_by"] == ""
    undone = post(alices, f"{path}undo/").json()
    assert (undone["occasions"], undone["occasions_by"]) == (MINE, "user")
    bulk = post(alices, f"{BASE}bulk/", [{"content": ALLERGY}, {"content": "Tea.", "occasions": MINE}])
    assert [row["occasions_by"] for row in bulk.json()["results"]] == ["rules", "user"]
    newer = post(alices, f"{path}supersede/", {"content": "Blarg.", "occasions": ["at home"]}).json()
    assert (newer["occasions"], newer["occasions_by"]) == (["at home"], "user")


@pytest.mark.parametrize("occasions", BAD, ids=str)
def test_rest_refuses_bad_ones_and_changes_nothing(
    alice: User, alices: Client, note: MakeNote, occasions: Any
) -> None:
    answer = post(alices, BASE, {"content": NO_KIND, "occasions": occasions})
    assert 400 <= answer.status_code < 500
    assert answer.json()["extra"]["field"] == "occasions"
    assert not Memory.objects.for_user(alice).exists()
    made = note(alice, ALLERGY, occasions=MINE)
    for path in (f"{BASE}{made.pk}/", f"{BASE}bulk/"):
        body = (
            [{"content": "Tea.", "occasions": occasions}] if "bulk" in path else {"occasions": occasions}
        )
        answer = send(alices, "POST" if "bulk" in path else "PATCH", path, body)
        assert 400 <= answer.status_code < 500
    assert (now(made), Memory.objects.for_user(alice).count()) == ((MINE, "user"), 1)


def test_rest_lets_nobody_say_who_made_them(alice: User, alices: Client, note: MakeNote) -> None:
    made = note(alice, ALLERGY)
    answer = send(alices, "PATCH", f"{BASE}{made.pk}/", {"occasions_by": "user"})
    assert answer.status_code == 400
    whole = alices.get(f"{BASE}{made.pk}/").json()
    assert send(alices, "PATCH", f"{BASE}{made.pk}/", whole | {"content": NO_KIND}).status_code == 200
    assert now(made) == ([], "")


def test_a_stranger_sees_and_changes_none(
    alice: User, bob: User, api: Callable[[User], Client], note: MakeNote
) -> None:
    made = note(alice, ALLERGY, occasions=MINE)
    stranger = api(bob)
    assert send(stranger, "PATCH", f"{BASE}{made.pk}/", {"occasions": ["x"]}).status_code == 404
    assert MINE[0] not in stranger.get(BASE).content.decode()
    assert now(made) == (MINE, "user")


def test_openapi_describes_them(alices: Client) -> None:
    schemas = alices.get("/api/schema/?format=json").json()["components"]["schemas"]
    field = schemas["MemoryInputRequest"]["properties"]["occasions"]
    assert (field["maxItems"], field["items"]["maxLength"]) == (8, 60)
    assert {"occasions", "occasions_by"} <= schemas["MemoryOutput"]["properties"].keys()


def test_an_export_has_them_and_nobody_elses(alice: User, bob: User, note: MakeNote) -> None:
    made = note(alice, ALLERGY, occasions=MINE)
    note(bob, NO_KIND, occasions=["at sea"])
    _, row = note_rows(alice.pk)
    assert (row["type"], row["id"], row["occasions"], row["occasions_by"]) == (
        "note",
        str(made.pk),
        MINE,
        "user",
    )
    json.dumps(row)


# Pages


def entered(page: str, key: str) -> dict[str, str]:
    """Returns the edit form's occasions, with those that were shown."""
    (text,) = re.findall(rf'<textarea name="{key}-occasions"[^>]*>\n?([^<]*)</textarea>', page)
    (shown,) = re.findall(rf'name="initial-{key}-occasions"(?: value="([^"]*)")?', page)
    return {f"{key}-occasions": text, f"initial-{key}-occasions": shown}


def edit(browser: Client, made: Memory, **values: str) -> str:
    """Saves the edit form as it is shown, with these values; the answer."""
    url, key = reverse("memory:edit", args=[made.pk]), str(made.pk)
    form = {f"{key}-content": made.content, **entered(browser.get(url).content.decode(), key)}
    form |= {f"{key}-{name}": value for name, value in values.items()}
    return browser.post(url, form, headers=HTMX).content.decode()


def test_the_card_and_the_form_say_who_made_them(alice: User, browser: Client, note: MakeNote) -> None:
    made, typed = note(alice, ALLERGY), note(alice, NO_KIND, occasions=MINE)
    page = browser.get("/memory/browse/").content.decode()
    assert made.occasions[0] in page
    assert MINE[0] in page
    for row, by in ((made, "by Izzy"), (typed, "yours")):
        card = browser.get(reverse("memory:card", args=[row.pk])).content.decode()
        assert f">{by}</span>" in card
    form = browser.get(reverse("memory:edit", args=[typed.pk])).content.decode()
    assert "You wrote these" in form
    assert (
        "Izzy took these from a table"
        in browser.get(reverse("memory:edit", args=[made.pk])).content.decode()
    )


def test_they_are_edited_one_in_each_line(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, ALLERGY)
    card = edit(browser, made, occasions="at the sea\r\n\r\n  in the mountains \r\n")
    assert now(made) == (["at the sea", "in the mountains"], "user")
    assert "at the sea" in card
    assert ">yours</span>" in card


def test_a_form_that_is_saved_as_it_was_shown_makes_none_the_users(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = memory_submit(
        user_id=alice.pk, content=NO_KIND, change=BY_ASSISTANT, occasions=["at sea", "at home"]
    )
    edit(browser, made, importance="5", occasions="at sea\r\nat home")
    assert now(made) == (["at sea", "at home"], "model")


def test_what_izzy_made_while_the_form_was_open_stays(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, ALLERGY)
    url, key = reverse("memory:edit", args=[made.pk]), str(made.pk)
    form = {f"{key}-content": ALLERGY, **entered(browser.get(url).content.decode(), key)}
    Memory.objects.for_user(alice).update(occasions=["made meanwhile"], occasions_by="model")
    browser.post(url, form | {f"{key}-tags": "food"}, headers=HTMX)
    assert now(made) == (["made meanwhile"], "model")


def test_after_a_new_text_the_card_says_what_became_of_them(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made, typed = note(alice, NO_KIND), note(alice, NO_KIND, occasions=MINE)
    assert "Made anew for the new text" in edit(browser, made, content=ALLERGY)
    assert "Yours stay" in edit(browser, typed, content=ALLERGY)
    assert now(typed) == (MINE, "user")
    assert "Yours stay" not in edit(browser, typed, content="Blarg.", occasions="at home")
    assert "Izzy looks for them anew" in edit(browser, made, content="Quux.")


def test_izzy_may_be_asked_for_others(alice: User, browser: Client, note: MakeNote) -> None:
    made, plain = note(alice, ALLERGY, occasions=MINE), note(alice, ALLERGY)
    assert "occasions_anew" not in browser.get(reverse("memory:edit", args=[plain.pk])).content.decode()
    edit(browser, made, occasions_anew="on")
    assert now(made)[1] == "rules"


def test_a_new_note_takes_what_is_typed(alice: User, browser: Client) -> None:
    form = {"new-content": NO_KIND, "new-occasions": "at the sea\nat home", "initial-new-occasions": ""}
    browser.post(reverse("memory:create"), form, headers=HTMX)
    assert now(the_note(alice)) == (["at the sea", "at home"], "user")


@pytest.mark.parametrize("text", ["x" * 61, "\n".join(map(str, range(9))), "bell \x07"])
def test_the_form_shows_what_is_wrong_with_them(
    alice: User, browser: Client, note: MakeNote, text: str
) -> None:
    made = note(alice, ALLERGY, occasions=MINE)
    url, key = reverse("memory:edit", args=[made.pk]), str(made.pk)
    answer = browser.post(url, {f"{key}-content": "Tea.", f"{key}-occasions": text}, headers=HTMX)
    assert answer.status_code == 422
    assert 'class="error"' in answer.content.decode()
    assert now(made) == (MINE, "user")
    assert Memory.everything.get(pk=made.pk).content == ALLERGY


def test_the_history_shows_those_of_each_version(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, ALLERGY, occasions=MINE)
    memory_update(user_id=alice.pk, memory_id=made.pk, occasions=["at the sea"])
    page = browser.get(reverse("memory:history", args=[made.pk])).content.decode()
    assert page.index("at the sea") < page.index(MINE[0])
    assert "when it comes up" in browser.get("/memory/timeline/?by=learned").content.decode()


def test_they_are_shown_as_text(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, NO_KIND, occasions=["<script>alert(1)</script>"])
    for name in ("card", "edit"):
        page = browser.get(reverse(f"memory:{name}", args=[made.pk])).content.decode()
        assert "<script>alert" not in page


def test_the_review_card_shows_those_that_izzy_made(alice: User, browser: Client) -> None:
    waiting = memory_submit(user_id=alice.pk, content=ALLERGY, change=FOREIGN, occasions=["always"])
    page = browser.get("/memory/review/").content.decode()
    assert waiting.occasions[0] in page
    assert ">by Izzy</span>" in page
    assert "always" not in page


def test_rest_shows_those_of_what_waits(alice: User, alices: Client) -> None:
    memory_submit(user_id=alice.pk, content=ALLERGY, change=FOREIGN)
    (waiting,) = alices.get(f"{BASE}review/").json()["results"]
    assert (waiting["occasions_by"], bool(waiting["occasions"])) == ("rules", True)


def test_the_admin_edits_them_as_the_user(
    admin: User, alice: User, sign_in: Callable[[User], Client], note: MakeNote
) -> None:
    made = note(alice, ALLERGY)
    form = {"content": ALLERGY, "tier": "long_term", "kind": "general", "importance": "3", "tags": "[]"}
    url = reverse("admin:memory_memory_change", args=[made.pk])
    browser = sign_in(admin)
    assert browser.post(url, {**form, "occasions": json.dumps(["x" * 61])}).status_code == 200
    assert now(made)[1] == "rules"
    assert browser.post(url, {**form, "occasions": json.dumps(MINE)}).status_code == 302
    assert now(made) == (MINE, "user")


# Tools


@pytest.mark.django_db(transaction=True)
async def test_a_saved_note_has_those_that_the_model_gives(alice: User) -> None:
    answer = await Tools(user_id=alice.pk).call("memory_save", content=NO_KIND, occasions=MINE)
    assert MINE[0] not in str(answer)
    row = await Memory.everything.aget(pk=parse_id(answer["note_id"]))
    assert (row.occasions, row.occasions_by, row.trust) == (MINE, "model", "assistant")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("said", [[], [NO_KIND]])
async def test_where_others_words_were_read_the_model_gives_none(alice: User, said: list[str]) -> None:
    """Also where the note itself is a sentence of the user's."""
    taint = ConversationTaint(user_id=alice.pk, shown_untrusted=lambda: True, messages=lambda: said)
    tools = Tools(user_id=alice.pk, taint=taint)
    await tools.call("memory_save", content=NO_KIND, occasions=["any message at all"])
    row = await Memory.objects.for_user(alice).aget()
    assert (row.occasions, row.occasions_by) == ([], "")
    assert row.trust == ("assistant" if said else "untrusted")


@pytest.mark.parametrize("occasions", BAD, ids=str)
def test_the_tool_refuses_bad_ones(alice: User, occasions: Any) -> None:
    tool, given = find_tool("memory_save"), {"content": NO_KIND, "occasions": occasions}
    assert tool is not None
    if not schema_error(tool.input_schema, given):
        with pytest.raises(Exception, match="occasions"):
            Tools(user_id=alice.pk).at_once("memory_save", **given)
    assert not Memory.objects.for_user(alice).exists()


def test_no_tool_shows_them_as_words_of_the_note(alice: User, note: MakeNote) -> None:
    made = note(alice, NO_KIND, occasions=MINE)
    assert MINE[0] not in json.dumps(fragment_json(made))


# Purge


def test_a_purge_takes_them_with_it(alice: User, note: MakeNote, talk: tuple[Memory, Any, Any]) -> None:
    made, _, answer = talk
    phrase = "quokkamarzipan for everyone"
    memory = {"content": made.content, "occasions": ["choosing a restaurant", phrase]}
    ToolCall.objects.for_user(alice).update(input=memory)
    use = {"type": "tool_use", "id": "toolu_9", "name": "memory_save", "input": memory}
    answer.blocks = json.dumps([use])
    answer.save()
    for phrases in (["choosing a restaurant", phrase], ["wombatnougat tasting"]):
        memory_update(user_id=alice.pk, memory_id=made.pk, occasions=phrases)
    other = note(alice, NO_KIND, occasions=["choosing a restaurant"])
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk], redact=True)
    assert receipt.left == []
    for word in (WORD, "quokkamarzipan", "wombatnougat"):
        assert rows_with(word) == {}
    kept = ToolCall.objects.for_user(alice).get().input
    assert kept == {"content": MARKER, "occasions": [MARKER, MARKER]}
    assert indexed(made) == []
    assert now(other) == (["choosing a restaurant"], "user")


def test_another_note_that_names_what_was_purged_is_reported(alice: User, note: MakeNote) -> None:
    made = note(alice, f"The {WORD} is kept under the third stair.")
    note(alice, NO_KIND, occasions=["what is kept under the third stair"])
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    (line,) = [entry for entry in receipt.places if entry["place"] == "memory.notes"]
    assert line["left"] == 1
