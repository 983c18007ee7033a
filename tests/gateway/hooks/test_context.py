"""Hooks put things before a program's model: notes that matter to a prompt, standing notes at a session's start."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Preferences, User
from apps.gateway.models import ClientSession
from apps.memory.models import STANDING, Kind, Memory, Origin, Tier, Trust
from apps.memory.notes.changes import memory_update
from apps.memory.notes.revisions import Change
from apps.memory.purge import memory_purge
from tests.gateway.hooks.conftest import Api, Send, context_of
from tests.memory.conftest import MakeNote

pytestmark = pytest.mark.django_db

ALLERGY = "The user is allergic to peanuts and carries an epinephrine pen."
COOKING = "Which peanut sauce goes with satay skewers, given my allergy to peanuts?"


@pytest.fixture
def allergy(alice: User, note: MakeNote) -> Memory:
    return note(alice, ALLERGY, kind=Kind.FACT, importance=5, tier=Tier.LONG_TERM)


@pytest.fixture
def standing(alice: User, note: MakeNote) -> Memory:
    return note(alice, "The user wants answers in British English.", category=STANDING, importance=4)


def test_a_prompt_brings_up_the_notes_that_matter_to_it(
    alice: User, send: Send, allergy: Memory
) -> None:
    answer = send(alice, "UserPromptSubmit", prompt=COOKING)
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert ALLERGY in context_of(answer)


def test_a_prompt_that_nothing_fits_gets_no_answer(alice: User, send: Send, allergy: Memory) -> None:
    assert send(alice, "UserPromptSubmit", prompt="Rename the variable x to total in main.py.") == {}


def test_a_note_is_shown_once_in_a_session_and_again_in_another(
    alice: User, send: Send, allergy: Memory
) -> None:
    assert ALLERGY in context_of(send(alice, "UserPromptSubmit", prompt=COOKING))
    assert send(alice, "UserPromptSubmit", prompt=COOKING) == {}
    assert ALLERGY in context_of(send(alice, "UserPromptSubmit", prompt=COOKING, session_id="s2"))


def test_a_note_that_was_changed_is_shown_again(alice: User, send: Send, allergy: Memory) -> None:
    send(alice, "UserPromptSubmit", prompt=COOKING)
    changed = "The user is allergic to peanuts and to cashews."
    change = Change(actor=Origin.USER, trust=Trust.USER)
    memory_update(user_id=alice.pk, memory_id=allergy.pk, change=change, content=changed)
    assert changed in context_of(send(alice, "UserPromptSubmit", prompt=COOKING))


def test_a_session_begins_with_the_standing_notes(
    alice: User, send: Send, standing: Memory, allergy: Memory
) -> None:
    answer = send(alice, "SessionStart", source="startup")
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert standing.content in context_of(answer)
    assert ALLERGY not in context_of(answer)
    prompted = context_of(send(alice, "UserPromptSubmit", prompt=COOKING))
    assert ALLERGY in prompted
    assert standing.content not in prompted


def test_dates_beside_notes_are_days_where_the_user_is(alice: User, send: Send, note: MakeNote) -> None:
    Preferences.objects.update_or_create(user=alice, defaults={"time_zone": "America/Los_Angeles"})
    exam = note(alice, "The user's piano exam is tomorrow.", kind=Kind.FACT, importance=5)
    Memory.objects.for_user(alice).filter(pk=exam.pk).update(
        updated_at=datetime(2026, 11, 24, 4, tzinfo=UTC)  # Monday evening there
    )
    line = "- (2026-11-23): The user's piano exam is tomorrow."
    assert line in context_of(send(alice, "UserPromptSubmit", prompt="When is my piano exam?"))
    assert line in context_of(send(alice, "SessionStart", source="compact"))


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_what_a_session_had_been_shown_is_shown_again_when_it_goes_on(
    alice: User, send: Send, standing: Memory, allergy: Memory, source: str
) -> None:
    send(alice, "SessionStart", source="startup")
    send(alice, "UserPromptSubmit", prompt=COOKING)
    again = context_of(send(alice, "SessionStart", source=source))
    assert standing.content in again
    assert ALLERGY in again
    assert send(alice, "UserPromptSubmit", prompt=COOKING) == {}


@pytest.mark.parametrize("source", ["clear", "startup", "fork"])
def test_a_session_that_begins_anew_is_shown_standing_notes_alone(
    alice: User, send: Send, standing: Memory, allergy: Memory, source: str
) -> None:
    send(alice, "UserPromptSubmit", prompt=COOKING)
    session = "s1" if source == "clear" else "s2"
    answer = context_of(send(alice, "SessionStart", source=source, session_id=session))
    assert standing.content in answer
    assert ALLERGY not in answer
    assert ALLERGY in context_of(send(alice, "UserPromptSubmit", prompt=COOKING, session_id=session))


def test_after_a_compaction_that_nobody_tells_of_later_the_next_prompt_brings_all_up(
    alice: User, send: Send, allergy: Memory
) -> None:
    def prompt(text: str) -> dict[str, Any]:
        return send(alice, "BeforeAgent", client="gemini-cli", prompt=text)

    assert ALLERGY in context_of(prompt(COOKING))
    assert send(alice, "PreCompress", client="gemini-cli", trigger="auto") == {}
    assert ALLERGY in context_of(prompt("Rename the variable x to total in main.py."))
    assert prompt(COOKING) == {}


def test_a_purged_note_is_not_shown_again_and_leaves_nothing_in_the_session(
    alice: User, send: Send, allergy: Memory
) -> None:
    send(alice, "UserPromptSubmit", prompt="What should I cook for guests with my peanut allergy?")
    session = ClientSession.objects.for_user(alice).get()
    assert ALLERGY in str(session.shown)
    memory_purge(user_id=alice.pk, ids=[allergy.pk])
    session.refresh_from_db()
    assert "epinephrine" not in str(session.shown)
    assert send(alice, "SessionStart", source="compact") == {}
    assert send(alice, "UserPromptSubmit", prompt=COOKING) == {}


def test_two_users_with_sessions_of_one_name_are_apart(
    alice: User, bob: User, send: Send, allergy: Memory
) -> None:
    send(alice, "UserPromptSubmit", prompt=COOKING)
    assert send(bob, "UserPromptSubmit", prompt=COOKING) == {}
    assert send(bob, "SessionStart", source="resume") == {}
    assert {row.user_id for row in ClientSession.objects.unscoped()} == {alice.pk, bob.pk}


def test_who_switched_memory_off_is_shown_nothing(
    alice: User, send: Send, allergy: Memory, standing: Memory
) -> None:
    Preferences.objects.filter(user=alice).update(use_memory=False)
    assert send(alice, "SessionStart", source="resume") == {}
    assert send(alice, "UserPromptSubmit", prompt=COOKING) == {}


def test_what_a_program_put_into_the_prompt_brings_nothing_up(
    alice: User, send: Send, allergy: Memory
) -> None:
    assert (
        send(alice, "UserPromptSubmit", prompt=f"<task-notification>{COOKING}</task-notification>") == {}
    )


def test_a_sub_agents_prompt_is_no_users(alice: User, send: Send, allergy: Memory) -> None:
    assert send(alice, "UserPromptSubmit", prompt=COOKING, agent_id="a1", agent_type="Explore") == {}
    assert not ClientSession.objects.for_user(alice).exists()


def test_context_is_never_longer_than_clients_take(alice: User, send: Send, note: MakeNote) -> None:
    for number in range(20):
        note(alice, f"Standing rule {number}: " + "ありがとう" * 40, category=STANDING)
    context = context_of(send(alice, "SessionStart", source="startup"))
    assert 0 < len(context) <= 10_000


def test_events_that_izzy_has_no_use_for_are_answered_by_an_empty_object(
    alice: User, send: Send
) -> None:
    for event in ("PreToolUse", "Notification", "SubagentStop", "SomethingOfTomorrow", ""):
        assert send(alice, event, prompt=5, session_id=None) == {}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 400, "malformed_json"),
        ("[]", 400, "wrong_type"),
        ("{}", 400, "wrong_type"),
        ('{"hook_event_name": 5}', 400, "wrong_type"),
        ('{"hook_event_name": "UserPromptSubmit", "prompt": "Hi"}', 400, "invalid_input"),
        ('{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": 5}', 400, "wrong_type"),
        ('{"hook_event_name": "SessionStart", "session_id": ["s"]}', 400, "wrong_type"),
    ],
)
def test_a_bad_event_gets_a_clear_error(
    alice: User, api: Api, body: str, status: int, code: str
) -> None:
    response = api(alice).post("/api/v1/hooks/claude-code/", body, content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert not ClientSession.objects.for_user(alice).exists()


def test_a_client_without_hooks_is_not_found(alice: User, api: Api) -> None:
    response = api(alice).post(
        "/api/v1/hooks/emacs/", {"hook_event_name": "Stop"}, content_type="application/json"
    )
    assert response.status_code == 404
    assert "claude-code" in response.json()["message"]


def test_hooks_need_a_token() -> None:
    response = Client().post("/api/v1/hooks/codex/", {}, content_type="application/json")
    assert response.status_code == 401
