"""A memory's own page: what stands on it, and what can be done there."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.chat.conversations.services import conversation_delete
from apps.chat.models import Conversation, Message
from apps.memory.files.services import file_write
from apps.memory.models import Memory, MemoryUse, UsedIn
from apps.memory.notes.changes import cycle_advance, memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import (
    contradiction_resolve,
    edge_create,
    memory_merge,
    memory_supersede,
)
from apps.memory.notes.selectors import memory_get, note_kept
from apps.memory.notes.uses import KEPT, uses_record
from apps.memory.pages.one import curve_of
from apps.memory.purge import memory_purge
from apps.memory.recall.injection import surface
from tests.memory.conftest import MakeNote

SignIn = Callable[[User], Client]


@pytest.fixture
def browser(alice: User, sign_in: SignIn) -> Client:
    cache.clear()
    return sign_in(alice)


def page_of(client: Client, note: Memory, query: str = "") -> str:
    answer = client.get(reverse("memory:note", args=[note.pk]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def message_of(user: User, text: str) -> Message:
    conversation = Conversation.objects.create(user=user, title="About dinner")
    return Message.objects.create(
        user=user, conversation=conversation, role="user", text=text, position=0, blocks="[]"
    )


def brought_up(note: Memory, question: str, message: Message | None = None) -> None:
    uses_record(
        user_id=note.user_id,
        reasons={note.pk: "Has the word ‘dinner’."},
        used_in=UsedIn.SURFACED,
        question=question,
        conversation_id=message.conversation_id if message else None,
        message_id=message.pk if message else None,
    )


def test_the_page_shows_what_is_known_of_a_note(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "The user likes tea.", tags=["food"], kind="preference", importance=5)
    page = page_of(browser, made)
    for words in ("You like tea.", "#food", "Preference", "vital", "0.90", made.note_id, "Added by you"):
        assert words in page


def test_whoever_brought_it_up_is_told_with_the_way_to_the_message(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made, message = note(alice), message_of(alice, "What is for dinner?")
    brought_up(made, "What is for dinner?", message)
    page = page_of(browser, made)
    assert "“What is for dinner?”" in page
    assert "Has the word ‘dinner’." in page
    assert f"/c/{message.conversation_id}/#message-{message.pk}" in page
    assert "About dinner" in page


def test_the_source_is_quoted_with_the_way_to_it(alice: User, browser: Client, note: MakeNote) -> None:
    message = message_of(alice, "I like my tea green.")
    made = note(alice)
    Memory.objects.for_user(alice).filter(pk=made.pk).update(
        source_conversation_id=message.conversation_id, source_message_id=message.pk
    )
    page = page_of(browser, made)
    assert "I like my tea green." in page
    assert f"/c/{message.conversation_id}/#message-{message.pk}" in page
    assert "is gone" not in page
    message.delete()  # it gave way to another version
    page = page_of(browser, made)
    assert "The message it came from is gone: it was edited or deleted since." in page
    assert f'href="/c/{message.conversation_id}/"' in page
    conversation_delete(user_id=alice.pk, conversation_id=message.conversation_id)
    assert "no longer there" in page_of(browser, made)


def test_a_note_that_is_surfaced_keeps_why(alice: User, note: MakeNote) -> None:
    made = note(alice, "I am allergic to shellfish.")
    surface(alice.pk, ["Shall we order shellfish?"])
    use = MemoryUse.objects.for_user(alice).get()
    assert (use.memory_id, use.used_in, use.question) == (
        made.pk,
        "surfaced",
        "Shall we order shellfish?",
    )
    assert use.reason
    assert memory_get(alice.pk, made.pk).use_count == 1


def test_the_newest_ten_uses_of_each_note_are_kept(alice: User, note: MakeNote) -> None:
    one, two = note(alice, "Likes tea."), note(alice, "Has a cat.")
    brought_up(two, "Once")
    for number in range(KEPT + 3):
        brought_up(one, f"Question {number}")
    kept = MemoryUse.objects.for_user(alice).filter(memory=one).order_by("id")
    assert [use.question for use in kept] == [f"Question {number}" for number in range(3, KEPT + 3)]
    assert MemoryUse.objects.for_user(alice).filter(memory=two).count() == 1
    assert memory_get(alice.pk, one.pk).use_count == KEPT + 3


def test_what_a_search_found_is_no_use_and_opening_the_page_is_one(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice)
    uses_record(
        user_id=alice.pk, reasons={made.pk: "First."}, used_in=UsedIn.SEARCHED, question="allergies"
    )
    assert memory_get(alice.pk, made.pk).use_count == 0
    assert "Izzy looked for “allergies”" in re.sub(r"\s+", " ", page_of(browser, made))
    shown = page_of(browser, made)
    assert memory_get(alice.pk, made.pk).use_count == 0, "looking writes nothing"
    opened = reverse("memory:opened", args=[made.pk])
    assert f'hx-post="{opened}"' in shown
    for _ in range(2):
        assert browser.post(opened).status_code == 204
    assert memory_get(alice.pk, made.pk).use_count == 1


def test_a_note_that_is_gone_meanwhile_is_passed_over(alice: User, note: MakeNote) -> None:
    made = note(alice)
    memory_purge(user_id=alice.pk, ids=[made.pk])
    brought_up(made, "Dinner?")
    assert not MemoryUse.objects.unscoped().exists()


def test_uses_go_with_their_conversation(alice: User, note: MakeNote) -> None:
    made, message = note(alice), message_of(alice, "Dinner?")
    brought_up(made, "Dinner?", message)
    brought_up(made, "From elsewhere")
    conversation_delete(user_id=alice.pk, conversation_id=message.conversation_id)
    assert [use.question for use in MemoryUse.objects.for_user(alice)] == ["From elsewhere"]


def test_a_purge_takes_its_words_out_of_the_uses_of_other_notes(alice: User, note: MakeNote) -> None:
    secret, other = note(alice, "The locker has the number zebrafinch."), note(alice, "Goes swimming.")
    brought_up(other, "Is zebrafinch the number of the locker?")
    memory_purge(user_id=alice.pk, ids=[secret.pk])
    assert "zebrafinch" not in MemoryUse.objects.for_user(alice).get().question


@pytest.mark.parametrize(("do", "status"), [("archive", "archived"), ("delete", "deleted")])
def test_what_is_done_on_the_page_can_be_undone_there(
    alice: User, browser: Client, note: MakeNote, do: str, status: str
) -> None:
    made = note(alice, "Likes tea.")
    answer = browser.post(reverse("memory:act", args=[made.pk]), {"do": do}, follow=True)
    page = answer.content.decode()
    assert answer.redirect_chain == [(reverse("memory:note", args=[made.pk]), 302)]
    assert note_kept(alice.pk, made.pk).status == status
    steps = re.findall(r'name="step" value="([^"]+)"', page)
    form = {"page": "note", "back": str(made.pk), "step": steps}
    undone = browser.post(reverse("memory:take-back"), form, follow=True)
    assert undone.redirect_chain == [(reverse("memory:note", args=[made.pk]), 302)]
    assert memory_get(alice.pk, made.pk).status == "active"


def undo_offered(browser: Client, made: Memory, do: dict[str, str]) -> dict[str, object]:
    """Does something on the page of a note; what the Undo that is offered there sends."""
    page = browser.post(reverse("memory:act", args=[made.pk]), do, follow=True).content.decode()
    steps = re.findall(r'name="step" value="([^"]+)"', page)
    return {"page": "note", "back": str(made.pk), "step": steps}


def ends_of(user: User) -> list[tuple[object, ...]]:
    rows = Memory.objects.with_deleted(user.pk).order_by("pk")
    return list(rows.values_list("status", "superseded_by", "valid_from", "valid_to"))


def replace(user: User, old: Memory, other: Memory, way: str) -> None:
    """Has a note replaced, or planned to be, by the other or by a new one."""
    if way == "contradiction":
        edge = edge_create(user_id=user.pk, source_id=other.pk, target_id=old.pk, relation="contradicts")
        contradiction_resolve(user_id=user.pk, edge_id=edge.pk, keep_id=other.pk)
    elif way == "merge":
        memory_merge(user_id=user.pk, into_id=other.pk, from_ids=[old.pk])
    else:
        start = timezone.now() + timedelta(days=7) if way == "plan" else None
        new = memory_supersede(
            user_id=user.pk, memory_id=old.pk, content="Lives in Bergen.", valid_from=start
        )
        if way == "deleted":
            memory_delete(user_id=user.pk, memory_id=new.pk)
        if way == "archived":
            memory_archive(user_id=user.pk, memory_id=old.pk)


@pytest.mark.parametrize(
    ("way", "do"),
    [
        ("new", "restore"),
        ("contradiction", "restore"),
        ("merge", "restore"),
        ("deleted", "restore"),
        ("archived", "undo"),
        ("plan", "undo"),
    ],
)
def test_undoing_that_a_replaced_note_was_brought_back_has_it_replaced_again(
    alice: User, browser: Client, note: MakeNote, way: str, do: str
) -> None:
    old = note(alice, "Lives in Lisbon.")
    replace(alice, old, note(alice, "Has a flat in Oslo."), way)
    before = ends_of(alice)
    form = undo_offered(browser, old, {"do": do, "version": "1"})
    assert ends_of(alice)[0] == ("active", None, None, None)
    page = browser.post(reverse("memory:take-back"), form, follow=True).content.decode()
    assert "Undone." in page
    assert ends_of(alice) == before


def test_a_note_whose_replacement_is_gone_for_good_is_not_said_to_be_replaced_again(
    alice: User, browser: Client, note: MakeNote
) -> None:
    old = note(alice, "Lives in Lisbon.")
    new = memory_supersede(user_id=alice.pk, memory_id=old.pk, content="Lives in Oslo.")
    form = undo_offered(browser, old, {"do": "restore"})
    memory_purge(user_id=alice.pk, ids=[new.pk])
    page = browser.post(reverse("memory:take-back"), form, follow=True).content.decode()
    assert "It was changed since" in page
    assert memory_get(alice.pk, old.pk).status == "active"


def test_what_was_replaced_by_a_note_gone_since_is_so_again_after_undo(
    alice: User, browser: Client, note: MakeNote
) -> None:
    old = note(alice, "Lives in Lisbon.")
    new = memory_supersede(user_id=alice.pk, memory_id=old.pk, content="Lives in Oslo.")
    memory_purge(user_id=alice.pk, ids=[new.pk])
    before = ends_of(alice)
    form = undo_offered(browser, old, {"do": "delete"})
    page = browser.post(reverse("memory:take-back"), form, follow=True).content.decode()
    assert "Undone." in page
    assert ends_of(alice) == before
    assert before[0][0] == "superseded"


def test_undo_brings_nothing_back_that_was_deleted_afterwards(
    alice: User, browser: Client, note: MakeNote
) -> None:
    old, other = note(alice, "Lives in Lisbon."), note(alice, "Has a flat in Oslo.")
    replace(alice, old, other, "contradiction")
    form = undo_offered(browser, old, {"do": "restore"})
    memory_delete(user_id=alice.pk, memory_id=other.pk)
    page = browser.post(reverse("memory:take-back"), form, follow=True).content.decode()
    assert "It was changed since" in page
    assert not Memory.objects.for_user(alice).filter(pk=other.pk, deleted_at=None).exists()


def test_a_deleted_note_can_be_looked_at_and_brought_back(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, "Likes tea.")
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    assert "Likes tea." in page_of(browser, made)
    browser.post(reverse("memory:act", args=[made.pk]), {"do": "restore"})
    assert memory_get(alice.pk, made.pk).status == "active"


def test_after_thirty_days_there_is_no_page(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    long_ago = timezone.now() - timedelta(days=31)
    Memory.objects.with_deleted(alice.pk).update(deleted_at=long_ago)
    assert browser.get(reverse("memory:note", args=[made.pk])).status_code == 404


def test_the_history_shows_what_changed_and_leads_back(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, "Likes green tea.")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Likes black tea.")
    page = page_of(browser, made)
    assert "<del>green</del>" in page
    assert "<ins>black</ins>" in page
    browser.post(reverse("memory:act", args=[made.pk]), {"do": "undo", "version": "1"})
    assert memory_get(alice.pk, made.pk).content == "Likes green tea."


def test_a_long_history_is_shown_on_demand(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Version 0.")
    for number in range(1, 15):
        memory_update(user_id=alice.pk, memory_id=made.pk, content=f"Version {number}.")
    page, whole = page_of(browser, made), page_of(browser, made, "?history=all")
    assert page.count('class="one-version"') == 10
    assert "Show all versions" in page
    assert whole.count('class="one-version"') == 15
    assert "The oldest that is kept" not in page + whole


def test_the_text_is_edited_on_the_page(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Likes tea.", tags=["food"])
    assert 'value="food"' in page_of(browser, made, "?edit")
    entered = {f"{made.pk}-content": "Likes coffee.", f"{made.pk}-tags": "drinks"}
    answer = browser.post(reverse("memory:save", args=[made.pk]), entered)
    assert answer["Location"] == reverse("memory:note", args=[made.pk])
    now = memory_get(alice.pk, made.pk)
    assert (now.content, now.tags) == ("Likes coffee.", ["drinks"])


def test_an_edit_with_mistakes_keeps_what_was_entered(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, "Likes tea.")
    entered = {f"{made.pk}-content": "Likes coffee.", f"{made.pk}-tags": "y" * 51}
    answer = browser.post(reverse("memory:save", args=[made.pk]), entered)
    assert answer.status_code == 422
    assert "Likes coffee." in answer.content.decode()
    assert memory_get(alice.pk, made.pk).content == "Likes tea."


def test_the_times_that_it_holds_are_set_and_taken_away(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice)
    url = reverse("memory:valid", args=[made.pk])
    browser.post(url, {"valid_from": "2030-01-02T03:04", "valid_to": "2031-01-02T03:04"})
    now = memory_get(alice.pk, made.pk)
    assert now.valid_from
    assert now.valid_to
    assert (now.valid_from.year, now.valid_to.year) == (2030, 2031)
    browser.post(url, {"valid_from": "2030-01-02T03:04", "valid_to": ""})
    now = memory_get(alice.pk, made.pk)
    assert now.valid_from is not None
    assert now.valid_to is None


def test_a_time_that_is_left_alone_keeps_its_seconds(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, valid_from="2026-05-01T12:30:47.123456Z")
    preferences_update(user_id=alice.pk, time_zone="Asia/Kolkata")
    entered = {"valid_from": "2026-05-01T18:00", "valid_to": "2031-01-02T03:04"}
    assert 'value="2026-05-01T18:00"' in page_of(browser, made)
    browser.post(reverse("memory:valid", args=[made.pk]), entered)
    now = memory_get(alice.pk, made.pk)
    assert (now.valid_from, now.valid_to and now.valid_to.year) == (made.valid_from, 2031)


@pytest.mark.parametrize("began", ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"])
def test_a_time_in_the_hour_that_comes_twice_is_left_alone_too(
    alice: User, browser: Client, note: MakeNote, began: str
) -> None:
    preferences_update(user_id=alice.pk, time_zone="Europe/Berlin")
    made = note(alice, valid_from=began)
    assert 'value="2026-10-25T02:30"' in page_of(browser, made)
    entered = {"valid_from": "2026-10-25T02:30", "valid_to": "2027-10-31T02:30"}
    browser.post(reverse("memory:valid", args=[made.pk]), entered)
    now = memory_get(alice.pk, made.pk)
    assert now.valid_from == made.valid_from
    assert now.valid_to
    assert now.valid_to.isoformat() == "2027-10-31T00:30:00+00:00"


@pytest.mark.parametrize(
    "entered", [{"valid_from": "2031-01-01T00:00", "valid_to": "2030-01-01T00:00"}, {"valid_to": "soon"}]
)
def test_times_that_cannot_be_are_refused(
    alice: User, browser: Client, note: MakeNote, entered: dict[str, str]
) -> None:
    made = note(alice)
    answer = browser.post(reverse("memory:valid", args=[made.pk]), entered)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.content.decode()
    assert memory_get(alice.pk, made.pk).valid_to is None


def test_an_unknown_act_is_refused(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice)
    for form in ({"do": "explode"}, {"do": "undo", "version": "99"}, {"do": "undo", "version": "x"}):
        assert browser.post(reverse("memory:act", args=[made.pk]), form).status_code == 422
    assert memory_get(alice.pk, made.pk).status == "active"


def test_what_replaced_it_and_what_it_replaces_are_named(
    alice: User, browser: Client, note: MakeNote
) -> None:
    old = note(alice, "Runs Debian.")
    new = memory_supersede(user_id=alice.pk, memory_id=old.pk, content="Runs Arch.")
    assert reverse("memory:note", args=[new.pk]) in page_of(browser, old)
    page = page_of(browser, new)
    assert "It replaces" in page
    assert reverse("memory:note", args=[old.pk]) in page


def test_a_contradiction_is_settled_on_the_page(alice: User, browser: Client, note: MakeNote) -> None:
    one, two = note(alice, "Eats prawns."), note(alice, "Never eats prawns.")
    edge = edge_create(user_id=alice.pk, source_id=one.pk, target_id=two.pk, relation="contradicts")
    assert "These cannot both be true" in page_of(browser, one)
    form = {"keep": str(two.pk), "page": "note", "back": str(one.pk)}
    answer = browser.post(reverse("memory:settle", args=[edge.pk]), form)
    assert answer["Location"] == reverse("memory:note", args=[one.pk])
    assert memory_get(alice.pk, one.pk).status == "superseded"


def test_links_are_read_and_taken_away_on_the_page(alice: User, browser: Client, note: MakeNote) -> None:
    one, two = note(alice, "Goes rowing."), note(alice, "Owns a red boat.")
    edge = edge_create(user_id=alice.pk, source_id=one.pk, target_id=two.pk)
    assert "Owns a red boat." in page_of(browser, one)
    form = {"page": "note", "back": str(one.pk)}
    answer = browser.post(reverse("memory:unlink", args=[one.pk, edge.pk]), form)
    assert answer["Location"] == reverse("memory:note", args=[one.pk])
    assert "not linked to anything" in page_of(browser, one)


def test_files_with_the_very_text_are_named(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "The boiler was serviced in May.")
    file_write(
        user_id=alice.pk, path="/memories/home.md", text="# Home\nThe boiler was serviced\nin May."
    )
    file_write(user_id=alice.pk, path="/memories/other.md", text="The boiler is old.")
    page = page_of(browser, made)
    assert "/memories/home.md" in page
    assert "/memories/other.md" not in page


@pytest.mark.parametrize("format", ["jsonl", "markdown"])
def test_one_note_is_taken_out(alice: User, browser: Client, note: MakeNote, format: str) -> None:
    made, _ = note(alice, "Likes tea."), note(alice, "Something else.")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Likes coffee.")
    answer = browser.get(reverse("memory:export"), {"note": str(made.pk), "format": format})
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert "Likes coffee." in text
    assert "Something else." not in text
    if format == "jsonl":
        kinds = [json.loads(line)["type"] for line in text.splitlines()]
        assert kinds == ["manifest", "decay", "note", "revision", "end"]


@pytest.mark.parametrize(
    "content",
    ["<script>alert(1)</script>", "![x](https://evil.example/x.png)", "x" * 20_000, "قهوة", "🦐" * 50],
)
def test_hostile_text_stays_text(alice: User, browser: Client, note: MakeNote, content: str) -> None:
    made = note(alice, content, tags=["<b>tag</b>"], category="<i>cat</i>")
    brought_up(made, content[:200])
    page = page_of(browser, made)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>tag" not in page
    assert 'dir="auto"' in page
    assert not re.search(r"\sstyle=|\son[a-z]+=|hx-on|javascript:", page)


def test_the_page_asks_the_database_no_more_than_25_times(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made, message = note(alice, "Likes tea."), message_of(alice, "Tea?")
    for number in range(12):
        other = note(alice, f"Tea number {number} is good with milk.")
        edge_create(user_id=alice.pk, source_id=made.pk, target_id=other.pk)
        brought_up(made, f"Tea {number}?", message)
        memory_update(user_id=alice.pk, memory_id=made.pk, content=f"Likes tea, {number}.")
    page_of(browser, made)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        page_of(browser, made)
    assert len(asked) <= 25, "\n".join(query["sql"][:160] for query in asked)


def test_nobody_elses_note_has_a_page(alice: User, bob: User, sign_in: SignIn, note: MakeNote) -> None:
    made = note(alice)
    for url in (reverse("memory:note", args=[made.pk]), "/memory/nonsense/"):
        assert sign_in(bob).get(url).status_code == 404
    assert sign_in(bob).post(reverse("memory:opened", args=[made.pk])).status_code == 404
    assert memory_get(alice.pk, made.pk).use_count == 0


@pytest.mark.parametrize(
    ("priority", "rate", "passed", "fades_in"),
    [
        (0.9, 0.005, 0, 171),
        (0.9, 0.005, 100, 71),
        (0.6, 0.02, 27, 1),
        (0.6, 0.02, 28, 0),
        (0.6, 0.02, 500, 0),
        (0.9, 0.0, 10, None),
        (0.0, 0.0, 10, 0),
        (0.9, 1e-12, 10, None),
    ],
)
def test_the_curve_says_when_a_note_fades(
    priority: float, rate: float, passed: int, fades_in: int | None
) -> None:
    row = SimpleNamespace(priority=priority, decay_rate=rate, priority_cycle=3)
    curve = curve_of(row, 3 + passed)  # type: ignore[arg-type]
    assert curve.fades_in == fades_in
    places = [tuple(map(float, point.split(","))) for point in f"{curve.past} {curve.ahead}".split()]
    assert all(0 <= x <= curve.width and 0 <= y <= curve.height for x, y in places)
    assert places == sorted(places)


def test_the_curve_agrees_with_what_decay_makes_of_it(alice: User, note: MakeNote) -> None:
    made = note(alice, tier="short_term")
    curve = curve_of(made, 0)
    assert curve.fades_in
    for _ in range(curve.fades_in - 1):
        cycle_advance(user_id=alice.pk)
    assert not memory_get(alice.pk, made.pk).faded
    cycle_advance(user_id=alice.pk)
    assert memory_get(alice.pk, made.pk).faded


def test_the_uses_are_there_for_programs(alice: User, api: SignIn, note: MakeNote) -> None:
    made, message = note(alice), message_of(alice, "Dinner?")
    brought_up(made, "Dinner?", message)
    (use,) = api(alice).get(f"/api/v1/memories/{made.pk}/uses/").json()["results"]
    assert (use["question"], use["used_in"], use["message"]) == ("Dinner?", "surfaced", str(message.pk))
    assert api(alice).get(f"/api/v1/memories/{made.pk}/").json()["use_count"] == 1


def test_an_archived_note_has_its_page(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice)
    memory_archive(user_id=alice.pk, memory_id=made.pk)
    assert "Bring back" in page_of(browser, made)
