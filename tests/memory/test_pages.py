"""The memories page and its fragments."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.memory.models import Memory
from apps.memory.notes.changes import cycle_advance, memory_archive, memory_delete, memory_update
from apps.memory.notes.fields import MAX_CONTENT_CHARS
from apps.memory.notes.selectors import memory_get, note_history
from apps.memory.pages.forms import SORTING
from tests.memory.conftest import MakeNote, found

SignIn = Callable[[User], Client]
PAGE = "/memory/browse/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def browser(alice: User, sign_in: SignIn) -> Client:
    return sign_in(alice)


def shown(client: Client, query: str = "") -> str:
    answer = client.get(f"{PAGE}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def url(name: str, note: Memory) -> str:
    return reverse(f"memory:{name}", args=[note.pk])


def test_an_empty_memory_says_how_to_begin(browser: Client) -> None:
    page = shown(browser)
    assert "Nothing here yet" in page
    assert reverse("chat:home") in page


def test_the_page_lists_own_notes_newest_first(
    alice: User, bob: User, browser: Client, note: MakeNote
) -> None:
    for content in ("First of alice", "Second of alice"):
        note(alice, content)
    note(bob, "Bob's secret")
    page = shown(browser)
    assert page.index("Second of alice") < page.index("First of alice")
    assert "Bob's secret" not in page
    assert "Bob&#x27;s secret" not in page


def test_a_note_is_shown_as_text_whatever_it_holds(alice: User, browser: Client, note: MakeNote) -> None:
    attack = "<script>alert(1)</script>"
    made = note(alice, attack, tags=["<b>tag</b>"], category="<i>cat</i>")
    for page in (
        shown(browser),
        *(browser.get(url(name, made)).content.decode() for name in ("card", "edit", "history")),
    ):
        assert "<script>alert" not in page
        assert "<b>tag" not in page
        assert "<i>cat" not in page
        assert "&lt;script&gt;alert(1)" in page


def test_pages_have_nothing_inline_that_the_security_policy_forbids(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, "Likes tea.", tags=["food"])
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Likes coffee.")
    pages = [shown(browser), shown(browser, "?q=coffee")]
    pages += [browser.get(url(name, made)).content.decode() for name in ("card", "edit", "history")]
    pages.append(browser.post(url("delete", made), headers=HTMX).content.decode())
    for page in pages:
        assert not re.search(r"\sstyle=|\son[a-z]+=|hx-on|<script>|javascript:", page)


def test_htmx_gets_the_list_alone(alice: User, browser: Client, note: MakeNote) -> None:
    note(alice, "Likes tea.")
    fragment = browser.get(PAGE, headers=HTMX).content.decode()
    assert "Likes tea." in fragment
    assert "<html" not in fragment


@pytest.mark.parametrize(
    ("query", "contents"),
    [
        ("?kind=preference", ["Green tea"]),
        ("?tier=short_term", ["Harbour"]),
        ("?tag=food", ["Green tea"]),
        ("?category=work", ["Harbour"]),
        ("?status=archived", ["Old tea"]),
        ("?status=deleted", ["Gone tea"]),
        ("?status=archived&q=tea", ["Old tea"]),
        ("?source=user&ordering=created_at", ["Green tea", "Harbour"]),
        ("?source=api", []),
        ("?kind=nonsense&ordering=nonsense", ["Harbour", "Green tea"]),
        ("?q=tea&kind=preference", ["Green tea"]),
    ],
)
def test_filters_limit_the_list(
    alice: User, browser: Client, note: MakeNote, query: str, contents: list[str]
) -> None:
    note(alice, "Green tea", tags=["Food"], kind="preference", importance=2)
    note(alice, "Harbour", tier="short_term", category="work")
    memory_archive(user_id=alice.pk, memory_id=note(alice, "Old tea").pk)
    memory_delete(user_id=alice.pk, memory_id=note(alice, "Gone tea").pk)
    page = shown(browser, query)
    known = ["Green tea", "Harbour", "Old tea", "Gone tea"]
    listed = sorted((name for name in known if f'break">{name}' in page), key=page.index)
    assert listed == contents


def test_a_search_finds_by_meaning_and_shows_how_well(
    alice: User, browser: Client, note: MakeNote
) -> None:
    note(alice, "The cat is called Mia and likes boxes.")
    note(alice, "Router and network configuration: the SSID is izzy, the channel is 11.")
    page = shown(browser, "?q=WiFi+problem")
    assert "Router and network" in page
    assert re.search(r"match \d{1,3}%", page)


def test_a_search_without_a_match_says_so(alice: User, browser: Client, note: MakeNote) -> None:
    assert "Nothing found" in shown(browser, "?q=xylophone")


@pytest.mark.parametrize(
    "query", ["?q=%00", f"?q={'x' * 3000}", "?page=99999", "?page=x", "?tag=%00", "?q=%FF", "?q='\"<*"]
)
def test_a_strange_address_still_gives_a_page(
    alice: User, browser: Client, note: MakeNote, query: str
) -> None:
    note(alice)
    shown(browser, query)


def test_long_lists_have_pages(alice: User, browser: Client, note: MakeNote) -> None:
    for number in range(35):
        note(alice, f"Number {number}.")
    first, second = shown(browser), shown(browser, "?page=2")
    assert "Number 34." in first
    assert "Number 4." not in first
    assert "Number 4." in second
    assert "1–30 of 35" in first


def test_looking_at_the_page_is_no_access(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice)
    shown(browser)
    shown(browser, "?q=shellfish")
    assert memory_get(alice.pk, made.pk).access_count == 0


def test_a_note_is_added(alice: User, browser: Client) -> None:
    form = {
        "new-content": "Likes tea.",
        "new-tags": "food, drinks",
        "new-kind": "preference",
        "new-importance": "4",
    }
    answer = browser.post(reverse("memory:create"), form, headers=HTMX)
    assert answer.status_code == 200
    assert "Likes tea." in answer.content.decode()
    made = Memory.objects.for_user(alice).get()
    assert (made.tags, made.kind, made.importance, made.origin) == (
        ["food", "drinks"],
        "preference",
        4,
        "user",
    )
    assert found(alice, "tea") == [made.pk]


def test_a_note_that_is_sent_again_as_its_answer_was_lost_is_there_once(
    alice: User, bob: User, browser: Client, sign_in: SignIn
) -> None:
    def send(client: Client, text: str, tags: str = "") -> str:
        entered = {"new-key": key, "new-content": text, "new-tags": tags}
        return client.post(reverse("memory:create"), entered, headers=HTMX).content.decode()

    def kept(user: User) -> list[str]:
        return list(
            Memory.objects.for_user(user).order_by("created_at").values_list("content", flat=True)
        )

    (key,) = re.findall(r'name="new-key" value="([^"]+)"', browser.get(PAGE).content.decode())
    send(browser, "Likes tea.")
    again = send(browser, "Likes tea.", "drinks")
    assert kept(alice) == ["Likes tea."]
    assert Memory.objects.for_user(alice).get().tags == ["drinks"]
    assert "Likes tea." in again
    assert key not in again.partition("<div")[0]  # the form for the next one
    send(browser, "Has a dog.")  # as from a page that the browser has kept
    send(sign_in(bob), "Likes tea.")
    assert (kept(alice), kept(bob)) == (["Likes tea.", "Has a dog."], ["Likes tea."])


def test_a_note_that_is_added_is_kept_for_long_where_nothing_else_is_chosen(browser: Client) -> None:
    select = re.search(r'<select name="new-tier".*?</select>', shown(browser), flags=re.DOTALL)
    assert select
    assert re.findall(r'value="(\w+)"', select[0])[0] == "long_term"
    assert "selected" not in select[0]


def test_a_text_that_is_too_long_is_refused_and_not_cut_off(browser: Client) -> None:
    form = re.search(r'<textarea name="new-content"[^>]*>', shown(browser))
    assert form is not None
    assert "maxlength" not in form[0]
    long = "x" * (MAX_CONTENT_CHARS + 1)
    answer = browser.post(reverse("memory:create"), {"new-content": long}, headers=HTMX)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert f"at most {MAX_CONTENT_CHARS} characters" in page
    assert long in page


def test_without_htmx_adding_leads_back_to_the_page(alice: User, browser: Client) -> None:
    answer = browser.post(reverse("memory:create"), {"new-content": "Likes tea."})
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert Memory.objects.for_user(alice).count() == 1


def test_without_htmx_a_form_with_mistakes_comes_back_on_its_page(alice: User, browser: Client) -> None:
    entered = {"new-content": "Likes tea.", "new-importance": "9"}
    answer = browser.post(reverse("memory:create"), entered)
    page = answer.content.decode()
    assert (answer.status_code, Memory.objects.for_user(alice).count()) == (422, 0)
    assert "<h1" in page
    assert "Likes tea." in page
    assert re.search(r"<details class=\"card note-new\"[^>]* open>", page)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"new-content": "  "},
        {"new-content": "x" * 20_001},
        {"new-content": "a\x00b"},
        {"new-content": "x", "new-importance": "9"},
        {"new-content": "x", "new-kind": "rumour"},
        {"new-content": "x", "new-tags": "y" * 51},
        {"new-content": "x", "new-tags": ",".join(f"t{n}" for n in range(30))},
        {"new-content": "x", "new-category": "y" * 65},
    ],
)
def test_a_form_with_mistakes_comes_back_with_them(
    alice: User, browser: Client, form: dict[str, str]
) -> None:
    answer = browser.post(reverse("memory:create"), form, headers=HTMX)
    assert answer.status_code == 422
    assert "error" in answer.content.decode()
    assert Memory.objects.for_user(alice).count() == 0


def test_a_note_is_edited_in_place(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Allergic to shellfish.", tags=["food"], importance=5, category="body")
    form = browser.get(url("edit", made)).content.decode()
    assert "Allergic to shellfish." in form
    assert 'value="food"' in form
    entered = {f"{made.pk}-content": "Only prawns.", f"{made.pk}-tags": "food, sea"}
    answer = browser.post(url("edit", made), entered, headers=HTMX)
    assert answer.status_code == 200
    assert f'id="{made.note_id}"' in answer.content.decode()
    now = memory_get(alice.pk, made.pk)
    assert (now.content, now.tags, now.importance, now.category) == (
        "Only prawns.",
        ["food", "sea"],
        5,
        "body",
    )
    assert note_history(alice.pk, made.pk)[0].actor == "user"


@pytest.mark.parametrize("page", ["edit", "save"])
def test_what_was_changed_elsewhere_meanwhile_gives_way_only_when_it_was_seen(
    alice: User, browser: Client, note: MakeNote, page: str
) -> None:
    made = note(alice, "Likes tea.")
    shown = {f"initial-{made.pk}-content": "Likes tea."}
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Likes green tea & cake.")
    sorted_only = shown | {f"{made.pk}-content": "Likes tea.", f"{made.pk}-tags": "drink"}
    assert browser.post(url(page, made), sorted_only, headers=HTMX).status_code < 400
    now = memory_get(alice.pk, made.pk)
    assert (now.content, now.tags) == ("Likes green tea & cake.", ["drink"])

    entered = shown | {f"{made.pk}-content": "Likes coffee."}
    refused = browser.post(url(page, made), entered, headers=HTMX)
    form = refused.content.decode()
    assert refused.status_code == 422
    assert "replace what is there: Likes green tea &amp; cake." in form
    assert "Likes coffee.</textarea>" in form
    assert f'name="initial-{made.pk}-content" value="Likes green tea &amp; cake."' in form
    assert memory_get(alice.pk, made.pk).content == "Likes green tea & cake."
    entered |= {f"initial-{made.pk}-content": "Likes green tea & cake."}
    assert browser.post(url(page, made), entered, headers=HTMX).status_code < 400
    assert memory_get(alice.pk, made.pk).content == "Likes coffee."


@pytest.mark.parametrize("page", ["edit", "save"])
@pytest.mark.parametrize("kept", ["\n", "\r\n", "\r"])
def test_a_text_of_several_lines_is_edited_whatever_its_line_breaks(
    alice: User, browser: Client, note: MakeNote, kept: str, page: str
) -> None:
    made = note(alice, f"Garage code.{kept}Blue door.")
    for was, becomes in (("Blue", "Green"), ("Green", "Red")):  # as a browser sends it
        entered = {
            f"initial-{made.pk}-content": f"Garage code.\r\n{was} door.",
            f"{made.pk}-content": f"Garage code.\r\n{becomes} door.",
        }
        assert browser.post(url(page, made), entered, headers=HTMX).status_code < 400
        assert memory_get(alice.pk, made.pk).content == f"Garage code.\n{becomes} door."


@pytest.mark.parametrize("page", ["edit", "save"])
def test_what_sorts_a_note_and_was_left_as_shown_does_not_undo_what_others_changed(
    alice: User, browser: Client, note: MakeNote, page: str
) -> None:
    made = note(alice, "Likes tea.", tags=["food"], category="drinks", importance=3)
    form = browser.get(url("edit", made), headers=HTMX).content.decode()
    shown = dict(re.findall(rf'name="initial-({made.pk}-[a-z]+)" value="([^"]*)"', form))
    assert {name.removeprefix(f"{made.pk}-") for name in shown} >= {*SORTING, "content"}
    memory_update(user_id=alice.pk, memory_id=made.pk, tags=["food", "hot"], category="", importance=5)
    entered = {f"initial-{name}": value for name, value in shown.items()} | shown
    entered[f"{made.pk}-kind"] = "preference"
    assert browser.post(url(page, made), entered, headers=HTMX).status_code < 400
    now = memory_get(alice.pk, made.pk)
    assert (now.kind, now.tags, now.category, now.importance) == (
        "preference",
        ["food", "hot"],
        "",
        5,
    )


def test_line_breaks_count_once_towards_the_longest_text(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made, longest = note(alice, "Likes tea."), "x\n" * (MAX_CONTENT_CHARS // 2 - 1) + "xx"
    entered = {f"{made.pk}-content": longest.replace("\n", "\r\n")}
    assert browser.post(url("edit", made), entered, headers=HTMX).status_code == 200
    assert memory_get(alice.pk, made.pk).content == longest


def test_a_tag_with_a_comma_in_it_stands_in_quotes(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Was there in May.", tags=["Paris, Texas", "trip"])
    form = browser.get(url("edit", made), headers=HTMX).content.decode()
    assert 'value="&quot;Paris, Texas&quot;, trip"' in form
    entered = {
        f"{made.pk}-content": made.content,
        f"{made.pk}-tags": '"Paris, Texas", trip, hot',
        f"{made.pk}-importance": "5",
    }
    assert browser.post(url("edit", made), entered, headers=HTMX).status_code == 200
    now = memory_get(alice.pk, made.pk)
    assert (now.tags, now.importance) == (["Paris, Texas", "trip", "hot"], 5)


def test_emptied_tags_and_category_are_taken_away(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Likes tea.", tags=["food"], category="home")
    entered = {f"{made.pk}-content": "Likes tea.", f"{made.pk}-tags": "", f"{made.pk}-category": ""}
    browser.post(url("edit", made), entered, headers=HTMX)
    now = memory_get(alice.pk, made.pk)
    assert (now.tags, now.category) == ([], "")


def test_an_edit_with_mistakes_changes_nothing(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Likes tea.")
    answer = browser.post(url("edit", made), {f"{made.pk}-content": ""}, headers=HTMX)
    assert answer.status_code == 422
    assert memory_get(alice.pk, made.pk).content == "Likes tea."


def test_a_deleted_note_leaves_a_way_back(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Likes green tea.")
    answer = browser.post(url("delete", made), headers=HTMX).content.decode()
    assert url("restore", made) in answer
    assert "Likes green tea." not in shown(browser)
    assert "Likes green tea." in shown(browser, "?status=deleted")
    assert found(alice, "tea") == []
    card = browser.post(url("restore", made), headers=HTMX).content.decode()
    assert url("delete", made) in card
    assert found(alice, "tea") == [made.pk]


def test_an_archived_note_can_be_brought_back(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice)
    card = browser.post(url("archive", made), headers=HTMX).content.decode()
    assert url("restore", made) in card
    assert memory_get(alice.pk, made.pk).status == "archived"


def test_the_history_leads_back_to_any_version(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Version one.")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Version two.")
    history = browser.get(url("history", made)).content.decode()
    assert "Version one." in history
    assert "Version <del>one</del><ins>two</ins>." in history
    answer = browser.post(url("undo", made), {"version": "1"}, headers=HTMX)
    assert answer.status_code == 200
    assert memory_get(alice.pk, made.pk).content == "Version one."


@pytest.mark.parametrize("version", ["", "0", "x", "99", "-1", "²", "9" * 30])
def test_a_version_that_never_was_is_not_there(
    alice: User, browser: Client, note: MakeNote, version: str
) -> None:
    made = note(alice)
    assert browser.post(url("undo", made), {"version": version}, headers=HTMX).status_code == 404


def test_a_faded_note_is_marked(alice: User, browser: Client, note: MakeNote) -> None:
    note(alice, tier="short_term")
    assert "faded" not in shown(browser)
    for _ in range(30):
        cycle_advance(user_id=alice.pk)
    assert "faded" in shown(browser)


ACTIONS = [
    ("get", "card"),
    ("get", "edit"),
    ("post", "edit"),
    ("post", "delete"),
    ("post", "restore"),
    ("post", "archive"),
    ("get", "history"),
    ("post", "undo"),
]


@pytest.mark.parametrize(("method", "name"), ACTIONS)
def test_nobody_reaches_somebody_elses_note(
    alice: User, bob: User, sign_in: SignIn, note: MakeNote, method: str, name: str
) -> None:
    made = note(alice)
    client = sign_in(bob)
    for key in (made.pk, uuid7(), "nonsense"):
        answer = getattr(client, method)(reverse(f"memory:{name}", args=[key]), {"version": "1"})
        assert answer.status_code == 404
    assert memory_get(alice.pk, made.pk).content == made.content


@pytest.mark.parametrize(("method", "name"), ACTIONS)
def test_a_stranger_is_asked_to_sign_in(alice: User, note: MakeNote, method: str, name: str) -> None:
    answer = getattr(Client(), method)(url(name, note(alice)))
    assert answer.status_code == 302
    assert reverse("accounts:sign_in") in answer["Location"]


@pytest.mark.parametrize("name", ["delete", "restore", "archive", "undo", "edit"])
def test_changes_need_a_csrf_token_and_a_post(alice: User, note: MakeNote, name: str) -> None:
    made = note(alice)
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post(url(name, made)).status_code == 403
    if name != "edit":
        assert client.get(url(name, made)).status_code == 405
    assert memory_get(alice.pk, made.pk).status == "active"
