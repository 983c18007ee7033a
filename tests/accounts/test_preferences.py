import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.test import Client

from apps.accounts.models import APIToken, Preferences, User
from apps.accounts.selectors import preferences_for, user_language, user_time_zone
from apps.accounts.services import preferences_update, token_create
from apps.core.errors import InvalidInput
from apps.core.ids import uuid7
from apps.core.registries import choices

pytestmark = pytest.mark.django_db

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "tools": lambda: [("memory_delete", "Delete notes"), ("think", "Think")],
        "toolsets": lambda: [("notes", "Notes"), ("web", "Web")],
    }
    for name in list(choices):
        monkeypatch.delitem(choices, name)
    for name, entry in entries.items():
        monkeypatch.setitem(choices, name, entry)


def form(**changes: object) -> dict[str, object]:
    return {
        "time_zone": "Europe/Berlin",
        "language": "de",
        "toolsets": ["notes"],
        "use_memory": "on",
        "build_network": "ask",
        "review": "everything",
    } | changes


def test_the_form_saves_every_preference(alice: User, sign_in: SignIn) -> None:
    values = form(
        display_name="Al", instructions="Be brief.", model="claude-x", approval_memory_delete="ask"
    )
    assert sign_in(alice).post("/settings/", values).status_code == 302
    saved = preferences_for(alice.pk)
    assert (saved.display_name, saved.instructions, saved.model) == ("Al", "Be brief.", "claude-x")
    assert (saved.time_zone, saved.language, saved.toolsets, saved.use_memory) == (
        "Europe/Berlin",
        "de",
        ["notes"],
        True,
    )
    assert saved.tool_approval == {"memory_delete": "ask"}
    assert saved.review == "everything"
    assert user_language(alice.pk) == "de"


def test_the_form_shows_what_is_saved(alice: User, sign_in: SignIn) -> None:
    preferences_update(
        user_id=alice.pk, instructions="Speak like a pirate", tool_approval={"think": "never"}
    )
    page = sign_in(alice).get("/settings/").content.decode()
    assert "Speak like a pirate" in page
    assert '<option value="never" selected>' in page


def test_approvals_of_tools_that_are_not_offered_now_are_kept(alice: User, sign_in: SignIn) -> None:
    preferences_update(user_id=alice.pk, tool_approval={"cap_weather": "ask", "think": "never"})
    sign_in(alice).post("/settings/", form(approval_think=""))
    assert preferences_for(alice.pk).tool_approval == {"cap_weather": "ask"}


@pytest.mark.parametrize(
    "bad",
    [
        {"time_zone": "Mars/Olympus"},
        {"language": "klingon"},
        {"toolsets": ["launch_missiles"]},
        {"instructions": "x" * 4001},
        {"display_name": "a\x00b"},
        {"approval_think": "perhaps"},
    ],
)
def test_the_form_refuses_what_does_not_fit(
    alice: User, sign_in: SignIn, bad: dict[str, object]
) -> None:
    assert sign_in(alice).post("/settings/", form(**bad)).status_code == 422
    assert preferences_for(alice.pk).time_zone == "UTC"


@pytest.mark.parametrize(
    "bad",
    [
        {"toolsets": "notes"},
        {"toolsets": [1]},
        {"tool_approval": []},
        {"tool_approval": {"think": "maybe"}},
        {"tool_approval": {"": "ask"}},
        {"time_zone": "../../etc/passwd"},
        {"language": "xx"},
    ],
)
def test_the_service_refuses_it_too(alice: User, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        preferences_update(user_id=alice.pk, **bad)
    assert caught.value.extra["field"] == next(iter(bad))


def test_who_has_saved_nothing_has_the_defaults(db: None) -> None:
    defaults = preferences_for(uuid7())
    assert (defaults.use_memory, defaults.time_zone, defaults.tool_approval) == (True, "UTC", {})
    assert defaults.toolsets == ["notes", "files", "web", "capabilities"]


def test_preferences_are_ones_own(alice: User, bob: User, sign_in: SignIn) -> None:
    preferences_update(user_id=alice.pk, instructions="alices secret wish")
    assert "alices secret wish" not in sign_in(bob).get("/settings/").content.decode()
    sign_in(bob).post("/settings/", form(instructions="bobs"))
    assert preferences_for(alice.pk).instructions == "alices secret wish"


def test_pages_show_times_where_their_reader_is_and_the_interface_in_utc(
    alice: User, bob: User, sign_in: SignIn, api: Callable[[User], Client]
) -> None:
    preferences_update(user_id=alice.pk, time_zone="Asia/Tokyo")
    for owner in (alice, bob):
        token_create(user=owner, name="x", scopes=["read"])
        moment = datetime(2026, 3, 1, 20, 30, tzinfo=UTC)
        APIToken.objects.for_user(owner).update(created_at=moment, last_used_at=moment)
    assert re.search(
        r"2 March(?: 2026)?, 05:30", sign_in(alice).get("/settings/tokens/").content.decode()
    )
    assert re.search(r"1 March(?: 2026)?, 20:30", sign_in(bob).get("/settings/tokens/").content.decode())
    note = (
        api(alice)
        .post("/api/v1/memories/", {"content": "Likes tea"}, content_type="application/json")
        .json()
    )
    assert note["created_at"].endswith(("Z", "+00:00"))


def test_a_time_zone_that_this_machine_does_not_know_is_utc(alice: User) -> None:
    Preferences.objects.filter(user=alice).update(time_zone="Moon/Tranquility")
    assert str(user_time_zone(alice.pk)) == "UTC"


def test_voice_is_set_and_what_no_voice_has_is_refused(alice: User, sign_in: SignIn) -> None:
    voice = {"speech_language": "de-DE", "speech_rate": "1.5", "speech_pause": "4", "speech_read": "on"}
    page = sign_in(alice)
    assert page.post("/settings/", form(**voice)).status_code == 302
    stored = preferences_for(alice.pk)
    assert (stored.speech_language, stored.speech_rate, stored.speech_pause) == ("de-DE", 1.5, 4)
    assert (stored.speech_read, stored.speech_short) == (True, False)
    answer = page.post("/settings/", form(speech_language="xx", speech_rate="9", speech_pause="-1"))
    assert answer.status_code == 422
    assert answer.content.decode().count("is not one of the available choices") == 3
    for wrong in ({"speech_rate": 9.0}, {"speech_pause": 60}, {"speech_language": "tlh"}):
        with pytest.raises(InvalidInput):
            preferences_update(user_id=alice.pk, **wrong)


def test_a_model_that_is_not_in_the_list_is_given_by_its_name(alice: User, sign_in: SignIn) -> None:
    page = sign_in(alice)
    refused = page.post("/settings/", form(model="another", other_model=" "))
    assert refused.status_code == 422
    assert "Give the name of the model." in refused.content.decode()
    assert page.post("/settings/", form(model="another", other_model="my-own-7b")).status_code == 302
    assert Preferences.objects.get(user=alice).model == "my-own-7b"
    assert (
        '<option value="my-own-7b" selected>my-own-7b</option>'
        in page.get("/settings/").content.decode()
    )
