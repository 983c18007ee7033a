"""The decision log: turn by turn what the model chose to do, as JSON and as a page."""

import json
import re
from collections.abc import Callable
from typing import Any

from django.test import Client

from apps.accounts.models import User
from apps.agent.models import ModelCall, ToolCall
from apps.agent.offline.dialogue import Done
from apps.agent.tools.results import UNTRUSTED
from apps.chat.audit_log.selectors import decision_log
from apps.chat.audit_log.words import recoveries
from apps.chat.models import Conversation, Turn, TurnStatus
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.memory.files.services import file_write
from apps.memory.models import Memory, MemoryFile, Origin, Trust
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import Change
from tests.chat.client import Program, connected, program_of
from tests.chat.rows import conversation
from tests.chat.summaries import say
from tests.peers.anthropic_server import AnthropicServer, reply, tool

PREFERENCES = "/memories/user_preferences.txt"
PROJECT = "/memories/project_solo_entrepreneur_app.txt"
WRONG = "/memories/solo_entrepreneur_app_project.md"
KNOWN = "User Preferences\n================\n\nFavorite color: blue\n\nCurrent Projects:\n- A novel"
TODO = "To-Do List:\n" + "\n".join(f"[ ] Step {number} of the work" for number in range(1, 20))
PLAN = f"Solo Entrepreneur Management Web App\nStarted: 2025-11-07\n\n{TODO}\n\nNotes: ".ljust(624, ".")
"""As many lines and characters as documented."""
FEATURES = "MVP Features\n1. Time Tracking\n2. Client Rolodex\n3. Dashboard"


def command(name: str, **fields: Any) -> dict[str, Any]:
    return tool("memory", {"command": name, **fields})


async def replay(alice: User, model: AnthropicServer) -> tuple[str, Program]:
    """The documented conversation, with the model's choices in the documented order."""
    place = await conversation(alice)
    await in_db(file_write, user_id=alice.pk, path=PREFERENCES, text=KNOWN)
    model.add(
        reply(command("view", path="/memories")),
        reply("Hello!"),
        reply(command("view", path="/memories")),
        reply(command("view", path=PREFERENCES)),
        reply("Hello! Are you still at the beach?"),
        reply(command("view", path="/memories")),
        reply(command("view", path=PREFERENCES)),
        reply(command("create", path=PROJECT, file_text=PLAN)),
        reply(
            command(
                "str_replace",
                path=PREFERENCES,
                old_string="- A novel",
                new_string="- A novel\n- Solo Web App",
            )
        ),
        reply("Excellent! I've created a dedicated project file."),
        reply(command("str_replace", path=WRONG, old_string=TODO, new_string=FEATURES)),
        reply(command("view", path="/memories")),
        reply(command("view", path=PROJECT)),
        reply(command("str_replace", path=PROJECT, old_string=TODO, new_string=FEATURES)),
        reply("Perfect! I've updated the project file with your MVP features."),
    )
    async with connected(alice) as page:
        await say(
            page, place, "hello", "hello", "still at the beach, I'd like to start a new dedicated project",
            "Let's catalog the features for the MVP",
        )  # fmt: skip
    return place, await program_of(alice)


