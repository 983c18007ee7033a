"""The cost of a turn and of a page depends on the conversation, not on all that its user has said in others."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.agent.selectors import conversation_untrusted, toolcalls_undecided, turn_usage
from apps.agent.services import toolcall_finish, toolcalls_open, toolcalls_start
from apps.agent.tools.results import ToolOutcome
from apps.agent.turn.events import Response
from apps.chat.conversations.handover import (
    messages_capture_pending,
    messages_index_pending,
    turn_capture,
    turn_index,
)
from apps.chat.conversations.selectors import shown_untrusted, user_messages
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation, Message, Role, Turn, TurnStatus
from apps.chat.stream.events import events_prune
from apps.chat.stream.snapshot import start_for
from apps.chat.summary.selectors import Budget, Need, compact_job
from apps.chat.turns.preparing import turn_prepare
from apps.chat.turns.queue import conversation_take, turns_interrupt, work_next
from apps.chat.turns.scheduler import conversations_left
from apps.chat.turns.services import message_send
from apps.chat.turns.store import TurnOutcome, message_append, turn_finish
from apps.memory.notes.creation import memory_create
from apps.memory.recall.injection import still_shown
from tests.tools import Tools

GROWING = r"chat_message|chat_turn|chat_turnevent|agent_toolcall|agent_modelcall"
"""The tables of which a user has as many rows as they ever said things."""
WHOLE = re.compile(
    rf"(?:SEARCH (?:{GROWING}) .*\(user_id=\?\)|SCAN (?:{GROWING})(?: USING .*autoindex.*)?)$"
)


@contextmanager
def plans() -> Iterator[list[str]]:
    """The steps by which the database finds what is asked for meanwhile, each behind its statement."""
    if connection.vendor != "sqlite":
        pytest.skip("the plans are SQLite's")
    asked: list[tuple[str, Any]] = []
    steps: list[str] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(("SELECT", "UPDATE", "DELETE")):
            asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield steps
    with connection.cursor() as cursor:
        for sql, params in asked:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            steps += [f"{row[3]} <- {sql[:2000]}" for row in cursor.fetchall()]


def of_everything(steps: list[str]) -> list[str]:
    """Those that go through all rows of the user, or of everybody."""
    return [step for step in steps if WHOLE.fullmatch(step.partition(" <- ")[0])]


def a_turn(user: User, place: Conversation, text: str = "What about the lemon trees?") -> Turn:
    """All that the database does for one turn, step by step as its process does it."""
    sent = message_send(
        user_id=user.pk,
        text=text,
        conversation=str(place.pk),
        client_id=f"{place.pk}{text}"[:64],
    )
    conversation_take(place.pk)
    assert work_next(place.pk, None).turn_id == sent.turn_id
    turn_prepare(sent.turn_id)
    turn = Turn.objects.unscoped().get(pk=sent.turn_id)
    with transaction.atomic():
        said = [{"type": "text", "text": "They grow."}]
        message_append(turn, role=Role.ASSISTANT, blocks=said, round=1)
        turn_finish(
            TurnOutcome(turn_id=turn.pk, state=TurnStatus.DONE, event=Response(text="They grow.")), 5
        )
    turn_index(turn.pk)
    turn_capture(turn.pk)
    compact_job(place.pk, Need.BUDGET, Budget(settings.IZZY_HISTORY_TOKENS), rewrite=True)
    return turn


def test_a_turn_looks_at_no_other_conversation(alice: User) -> None:
    place = conversation_create(user_id=alice.pk)
    a_turn(alice, place)
    with plans() as steps:
        turn = a_turn(alice, place, "And the figs?")
        conversation_untrusted(user_id=alice.pk, conversation_id=place.pk)
        toolcalls_undecided(user_id=alice.pk, turn_id=turn.pk)
        turn_usage(user_id=alice.pk, turn_id=turn.pk)
        user_messages(alice.pk, place.pk)
        shown_untrusted(alice.pk, place.pk)
        call = ToolCall(
            user=alice, conversation_id=place.pk, turn_id=turn.pk, round=1, position=0, name="think"
        )
        calls = toolcalls_open([call])
        assert toolcalls_start(user_id=alice.pk, rows=calls)
        assert toolcall_finish(user_id=alice.pk, id=calls[0].pk, outcome=ToolOutcome("Done."))
    assert len(steps) > 50
    assert of_everything(steps) == []


def test_notes_that_stand_beside_earlier_words_are_looked_up_by_their_ids(alice: User) -> None:
    notes = [
        memory_create(user_id=alice.pk, content=f"Alice has {number} lemon trees.")
        for number in range(12)
    ]
    items = [{"id": str(note.pk), "text": note.content} for note in notes]
    with plans() as steps:
        assert still_shown(alice.pk, items) == {note.pk for note in notes}
    assert steps
    assert not [step for step in steps if "(user_id=?) <- " in step]


def test_upkeep_that_finds_nothing_to_do_looks_at_what_is_open_alone(alice: User) -> None:
    a_turn(alice, conversation_create(user_id=alice.pk))
    Message.objects.unscoped().update(created_at=timezone.now() - timedelta(hours=1))
    with plans() as steps:
        messages_index_pending()
        messages_capture_pending()
        turns_interrupt()
        conversations_left()
        events_prune()
    assert len(steps) >= 5
    assert of_everything(steps) == []


def test_nor_do_its_pages_and_those_who_watch_it(
    alice: User, sign_in: Callable[[User], Client], api: Callable[[User], Client]
) -> None:
    place = conversation_create(user_id=alice.pk)
    turn = a_turn(alice, place)
    ToolCall.objects.create(
        user=alice,
        conversation_id=place.pk,
        turn_id=turn.pk,
        round=1,
        position=0,
        name="think",
        state="done",
    )
    browser, program, past = sign_in(alice), api(alice), Tools(user_id=alice.pk)
    with plans() as steps:
        start_for(alice.pk, place.pk, None)
        start_for(alice.pk, place.pk, 1)
        for path in ("/", f"/c/{place.pk}/", f"/c/{place.pk}/log/", "/conversations/"):
            assert browser.get(path).status_code == 200
        for path in ("", f"{place.pk}/", f"{place.pk}/messages/", f"{place.pk}/log/"):
            assert program.get(f"/api/v1/conversations/{path}").status_code == 200
        past.at_once("conversation_list")
        past.at_once("conversation_read", conversation_id=str(place.pk))
        past.at_once("conversation_search", query="lemon trees")
    assert len(steps) > 50
    assert of_everything(steps) == []


def test_nor_does_a_search_of_conversations_by_what_was_said(
    alice: User, sign_in: Callable[[User], Client], api: Callable[[User], Client]
) -> None:
    a_turn(alice, conversation_create(user_id=alice.pk))
    browser, program = sign_in(alice), api(alice)
    with plans() as steps:
        for query in ("lemon", "lemon tr", "emon", "?"):
            assert browser.get("/conversations/", {"q": query}).status_code == 200
            assert program.get("/api/v1/conversations/", {"q": query}).status_code == 200
    looked = [step for step in steps if step.startswith("SEARCH chat_message") and "LIKE" in step]
    assert looked
    assert [step for step in looked if "(conversation_id=? AND position>?)" not in step] == []
    assert of_everything(steps) == []


@pytest.mark.parametrize("whose", ["for_user", "owned_by"])
def test_both_ways_of_asking_give_the_rows_of_one_user_alone(alice: User, bob: User, whose: str) -> None:
    mine, theirs = conversation_create(user_id=alice.pk), conversation_create(user_id=bob.pk)
    both = [mine.pk, theirs.pk]
    for user in (alice, alice.pk):
        rows = getattr(Conversation.objects, whose)(user).filter(pk__in=both)
        assert [row.pk for row in rows] == [mine.pk]
    assert getattr(Conversation.objects, whose)(alice).filter(pk__in=both).update(title="Mine") == 1
    assert getattr(Conversation.objects, whose)(alice).filter(pk__in=both).delete()[0] == 1
    assert Conversation.objects.unscoped().get().pk == theirs.pk
