"""Several programs of one user do at once what would cross: nothing is lost, nothing counted twice, nobody meets an error."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.accounts.models import APIToken, Preferences, User
from apps.accounts.services import TOKENS_PER_USER, preferences_update, token_create
from apps.builder.models import Build
from apps.capabilities.models import CapabilityVersion
from apps.chat.models import Conversation, Message, Turn
from apps.chat.turns.services import message_send
from apps.core.db.writing import writing_for
from apps.core.errors import Conflict
from apps.memory.models import (
    CaptureWindow,
    Import,
    Memory,
    MemoryEdge,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
)
from apps.search.models import Passage
from apps.search.spaces import base_ensure
from tests.core.db.at_once import at_once

pytestmark = pytest.mark.django_db(transaction=True)

API = "/api/v1"
CLIENTS = 4
ROUNDS = 4
Api = Callable[..., Client]


@pytest.fixture
def program(alice: User, api: Api) -> Client:
    base_ensure()
    return api(alice)


def post(client: Client, address: str, /, **body: Any) -> Any:
    answer: Any = client.post(f"{API}{address}", body, content_type="application/json")
    assert answer.status_code < 300, answer.content
    return answer.json() if answer.content else None


def patch(client: Client, path: str, **body: Any) -> Any:
    answer: Any = client.patch(f"{API}{path}", body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_notes_that_are_saved_at_once_are_all_there_and_all_found(program: Client, alice: User) -> None:
    def save(number: int) -> None:
        for turn in range(ROUNDS):
            post(
                program,
                "/memories/",
                content=f"Albatross number {number * ROUNDS + turn} flies at dawn.",
            )

    at_once([partial(save, number) for number in range(CLIENTS)])
    assert Memory.objects.for_user(alice).count() == CLIENTS * ROUNDS
    assert Passage.objects.filter(user=alice).count() == CLIENTS * ROUNDS


def test_every_change_of_a_note_is_one_revision_of_its_history(program: Client, alice: User) -> None:
    note = post(program, "/memories/", content="The kettle is blue.")["id"]

    def change(number: int) -> None:
        for turn in range(ROUNDS):
            patch(program, f"/memories/{note}/", content=f"The kettle has colour {number}-{turn}.")

    at_once([partial(change, number) for number in range(CLIENTS)])
    versions = MemoryRevision.objects.for_user(alice).order_by("version")
    assert list(versions.values_list("version", flat=True)) == list(range(1, CLIENTS * ROUNDS + 1))
    newest = Memory.objects.for_user(alice).get().content
    assert newest.startswith("The kettle has colour")
    assert Passage.objects.filter(user=alice, text=newest).exists()


def test_a_note_is_deleted_once_and_not_changed_afterwards(program: Client, alice: User) -> None:
    note = post(program, "/memories/", content="The kettle is blue.")["id"]

    def delete() -> int:
        return program.delete(f"{API}/memories/{note}/").status_code

    def change() -> int:
        body = {"content": "The kettle is green."}
        return program.patch(
            f"{API}/memories/{note}/", body, content_type="application/json"
        ).status_code

    gone = at_once([delete, change, delete, change])
    assert Counter([gone[0], gone[2]]) == {204: 1, 404: 1}
    assert {gone[1], gone[3]} <= {200, 404}
    assert not Passage.objects.filter(user=alice).exists()


def test_a_link_that_is_made_at_once_is_one(program: Client, alice: User) -> None:
    notes = [post(program, "/memories/", content=f"Station {name} is open.")["id"] for name in "AB"]

    def link(number: int) -> int:
        source, target = notes if number % 2 else notes[::-1]
        body = {"target": target, "relation": "related"}
        path = f"{API}/memories/{source}/links/"
        return program.post(path, body, content_type="application/json").status_code

    assert set(at_once([partial(link, number) for number in range(CLIENTS)])) <= {200, 201}
    edges = MemoryEdge.objects.for_user(alice).values_list("source_id", "target_id", "relation")
    assert len(edges) == len(set(edges)) <= 2


def test_lines_that_several_put_into_a_file_are_all_in_it(program: Client, alice: User) -> None:
    command = partial(post, program, "/memory-files/")
    command(command="create", path="/memories/list.txt", file_text="end\n")

    def insert(number: int) -> None:
        for turn in range(ROUNDS):
            command(
                command="insert",
                path="/memories/list.txt",
                insert_line=0,
                insert_text=f"line {number}-{turn}\n",
            )

    at_once([partial(insert, number) for number in range(CLIENTS)])
    revisions = list(MemoryFileRevision.objects.for_user(alice).order_by("version"))
    lines = set(MemoryFile.objects.for_user(alice).get().content.split("\n"))
    assert lines == {"end", "", *(f"line {n}-{t}" for n in range(CLIENTS) for t in range(ROUNDS))}
    assert [row.version for row in revisions] == list(range(1, CLIENTS * ROUNDS + 1))


def test_what_is_taken_in_twice_at_once_is_there_once(program: Client, alice: User) -> None:
    messages = [
        {"role": "user", "content": f"I ride bicycle number {number}.", "external_id": f"m{number}"}
        for number in range(6)
    ]

    def ingest(_: int) -> None:
        post(program, "/ingest/", session="s", channel="club", messages=messages)

    at_once([partial(ingest, number) for number in range(CLIENTS)])
    assert Conversation.objects.for_user(alice).count() == 1
    positions = list(Message.objects.for_user(alice).values_list("position", flat=True))
    assert len(positions) == len(set(positions)) == len(messages)
    assert CaptureWindow.objects.for_user(alice).count() == 1


def test_messages_to_one_conversation_queue_up_each_in_a_place_of_its_own(
    program: Client, alice: User
) -> None:
    place = post(program, "/conversations/")["id"]

    def send(number: int) -> None:
        with writing_for(alice.pk):
            message_send(
                user_id=alice.pk, text=f"Say {number}.", conversation=place, client_id=str(uuid4())
            )

    at_once([partial(send, number) for number in range(CLIENTS)])
    rows = Turn.objects.for_user(alice).values_list("position", flat=True)
    assert len(set(rows)) == CLIENTS
    assert Conversation.objects.for_user(alice).get().last_position == max(rows)


def test_a_build_that_is_asked_for_at_once_is_joined(program: Client, alice: User) -> None:
    def ask(_: int) -> None:
        post(program, "/builds/", name="dice_roller", description="Rolls dice.")

    at_once([partial(ask, number) for number in range(CLIENTS)])
    assert Build.objects.for_user(alice).count() == 1


def test_versions_of_a_capability_are_numbered_without_a_gap(program: Client, alice: User) -> None:
    def add(number: int) -> int:
        body = {
            "name": "greeter",
            "description": f"Greets, {number}.",
            "input_schema": {"type": "object", "properties": {}},
            "files": {"main.py": f"def run(args):\n    return 'hello {number}'\n"},
        }
        return program.post(f"{API}/capabilities/", body, content_type="application/json").status_code

    given = Counter(at_once([partial(add, number) for number in range(CLIENTS)]))
    assert given.keys() <= {201, 409}
    numbers = CapabilityVersion.objects.for_user(alice).values_list("number", flat=True)
    assert sorted(numbers) == list(range(1, given[201] + 1))


def test_there_are_never_more_tokens_than_a_user_may_have(alice: User) -> None:
    room = 2
    with writing_for(alice.pk):
        for _ in range(TOKENS_PER_USER - room):
            token_create(user=alice, name="test", scopes=["read"])

    def make(_: int) -> bool:
        try:
            with writing_for(alice.pk):
                token_create(user=alice, name="one more", scopes=["read"])
        except Conflict:
            return False
        return True

    assert Counter(at_once([partial(make, number) for number in range(CLIENTS)])) == {
        True: room,
        False: CLIENTS - room,
    }
    assert APIToken.objects.for_user(alice).count() == TOKENS_PER_USER


def test_preferences_that_are_changed_at_once_keep_each_others_fields(alice: User) -> None:
    changes: list[dict[str, Any]] = [
        {"display_name": "Alice"},
        {"language": "de"},
        {"time_zone": "Europe/Berlin"},
        {"capture": False},
    ]

    def change(values: dict[str, Any]) -> None:
        with writing_for(alice.pk):
            preferences_update(user_id=alice.pk, **values)

    at_once([partial(change, values) for values in changes])
    row = Preferences.objects.get(user=alice)
    assert {name: getattr(row, name) for values in changes for name in values} == {
        name: value for values in changes for name, value in values.items()
    }


def test_imports_beyond_the_limit_are_refused_also_at_once(program: Client, alice: User) -> None:
    def bring(number: int) -> int:
        body = {"text": f"- Swifts nest in house {number}.", "format": "text"}
        return program.post(f"{API}/import/", body, content_type="application/json").status_code

    given = Counter(at_once([partial(bring, number) for number in range(8)]))
    assert given.keys() <= {202, 409}
    assert Import.objects.for_user(alice).count() == given[202] <= 5