async def test_the_documented_conversation_reads_as_documented(
    alice: User, model: AnthropicServer
) -> None:
    place, program = await replay(alice, model)
    log = (await program.get(f"conversations/{place}/log/")).json()
    did = [
        [f"{step['title']} {step['target']}".strip() for step in turn["steps"]] for turn in log["turns"]
    ]
    project, preferences = PROJECT.removeprefix("/memories/"), PREFERENCES.removeprefix("/memories/")
    listing = "View the memory directory"
    assert did == [
        [listing],
        [listing, f"View {preferences}"],
        [listing, f"View {preferences}", f"Create {project}", f"Update {preferences}"],
        ["Update solo_entrepreneur_app_project.md", listing, f"View {project}", f"Update {project}"],
    ]
    first, second, third, fourth = log["turns"]
    assert [first["said"], first["outcome"]] == ["hello", ["1 item found."]]
    assert second["outcome"] == ["7 lines read."]
    assert third["outcome"] == [
        f"Updated {preferences}.",
        f"Wrote {project} (25 lines, 624 characters).",
    ]
    assert third["written"] == {"files": 2, "notes": 0, "lines": 27, "characters": len(PLAN) + 24}
    assert fourth["outcome"] == ["Recovered from 1 error.", f"Updated {project}."]
    assert fourth["answer"] == "Perfect! I've updated the project file with your MVP features."
    assert log["totals"] | {"usage": 0, "duration_ms": 0} == {
        "turns": 4, "calls": 11, "errors": 1, "recovered": 1, "lines": 31,
        "characters": len(PLAN) + 24 + len(FEATURES), "usage": 0, "duration_ms": 0,
    }  # fmt: skip
    assert await in_db(
        lambda: MemoryFile.objects.for_user(alice).get(path=PROJECT).content
    ) == PLAN.replace(TODO, FEATURES)


async def test_the_wrong_file_name_is_an_error_and_what_follows_its_recovery(
    alice: User, model: AnthropicServer
) -> None:
    place, program = await replay(alice, model)
    steps = (await program.get(f"conversations/{place}/log/")).json()["turns"][3]["steps"]
    assert [step["state"] for step in steps] == ["error", "ok", "ok", "ok"]
    assert [step["is_recovery"] for step in steps] == [False, True, True, True]
    assert steps[0]["recovered_by"] == steps[3]["id"]
    assert steps[0]["outcome"] == f"The path {WRONG} does not exist. Please provide a valid path."
    assert steps[0]["error_code"] == "not_found"
    assert steps[3]["input"]["old_string"] == TODO
    assert (steps[3]["lines"], steps[3]["characters"]) == (4, len(FEATURES))


async def test_the_page_shows_it(
    alice: User, model: AnthropicServer, sign_in: Callable[[User], Client]
) -> None:
    place, _ = await replay(alice, model)
    html = await in_db(lambda: sign_in(alice).get(f"/c/{place}/log/").content.decode())
    words = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "View the memory directory 1 item found" in words
    assert "Error: The path /memories/solo_entrepreneur_app_project.md does not exist." in words
    assert "Recovered below." in words
    assert words.count("recovery ") == 3
    assert "25 lines, 624 characters written" in words
    assert "<del>[ ] Step 1 of the work</del>" in html
    assert "<ins>2. Client Rolodex</ins>" in html
    assert f"/c/{place}/log.json" in html
    files = await in_db(lambda: MemoryFile.objects.for_user(alice).get(path=PROJECT).pk)
    assert f"/memory/files/{files}/read/" in html


async def test_the_download_is_what_the_programs_get(
    alice: User, model: AnthropicServer, sign_in: Callable[[User], Client]
) -> None:
    place, program = await replay(alice, model)
    response = await in_db(lambda: sign_in(alice).get(f"/c/{place}/log.json"))
    assert "attachment" in response["Content-Disposition"]
    assert json.loads(response.content) == (await program.get(f"conversations/{place}/log/")).json()


