"""Builds when a note is purged, a capability or an account deleted, and what an export holds."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.agent.models import ToolCall
from apps.builder.builds.ending import build_end, transcripts_prune
from apps.builder.builds.messages import message_add
from apps.builder.builds.records import build_rows
from apps.builder.builds.selectors import build_usage, builder_stats
from apps.builder.models import Build, BuilderMessage, DialogueMessage, MessageType
from apps.builder.runner.pool import BuildPool
from apps.capabilities.catalog.lifecycle import capability_delete
from apps.capabilities.runs.execution import capability_execute
from apps.core.db.pool import in_db
from apps.core.db.writing import writing_for
from apps.memory.notes.creation import memory_create
from apps.memory.purge import memory_purge
from tests.builder.scripts import code, register, write
from tests.builder.test_building import request_build
from tests.peers.anthropic_server import AnthropicServer
from tests.waiting import until

NOTE = "The locker at the swimming pool opens with xanthophyll 4711"


def test_a_purged_note_is_taken_out_of_builds(alice: User) -> None:
    note = memory_create(user_id=alice.pk, content=NOTE)
    build = request_build(alice)
    Build.objects.for_user(alice).filter(pk=build.pk).update(
        request=NOTE, last_error=f"KeyError: {NOTE}"
    )
    message_add(build=build, type=MessageType.PROGRESS, payload={"text": NOTE})
    blocks = json.dumps([{"type": "text", "text": NOTE}])
    DialogueMessage.objects.create(user=alice, build=build, position=0, role="user", blocks=blocks)

    memory_purge(user_id=alice.pk, ids=[note.pk])

    for rows in (Build, BuilderMessage, DialogueMessage):
        assert "xanthophyll" not in json.dumps(list(rows.objects.for_user(alice).values()), default=str)
    text = json.loads(DialogueMessage.objects.for_user(alice).get().blocks)[0]["text"]
    assert text


def test_an_account_goes_with_its_builds(alice: User, bob: User) -> None:
    request_build(alice)
    kept = request_build(bob)
    user_delete(user=alice)
    assert list(Build.objects.unscoped()) == [kept]


async def test_the_steps_of_an_old_build_go_and_what_it_made_and_cost_stays(
    alice: User,
    model: AnthropicServer,
    pool: BuildPool,
    settings: Settings,
    sign_in: Callable[[User], Client],
) -> None:
    settings.IZZY_BUILD_TRANSCRIPT_DAYS = 30
    old, young = (
        await in_db(request_build, alice),
        await in_db(lambda: request_build(alice, name="other_dice")),
    )
    model.fallback = lambda request: register() if len(request["messages"]) > 1 else write()
    await pool.idle()
    waiting = await in_db(lambda: request_build(alice, name="third_dice"))
    long_ago = timezone.now() - timedelta(days=31)
    await in_db(
        lambda: Build.objects.unscoped().filter(pk__in=[old.pk, waiting.pk]).update(created_at=long_ago)
    )
    await in_db(lambda: Build.objects.unscoped().filter(pk=old.pk).update(ended_at=long_ago))
    before = await in_db(lambda: build_usage(old))
    kept = await in_db(lambda: rows_of(young))

    await in_db(transcripts_prune)

    assert await in_db(lambda: rows_of(young)) == kept
    assert await in_db(lambda: waiting.messages.count()) == 1
    assert await in_db(lambda: rows_of(old)) == (0, 0)
    assert await in_db(lambda: [row.type for row in old.messages.all()]) == ["complete"]
    assert await in_db(lambda: build_usage(old)) == before
    assert before.output_tokens > 0
    run = await capability_execute(user_id=alice.pk, name="dice_roller", args={"count": 1, "sides": 6})
    assert run.state == "ok"
    client = await in_db(sign_in, alice)
    page = (await in_db(lambda: client.get(f"/builds/{old.pk}/"))).content.decode()
    assert "steps were removed after 30 days" in page
    assert "/capabilities/dice_roller/versions/?compare=1#diff" in page
    assert "Round 1" not in page
    assert "tokens" in page
    program = await in_db(lambda: client.get(f"/api/v1/builds/{old.pk}/").json())
    assert (program["rounds"], program["state"], program["usage"]["calls"]) == ([], "done", 2)


def rows_of(build: Build) -> tuple[int, int]:
    """Messages of the talk with the model, and tool calls."""
    calls = ToolCall.objects.unscoped().filter(turn_id=build.pk)
    return DialogueMessage.objects.unscoped().filter(build=build).count(), calls.count()


async def test_a_build_whose_capability_is_deleted_stops(
    alice: User, model: AnthropicServer, pool: BuildPool, caplog: pytest.LogCaptureFixture
) -> None:
    build = await in_db(request_build, alice)
    model.add(write())
    model.fallback = code("import time; time.sleep(60)")
    running = asyncio.ensure_future(pool.run())
    await until(lambda: len(model.messages) >= 2)
    with writing_for(alice.pk):
        await in_db(lambda: capability_delete(user_id=alice.pk, capability_id=build.capability_id))
    await until(lambda: not pool.jobs)
    pool.stop()
    await running
    assert not await in_db(Build.objects.unscoped().exists)
    assert not [record for record in caplog.records if record.name.startswith("apps.builder")]


def test_an_export_and_the_statistics_know_of_builds(alice: User, bob: User) -> None:
    build = request_build(alice)
    build_end(build=build, code="gave_up", reason="It needs a paid service.")
    first, *messages = build_rows(alice.pk)
    assert (first["type"], first["name"], first["state"]) == ("build", "dice_roller", "failed")
    assert {row["type"] for row in messages} == {"builder_message"}
    assert messages[-1]["payload"]["text"] == "It needs a paid service."
    assert builder_stats(alice.pk) == {"total": 1, "done": 0, "failed": 1, "cancelled": 0, "open": 0}
    assert builder_stats(bob.pk)["total"] == 0
