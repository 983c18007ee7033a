"""The admin: its first page, its groups, what can be done with notes and capabilities, and hostile words in it."""

from collections.abc import Callable

import pytest
from django.contrib import admin as django_admin
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.capabilities.catalog.versions import capability_create
from apps.capabilities.models import Capability, Status
from apps.chat.models import Conversation
from apps.memory.models import Memory, PurgeReceipt
from apps.memory.models import Status as NoteStatus
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import BY_ASSISTANT
from izzysite.admin_site import GROUPS, navigation
from tests.capabilities.making import draft

pytestmark = pytest.mark.django_db
HOSTILE = ("<script>alert(1)</script>", "![x](https://evil.example/x.png)", "x" * 5_000, "שלום 👋")
NOTES = "admin:memory_memory_changelist"


@pytest.fixture
def browser(admin: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(admin)


def act(browser: Client, page: str, action: str, *rows: Memory | Capability) -> str:
    form = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return browser.post(reverse(page), form, follow=True).content.decode()


def test_it_opens_on_health_counts_and_what_waits(browser: Client, alice: User) -> None:
    note = memory_create(user_id=alice.pk, content="I keep bees")
    Memory.objects.for_user(alice).filter(pk=note.pk).update(status=NoteStatus.PENDING)
    page = browser.get(reverse("admin:index")).content.decode()
    for words in (
        "What waits",
        "Memories in review",
        "What there is",
        "Health",
        "Database",
        "Back to Izzy",
    ):
        assert words in page
    assert "I keep bees" not in page


def test_every_model_stands_in_one_group_and_internals_are_folded() -> None:
    groups = navigation(django_admin.site)
    shown = [str(item["link"]) for group in groups[1:] for item in group["items"]]
    assert len(shown) == len({*shown}) == len(django_admin.site._registry)
    assert [group["collapsible"] for group in groups[1:]] == [False] * len(GROUPS) + [True]


def test_superusers_find_the_admin_and_others_do_not(
    browser: Client, alice: User, sign_in: Callable[[User], Client]
) -> None:
    assert b'href="/admin/"' in browser.get("/settings/").content
    assert b'href="/admin/"' not in sign_in(alice).get("/settings/").content


def test_notes_are_approved_archived_and_embedded_again(browser: Client, alice: User) -> None:
    waits = memory_create(user_id=alice.pk, content="I keep bees")
    Memory.objects.for_user(alice).update(status=NoteStatus.PENDING, proposed_action="add")
    other = memory_create(user_id=alice.pk, content="I keep goats")
    assert "1 approved" in act(browser, NOTES, "approve", waits, other)
    assert "1 archived" in act(browser, NOTES, "archive", other)
    assert "2 embedded again" in act(browser, NOTES, "embed_again", waits, other)
    states = dict(Memory.objects.for_user(alice).values_list("content", "status"))
    assert states == {"I keep bees": "active", "I keep goats": "archived"}


@pytest.mark.django_db(transaction=True)
def test_a_purge_leaves_a_receipt(browser: Client, alice: User) -> None:
    note = memory_create(user_id=alice.pk, content="I keep bees", change=BY_ASSISTANT)
    page = act(browser, NOTES, "purge", note)
    receipt = PurgeReceipt.objects.for_user(alice).get()
    assert f"/admin/memory/purgereceipt/{receipt.pk}/" in page
    assert not Memory.objects.with_deleted(alice.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_capabilities_are_approved_disabled_and_tested(browser: Client, alice: User) -> None:
    row = capability_create(user_id=alice.pk, name="greet", draft=draft(), untrusted=True)
    page = "admin:capabilities_capability_changelist"
    assert "1 approved" in act(browser, page, "approve", row)
    assert Capability.objects.for_user(alice).get().status == Status.ACTIVE
    assert "1 tested" in act(browser, page, "retest", row)
    assert "1 disabled" in act(browser, page, "disable", row)
    assert Capability.objects.for_user(alice).get().status == Status.DISABLED


def test_tags_are_written_between_commas(browser: Client, alice: User) -> None:
    note = memory_create(user_id=alice.pk, content="I keep bees", tags=["bees", "garden"])
    page = reverse("admin:memory_memory_change", args=[note.pk])
    assert 'value="bees, garden"' in browser.get(page).content.decode()
    form = {
        "content": "I keep bees",
        "tier": "long_term",
        "kind": "general",
        "importance": "3",
        "tags": "honey, bees",
    }
    assert browser.post(page, form).status_code == 302
    assert Memory.objects.for_user(alice).get().tags == ["honey", "bees"]


def test_a_call_that_went_well_has_the_green_mark(browser: Client, alice: User) -> None:
    for number, is_error in enumerate((False, True)):
        ToolCall.objects.create(
            user=alice, round=1, position=number, name="think", state="done", is_error=is_error
        )
    page = browser.get(reverse("admin:agent_toolcall_changelist")).content.decode()
    assert "Went well" in page
    assert page.count('class="izzy-yes ') == page.count('class="izzy-no"') == 1


def test_dates_are_written_as_on_the_other_pages(browser: Client, alice: User) -> None:
    note = memory_create(user_id=alice.pk, content="I keep bees")
    page = browser.get(reverse(NOTES)).content.decode()
    assert f"{note.created_at:%Y}, " in page
    assert "a.m." not in page
    assert "p.m." not in page


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_harmless(browser: Client, alice: User, words: str) -> None:
    note = memory_create(user_id=alice.pk, content=words, tags=[words[:40].replace(",", "")])
    talk = Conversation.objects.create(user=alice, title=words[:200])
    for model, row in (("memory_memory", note.pk), ("chat_conversation", talk.pk)):
        for url in (reverse(f"admin:{model}_changelist"), reverse(f"admin:{model}_change", args=[row])):
            page = browser.get(url).content.decode()
            assert "<script>alert(1)" not in page
            assert "<img" not in page or "evil.example" not in page.split("<img", 1)[1].split(">", 1)[0]
