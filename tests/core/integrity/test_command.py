"""`manage.py check_integrity`: what it prints, how it ends, whose data it touches, and that it disturbs nobody."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from apps.accounts.models import User
from apps.chat.models import Message
from apps.core.integrity import checks
from apps.core.integrity.running import examine
from apps.memory.models import Memory, MemoryEdge
from apps.memory.notes.changes import memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create
from apps.search.backends import postings_held
from apps.search.models import Passage

from .conftest import Look
from .world import World


def run(*options: str) -> tuple[int, str]:
    """How it ended, and what it printed."""
    out = StringIO()
    try:
        call_command("check_integrity", *options, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, out.getvalue() + str(error)
    return 0, out.getvalue()


@pytest.mark.django_db
def test_it_ends_by_what_it_found(world: World) -> None:
    ended, said = run()
    assert (ended, "Everything fits" in said) == (0, True)
    Passage.objects.filter(source_id=world.note.pk).delete()
    ended, said = run()
    assert ended == 1
    assert "With --fix: Makes it searchable again." in said
    assert run("--fix")[0] == 0
    assert run()[0] == 0


@pytest.mark.django_db
def test_json_says_all_and_none_of_the_users_words(world: World) -> None:
    Passage.objects.filter(source_id=world.note.pk).update(text="shellfish and crabs")
    Message.objects.unscoped().filter(turn=world.turn, kind="tool_results").update(blocks="[{")
    ended, said = run("--json", "--fix")
    result: dict[str, Any] = json.loads(said)
    assert ended == 1
    assert (result["clean"], result["fixed"], result["left"]) == (False, 1, 1)
    repaired, left = sorted(result["findings"], key=lambda each: each["fixed"], reverse=True)
    assert repaired["about"] == f"memory_memory {world.note.pk}"
    assert (repaired["username"], left["fixed"], bool(left["advice"])) == ("alice", False, True)
    assert not any(word in said for word in ("shellfish", "crabs", "allergic", "Roses", "garden"))


@pytest.mark.django_db
def test_with_a_user_nobody_else_is_looked_at_or_repaired(world: World, bob: User) -> None:
    his = memory_create(user_id=bob.pk, content="I like plums.")
    Passage.objects.filter(source_id__in=[world.note.pk, his.pk]).delete()
    ended, said = run("--json", "--user", "alice", "--fix")
    assert ended == 0
    assert {each["username"] for each in json.loads(said)["findings"]} == {"alice"}
    assert not Passage.objects.filter(source_id=his.pk).exists()
    ended, said = run("--user", "nobody")
    assert (ended, "There is no user called nobody" in said) == (2, True)


@pytest.mark.django_db
def test_words_of_a_user_are_left_where_what_they_belong_to_is_gone(world: World, look: Look) -> None:
    message = Message.objects.unscoped().filter(turn=world.turn).first()
    assert message
    Message.objects.unscoped().filter(pk=message.pk).update(turn_id=world.note.pk)
    Message.objects.unscoped().filter(pk=message.pk).update(conversation_id=world.note.pk)
    outcomes = [each for each in look(fix=True) if each.finding.about.endswith(str(message.pk))]
    assert {each.finding.message[:20]: each.fixed for each in outcomes} == {
        "Its conversation is ": False,
        "Its turn is gone: no": True,
        "Search still finds i": True,
    }
    assert Message.objects.unscoped().filter(pk=message.pk, text=message.text).exists()
    Message.objects.unscoped().filter(pk=message.pk).delete()


@pytest.mark.django_db
def test_a_link_into_another_users_notes_is_found(world: World, bob: User, look: Look) -> None:
    his = memory_create(user_id=bob.pk, content="I like plums.")
    edge = MemoryEdge.objects.for_user(world.user).get()
    MemoryEdge.objects.unscoped().filter(pk=edge.pk).update(target=his)
    assert [(each.check, each.finding.message) for each in look()] == [
        ("database: owners", "Its target belongs to another user.")
    ]


@pytest.mark.django_db
def test_a_row_that_breaks_a_rule_of_its_table_is_found(world: World, look: Look) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("this engine cannot be made to take such a row")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints=ON")
        try:
            Memory.everything.filter(pk=world.note.pk).update(importance=9)
        finally:
            cursor.execute("PRAGMA ignore_check_constraints=OFF")
    found = [each for each in look() if each.check == "database: rules"]
    assert [each.finding.message for each in found] == [
        "It breaks the rule memory_importance_1_to_5 of its table."
    ]


def test_every_check_has_a_title_and_is_registered_once() -> None:
    names = [name for name, _ in checks()]
    assert len(names) == len(set(names)) > 20
    assert len({check.title for _, check in checks()}) == len(names)


@pytest.mark.django_db(transaction=True)
def test_nothing_is_found_while_others_write(data: Path, alice: User) -> None:
    """Not even at the first look, since that is one moment's for each user."""
    stop = threading.Event()
    if connection.vendor == "sqlite":
        postings_held.empty()  # other tests that commit leave their stems

    def write() -> None:
        try:
            while not stop.is_set():
                first = memory_create(user_id=alice.pk, content="I live in Lyon.", tags=["home"])
                second = memory_create(user_id=alice.pk, content="The boiler is old. " * 80)
                edge_create(
                    user_id=alice.pk, source_id=first.pk, target_id=second.pk, relation="related"
                )
                memory_update(user_id=alice.pk, memory_id=first.pk, content="I live in Nice.")
                memory_delete(user_id=alice.pk, memory_id=second.pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            for _ in range(5):
                assert list(examine()) == []
        finally:
            stop.set()
        writer.result()