async def test_notes_read_written_and_changed_are_named_with_their_text(
    alice: User, model: AnthropicServer
) -> None:
    old = await in_db(lambda: memory_create(user_id=alice.pk, content="Alice is allergic to shellfish."))
    place = await conversation(alice)
    model.add(
        reply(tool("memory_search", {"query": "allergic to shellfish"})),
        reply(tool("memory_save", {"content": "Alice likes figs.\nAnd dates."})),
        reply(
            tool("memory_update", {"note_id": old.note_id, "content": "Alice is allergic to prawns."})
        ),
        reply("Noted."),
    )
    async with connected(alice) as page:
        await say(page, place, "Am I allergic to shellfish? I like figs and dates; it is prawns only")
    [turn] = (await (await program_of(alice)).get(f"conversations/{place}/log/")).json()["turns"]
    new = await in_db(lambda: Memory.objects.for_user(alice).get(content__startswith="Alice likes"))
    assert {(note["note_id"], note["action"], note["text"]) for note in turn["memories"]} == {
        (old.note_id, "changed", "Alice is allergic to prawns."),
        (new.note_id, "written", "Alice likes figs. And dates."),
    }
    assert turn["outcome"] == ["Saved a memory.", "Corrected a memory."]
    assert turn["written"] == {"files": 0, "notes": 2, "lines": 3, "characters": 28 + 28}
    spent = await in_db(
        lambda: list(ModelCall.objects.for_user(alice).values_list("input_tokens", flat=True))
    )
    assert (turn["usage"]["calls"], turn["usage"]["input_tokens"]) == (4, sum(spent))
    assert turn["duration_ms"] > 0


async def test_a_note_that_was_known_already_is_neither_saved_nor_corrected(
    alice: User, model: AnthropicServer
) -> None:
    old = await in_db(lambda: memory_create(user_id=alice.pk, content="Alice likes figs."))
    place = await conversation(alice)
    model.add(
        reply(tool("memory_save", {"content": "Alice likes figs."})),
        reply(tool("memory_update", {"note_id": old.note_id, "content": "Alice likes figs."})),
        reply("I know."),
    )
    async with connected(alice) as page:
        await say(page, place, "Alice likes figs.")
    [turn] = (await (await program_of(alice)).get(f"conversations/{place}/log/")).json()["turns"]
    assert [note["action"] for note in turn["memories"]] == ["read"]
    assert all(line.startswith("Known already") for line in turn["outcome"])
    assert turn["written"]["notes"] == 0


async def test_an_unknown_note_is_told_without_ids_and_advice_for_the_model(
    alice: User, model: AnthropicServer
) -> None:
    place = await conversation(alice)
    unknown = "note-0199a000-0000-7000-8000-000000000001"
    model.add(reply(tool("memory_delete", {"note_id": unknown})), reply("There is none."))
    async with connected(alice) as page:
        await say(page, place, "Forget it")
    [turn] = (await (await program_of(alice)).get(f"conversations/{place}/log/")).json()["turns"]
    [step] = turn["steps"]
    assert (step["title"], step["target"], step["outcome"]) == (
        "Delete a memory",
        "",
        "There is no such memory.",
    )
    assert turn["outcome"] == ["1 call failed."]
    assert unknown in step["result"]


def test_a_result_of_ten_thousand_brackets_is_shown_like_any_other(
    alice: User, sign_in: Callable[[User], Client]
) -> None:
    place = Conversation.objects.create(user=alice)
    turn = Turn.objects.create(user=alice, conversation=place, state=TurnStatus.DONE)
    for position, result in enumerate(["[" * 10_000, UNTRUSTED + '{"a":' * 10_000]):
        ToolCall.objects.create(
            user=alice,
            conversation_id=place.pk,
            turn_id=turn.pk,
            round=1,
            position=position,
            name="cap_brackets",
            state=ToolCall.State.DONE,
            result=result,
        )
    assert sign_in(alice).get(f"/c/{place.pk}/log/").status_code == 200
    assert Done("cap_brackets", {}, "[" * 10_000, is_error=False).value("text") is None


async def test_a_replaced_turn_is_marked_with_what_took_its_place(
    alice: User, model: AnthropicServer
) -> None:
    place = await conversation(alice)
    model.add(reply("One."), reply("Two."))
    async with connected(alice) as page:
        first = await say(page, place, "First")
        second = await say(page, place, "First, edited", replaces=first["message"]["id"])
    turns = (await (await program_of(alice)).get(f"conversations/{place}/log/")).json()["turns"]
    assert [(turn["said"], turn["replaced_by"]) for turn in turns] == [
        ("First", second["turn"]),
        ("First, edited", None),
    ]
    assert [turn["outcome"] for turn in turns] == [["Answered."], ["Answered."]]


