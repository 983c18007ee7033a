"""Hooks keep what was typed and answered in a session with another program, each once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from apps.accounts.models import Preferences, User
from apps.chat.conversations.services import conversation_delete
from apps.chat.models import Conversation, Message
from apps.gateway.hooks.services import UNANSWERED, unanswered_keep
from apps.gateway.models import ClientSession
from apps.memory.models import CaptureWindow, Trust
from apps.search.documents import Scope, Source
from apps.search.selectors import search
from tests.gateway.hooks.conftest import Api, Send

pytestmark = pytest.mark.django_db

SAID = "I moved to Lisbon in May and work at a bakery now."
ANSWER = "Congratulations! The README says that you like tea."


def said(user: User) -> list[tuple[str, str]]:
    rows = Message.objects.for_user(user).order_by("conversation__created_at", "position")
    return list(rows.values_list("role", "text"))


def trusts(user: User) -> set[tuple[str, str]]:
    """Each role with the trust of its words, as memory will read them."""
    windows = CaptureWindow.objects.for_user(user)
    return {(piece["role"], piece["trust"]) for window in windows for piece in window.segments}


def test_a_stop_keeps_what_was_typed_and_what_was_answered(alice: User, send: Send) -> None:
    assert send(alice, "UserPromptSubmit", prompt=SAID, prompt_id="p1") == {}
    assert said(alice) == []
    assert send(alice, "Stop", prompt_id="p1", last_assistant_message=ANSWER) == {}
    assert said(alice) == [("user", SAID), ("assistant", ANSWER)]
    [conversation] = Conversation.objects.for_user(alice)
    assert (conversation.channel, conversation.session) == ("claude-code", "s1")
    assert conversation.title == SAID
    spoken = Scope(sources=frozenset({Source.CONVERSATION}))
    assert search(alice.pk, "bakery in Lisbon", scope=spoken)[0].text.endswith(SAID)


def test_the_assistants_words_count_as_others_and_the_users_as_theirs(alice: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt=SAID)
    send(alice, "Stop", last_assistant_message=ANSWER)
    assert trusts(alice) == {("user", Trust.USER), ("assistant", Trust.UNTRUSTED)}
    assert ClientSession.objects.for_user(alice).get().tainted


def test_a_pasted_block_is_kept_and_counts_as_others_words(alice: User, send: Send) -> None:
    pasted = "Please summarise this mail.\n\n> I have a dog called Rex.\n> Bring him along."
    send(alice, "UserPromptSubmit", prompt=pasted)
    send(alice, "Stop", last_assistant_message="Done.")
    pieces = [piece for row in CaptureWindow.objects.for_user(alice) for piece in row.segments]
    assert {piece["quoted"] for piece in pieces if "Rex" in piece["text"]} == {True}
    assert {piece["quoted"] for piece in pieces if "summarise" in piece["text"]} == {False}


def test_what_the_program_put_into_the_prompt_is_not_kept(alice: User, send: Send) -> None:
    reminder = "<system-reminder>The user lives in Rome.</system-reminder>"
    send(alice, "UserPromptSubmit", prompt=f"{reminder}\n{SAID}")
    send(alice, "Stop", last_assistant_message=ANSWER)
    assert said(alice)[0] == ("user", SAID)


def test_hooks_that_run_twice_keep_everything_once(alice: User, send: Send) -> None:
    for _ in range(2):
        send(alice, "UserPromptSubmit", prompt=SAID, prompt_id="p1")
    for _ in range(3):
        send(alice, "Stop", prompt_id="p1", last_assistant_message=ANSWER)
    assert said(alice) == [("user", SAID), ("assistant", ANSWER)]


def test_a_client_without_ids_of_turns_keeps_everything_once_too(alice: User, send: Send) -> None:
    for text in ("Go on.", "Go on."):
        for _ in range(2):
            send(alice, "UserPromptSubmit", prompt=text)
        for _ in range(2):
            send(alice, "Stop", last_assistant_message=ANSWER)
    assert said(alice) == [("user", "Go on."), ("assistant", ANSWER)] * 2


def test_several_stops_in_one_turn_keep_each_answer(alice: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt=SAID, prompt_id="p1")
    send(alice, "Stop", prompt_id="p1", last_assistant_message="First.")
    send(alice, "Stop", prompt_id="p1", last_assistant_message="Second.", stop_hook_active=True)
    assert [text for _, text in said(alice)] == [SAID, "First.", "Second."]


def test_an_interrupted_turn_keeps_what_was_typed_with_the_next(alice: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt="First try.", prompt_id="p1")
    send(alice, "UserPromptSubmit", prompt=SAID, prompt_id="p2")
    send(alice, "Stop", prompt_id="p2", last_assistant_message=ANSWER)
    assert [text for _, text in said(alice)] == ["First try.", SAID, ANSWER]


@pytest.mark.parametrize(
    ("client", "prompt", "end"),
    [
        ("claude-code", "UserPromptSubmit", "SessionEnd"),
        ("claude-code", "UserPromptSubmit", "StopFailure"),
        ("codex", "UserPromptSubmit", "Interrupt"),
        ("gemini-cli", "BeforeAgent", "SessionEnd"),
        ("cursor", "beforeSubmitPrompt", "stop"),
    ],
)
def test_a_session_that_ends_keeps_what_waits_for_an_answer(
    alice: User, send: Send, client: str, prompt: str, end: str
) -> None:
    send(alice, prompt, client=client, prompt=SAID)
    send(alice, end, client=client, reason="other")
    assert said(alice) == [("user", SAID)]
    assert ClientSession.objects.for_user(alice).get().prompts == []


def test_a_program_that_is_never_heard_of_again_loses_nothing(alice: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt=SAID)
    unanswered_keep()
    assert said(alice) == []
    before = timezone.now() - UNANSWERED - timedelta(minutes=1)
    ClientSession.objects.for_user(alice).update(updated_at=before)
    unanswered_keep()
    assert said(alice) == [("user", SAID)]


def test_an_answer_brings_its_prompt_where_the_client_repeats_it(alice: User, send: Send) -> None:
    answered: dict[str, Any] = {"prompt": SAID, "prompt_response": ANSWER}
    for _ in range(2):
        send(alice, "AfterAgent", client="gemini-cli", **answered)
    assert said(alice) == [("user", SAID), ("assistant", ANSWER)]
    send(alice, "BeforeAgent", client="gemini-cli", prompt="And now?")
    send(alice, "AfterAgent", client="gemini-cli", prompt="And now?", prompt_response="Tea.")
    assert [text for _, text in said(alice)] == [SAID, ANSWER, "And now?", "Tea."]


def test_a_token_that_only_reads_gets_context_and_keeps_nothing(alice: User, api: Api) -> None:
    client = api(alice, "read")
    asked = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": SAID}
    answer = client.post("/api/v1/hooks/claude-code/", asked, content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {})
    stop = {"session_id": "s1", "hook_event_name": "Stop", "last_assistant_message": ANSWER}
    answer = client.post("/api/v1/hooks/claude-code/", stop, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    assert said(alice) == []
    assert ClientSession.objects.for_user(alice).get().prompts == []


def test_two_users_with_sessions_of_one_name_keep_their_own(alice: User, bob: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt=SAID, prompt_id="p1")
    send(bob, "Stop", prompt_id="p1", last_assistant_message=ANSWER)
    assert said(alice) == []
    assert said(bob) == [("assistant", ANSWER)]
    send(alice, "Stop", prompt_id="p1", last_assistant_message=ANSWER)
    assert said(alice) == [("user", SAID), ("assistant", ANSWER)]
    assert len(said(bob)) == 1


def test_who_switched_capture_off_keeps_the_conversation_but_nothing_is_read_of_it(
    alice: User, send: Send
) -> None:
    Preferences.objects.filter(user=alice).update(capture=False)
    send(alice, "UserPromptSubmit", prompt=SAID)
    send(alice, "Stop", last_assistant_message=ANSWER)
    assert len(said(alice)) == 2
    assert trusts(alice) == set()


def test_a_conversation_that_was_deleted_is_begun_anew(alice: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt="Delete me.", prompt_id="p1")
    send(alice, "Stop", prompt_id="p1", last_assistant_message="Fine.")
    gone = ClientSession.objects.for_user(alice).get().conversation_id
    assert isinstance(gone, UUID)
    conversation_delete(user_id=alice.pk, conversation_id=gone)
    send(alice, "UserPromptSubmit", prompt=SAID, prompt_id="p2")
    send(alice, "Stop", prompt_id="p2", last_assistant_message=ANSWER)
    assert said(alice) == [("user", SAID), ("assistant", ANSWER)]


def test_a_title_of_the_users_own_stays(alice: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt="x" * 300, prompt_id="p1")
    send(alice, "Stop", prompt_id="p1", last_assistant_message="Fine.")
    rows = Conversation.objects.for_user(alice)
    assert len(rows.get().title) == 60
    rows.update(title="Mine")
    send(alice, "UserPromptSubmit", prompt=SAID, prompt_id="p2")
    send(alice, "Stop", prompt_id="p2", last_assistant_message=ANSWER)
    assert rows.get().title == "Mine"


def test_a_huge_answer_is_cut_rather_than_lost(alice: User, send: Send) -> None:
    send(alice, "UserPromptSubmit", prompt="word " * 40_000, prompt_id="p1")
    send(alice, "Stop", prompt_id="p1", last_assistant_message="word " * 40_000)
    assert [len(text) for _, text in said(alice)] == [99_999, 99_999]


def test_cursor_that_runs_the_hooks_of_claude_code_is_kept_once_and_as_cursor(
    alice: User, send: Send
) -> None:
    cursor = {"cursor_version": "3.20.17", "conversation_id": "c1", "generation_id": "g1"}
    for client in ("cursor", "claude-code"):
        send(alice, "beforeSubmitPrompt", client=client, prompt=SAID, **cursor)
        send(alice, "afterAgentResponse", client=client, text=ANSWER, **cursor)
    assert said(alice) == [("user", SAID), ("assistant", ANSWER)]
    assert Conversation.objects.for_user(alice).get().channel == "cursor"