async def test_what_was_declined_or_stopped_is_no_error(alice: User, model: AnthropicServer) -> None:
    place = await conversation(alice)
    other = await conversation(alice)
    model.add(reply(tool("conversation_delete", {"conversation_id": other})), reply("As you wish."))
    async with connected(alice) as page:
        await page.say("Delete it", conversation=place)
        asked = await page.until("approval_requested")
        await page.ended()
        open_log = await in_db(lambda: decision_log(Conversation.objects.for_user(alice).get(id=place)))
        await page.send("approve", id=asked["id"], decision="deny")
        await page.ended()
        await scheduler().idle()
    assert open_log["turns"][0]["steps"][0]["state"] == "open"
    assert open_log["turns"][0]["outcome"] == ["Waits for you."]
    [turn] = (await in_db(lambda: decision_log(Conversation.objects.for_user(alice).get(id=place))))[
        "turns"
    ]
    [step] = turn["steps"]
    assert (step["state"], step["outcome"]) == ("not_run", "You declined it, so it was not done.")
    assert turn["outcome"] == ["Answered."]


def calls(*made: tuple[str, dict[str, Any], bool]) -> list[ToolCall]:
    return [
        ToolCall(
            name=name,
            input=given,
            is_error=failed,
            error_code="failed_x" if failed else "",
            state="done",
        )
        for name, given, failed in made
    ]


def test_a_recovery_is_the_first_later_success_at_the_same_thing() -> None:
    search, save = "memory_search", "memory_save"
    made = calls(
        (save, {}, True), (search, {}, False), (save, {}, True), (save, {}, False), (search, {}, False)
    )
    good, steps = recoveries(made)
    assert good == {made[0].id: made[3].id, made[2].id: made[3].id}
    assert steps == {made[1].id, made[3].id}
    made = calls((save, {}, True), (search, {}, False))
    assert recoveries(made) == ({}, set())


def test_looking_at_a_file_makes_no_failed_change_good() -> None:
    change = {"command": "str_replace", "path": "/memories/a.txt"}
    look = {"command": "view", "path": "/memories/a.txt"}
    write = {"command": "create", "path": "/memories/a.txt"}
    assert recoveries(calls(("memory", change, True), ("memory", look, False))) == ({}, set())
    made = calls(("memory", change, True), ("memory", look, False), ("memory", write, False))
    assert recoveries(made) == ({made[0].id: made[2].id}, {made[1].id, made[2].id})


def test_an_empty_log_and_a_foreign_one(
    alice: User, bob: User, sign_in: Callable[[User], Client]
) -> None:
    mine = Conversation.objects.create(user=alice, title="Mine")
    page = sign_in(alice).get(f"/c/{mine.id}/log/")
    assert "Nothing to show yet" in page.content.decode()
    assert sign_in(alice).get(f"/api/v1/conversations/{mine.id}/log/").json()["turns"] == []
    for path in (
        f"/c/{mine.id}/log/",
        f"/c/{mine.id}/log.json",
        f"/api/v1/conversations/{mine.id}/log/",
    ):
        assert sign_in(bob).get(path).status_code == 404
        assert sign_in(alice).get(path.replace(str(mine.id), "no-id")).status_code == 404


async def test_what_an_untrusted_file_holds_is_counted_without_the_mark(
    alice: User, model: AnthropicServer
) -> None:
    by_page = Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED)
    await in_db(
        lambda: file_write(user_id=alice.pk, path="/memories/a page.md", text="One\nTwo", change=by_page)
    )
    looks = [command("view", path=path) for path in ("/memories", "/memories/a page.md")]
    model.add(reply(looks[0]), reply(looks[1]), reply("Two lines."))
    place = await conversation(alice)
    async with connected(alice) as page:
        await say(page, place, "What is in it?")
    log = await in_db(lambda: decision_log(Conversation.objects.for_user(alice).get(pk=place)))
    assert [step["outcome"] for step in log["turns"][0]["steps"]] == ["1 item found", "2 lines read"]
