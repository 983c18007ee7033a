"""REST of the file memory: the list, the commands, the scopes, and every bad input as a 4xx in the one shape."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.memory.files.selectors import file_history
from apps.memory.models import MemoryFile, Origin

pytestmark = pytest.mark.django_db

URL = "/api/v1/memory-files/"
Api = Callable[..., Client]


def post(client: Client, **fields: Any) -> Any:
    return client.post(URL, fields, content_type="application/json")


def result(client: Client, **fields: Any) -> str:
    answer = post(client, **fields)
    assert answer.status_code == 200, answer.content
    assert set(answer.json()) == {"result"}
    return str(answer.json()["result"])


def test_commands_answer_with_their_text(alice: User, api: Api) -> None:
    client = api(alice)
    said = result(client, command="create", path="/memories/a/b.txt", file_text="  one\ntwo\n")
    assert said == "File created successfully at: /memories/a/b.txt"
    assert result(client, command="view", path="/memories").endswith("\n10B\t/memories/a/b.txt")
    assert "     1\t  one\n     2\ttwo\n" in result(client, command="view", path="/memories/a/b.txt")
    result(client, command="str_replace", path="/memories/a/b.txt", old_str="two", new_str="2")
    result(client, command="insert", path="/memories/a/b.txt", insert_line=0, insert_text="0")
    result(client, command="rename", old_path="/memories/a", new_path="/memories/c")
    assert MemoryFile.objects.for_user(alice).get().content == "0\n  one\n2\n"
    said = result(client, command="delete", path="/memories/c/b.txt")
    assert said == "Successfully deleted /memories/c/b.txt"


def test_a_long_file_is_shown_whole(alice: User, api: Api) -> None:
    client = api(alice)
    result(client, command="create", path="/memories/a.txt", file_text="x" * 90_000)
    assert "x" * 90_000 in result(client, command="view", path="/memories/a.txt")


def test_the_list_shows_what_there_is(alice: User, bob: User, api: Api) -> None:
    client = api(alice)
    for path in ("/memories/b.txt", "/memories/a/c.txt", "/memories/a/gone.txt"):
        result(client, command="create", path=path, file_text="é")
    result(client, command="delete", path="/memories/a/gone.txt")
    page = client.get(URL).json()
    assert (page["count"], page["next"], page["previous"]) == (2, None, None)
    assert [row["path"] for row in page["results"]] == ["/memories/a/c.txt", "/memories/b.txt"]
    row = page["results"][0]
    assert set(row) == {
        *("id", "path", "size", "origin", "trust", "created_at", "updated_at", "deleted_at"),
    }
    assert (row["size"], row["origin"]) == (2, "api")
    assert [row["path"] for row in client.get(URL, {"path": "/memories/a"}).json()["results"]] == [
        "/memories/a/c.txt"
    ]
    assert client.get(URL, {"page_size": 1}).json()["next"]
    assert api(bob).get(URL).json()["count"] == 0


def test_who_changed_it_is_kept(alice: User, api: Api, sign_in: Callable[[User], Client]) -> None:
    result(api(alice), command="create", path="/memories/a.txt", file_text="one")
    result(sign_in(alice), command="create", path="/memories/a.txt", file_text="two")
    file = MemoryFile.objects.for_user(alice).get()
    assert [version.actor for version in file_history(alice.pk, file.pk)] == [Origin.USER, Origin.API]


def test_files_are_found_by_search_and_context(alice: User, api: Api) -> None:
    client = api(alice)
    text = "The wedding is on 12 June in Graz."
    result(client, command="create", path="/memories/wedding.md", file_text=text)
    options: Any = {"content_type": "application/json"}
    hits = client.post(
        "/api/v1/search/", {"query": "When is the wedding?", "sources": ["file"]}, **options
    )
    hit = hits.json()["results"][0]
    assert (hit["source"], hit["external_id"]) == ("file", "/memories/wedding.md")
    assert text in hit["text"]
    assert hit["id"] == client.get(URL).json()["results"][0]["id"]
    context = client.post("/api/v1/context/", {"query": "wedding"}, **options).json()
    assert "Graz" in context["text"]
    assert [item["source"] for item in context["items"]] == ["file"]


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"command": "view", "path": "/memories/no"}, 404, "not_found"),
        ({"command": "delete", "path": "/memories/no"}, 404, "not_found"),
        ({"command": "rename", "old_path": "/memories/no", "new_path": "/memories/b"}, 404, "not_found"),
        ({"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/a.txt"}, 409, "exists"),
        ({"command": "str_replace", "path": "/memories/a.txt", "old_str": "zz"}, 409, "not_in_file"),
        ({"command": "str_replace", "path": "/memories/a.txt", "old_str": "o"}, 409, "not_unique"),
        ({"command": "create", "path": "/memories/a.txt/b", "file_text": "x"}, 409, "not_a_directory"),
        ({"command": "view", "path": "/etc/passwd"}, 400, "invalid_path"),
        ({"command": "view", "path": "/memories/%2e%2e/x"}, 400, "invalid_path"),
        ({"command": "view", "path": "/memories/\x00"}, 400, "invalid_text"),
        ({"command": "view", "path": "/memories/\ud800"}, 400, "invalid_text"),
        ({"command": "view", "path": "/memories/" + "a" * 9000}, 413, "too_large"),
        ({"command": "view", "path": 5}, 400, "wrong_type"),
        ({"command": "view", "path": "/memories/a.txt", "view_range": "1"}, 400, "wrong_type"),
        ({"command": "view", "path": "/memories/a.txt", "view_range": [9, 9]}, 400, "invalid_input"),
        ({"command": "create", "path": "/memories/b.txt"}, 400, "missing_field"),
        ({"command": "create", "path": "/memories/b.txt", "file_text": None}, 400, "missing_field"),
        ({"command": "create", "path": "/memories/b.txt", "file_text": "\ud800"}, 400, "invalid_text"),
        ({"command": "create", "path": "/memories/b.txt", "file_text": "\x00"}, 400, "invalid_text"),
        ({"command": "create", "path": "/memories/b.txt", "file_text": {"a": 1}}, 400, "wrong_type"),
        ({"command": "create", "path": "/memories/b.txt", "file_text": "x" * 100_001}, 413, "too_large"),
        ({"command": "insert", "path": "/memories/a.txt", "insert_line": "0", "insert_text": "x"}, 400, "wrong_type"),
        ({"command": "format", "path": "/memories"}, 400, "unknown_command"),
        ({"command": ["view"], "path": "/memories"}, 400, "invalid_input"),
        ({"path": "/memories"}, 400, "invalid_input"),
        ({}, 400, "invalid_input"),
        ({"command": "view", "path": "/memories", "user": "bob"}, 400, "unknown_field"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_a_clear_error(
    alice: User, api: Api, fields: dict[str, Any], status: int, code: str
) -> None:
    client = api(alice)
    result(client, command="create", path="/memories/a.txt", file_text="foo")
    answer = post(client, **fields)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == {"code", "message", "extra"}
    assert answer.json()["message"]
    assert [file.content for file in MemoryFile.objects.for_user(alice)] == ["foo"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'"view"', b"null", b"{", b"\xff\xfe", b'{"command": "view', b"[" * 50_000]
)
def test_a_body_that_is_no_command_is_a_400(alice: User, api: Api, body: bytes) -> None:
    answer = api(alice).post(URL, body, content_type="application/json")
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "message", "extra"}


def test_ten_megabytes_are_too_large(alice: User, api: Api) -> None:
    fields = {"command": "create", "path": "/memories/a.txt", "file_text": "x" * 10_000_000}
    answer = api(alice).post(URL, json.dumps(fields), content_type="application/json")
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/etc", "/memories/../x", "/memories/\x00", "x" * 2000])
def test_a_list_of_a_bad_directory_is_refused(alice: User, api: Api, path: str) -> None:
    assert api(alice).get(URL, {"path": path}).status_code in {400, 413}


def test_a_token_needs_the_scope(alice: User, api: Api, client: Client) -> None:
    reader = api(alice, "read")
    result(api(alice), command="create", path="/memories/a.txt", file_text="x")
    assert "a.txt" in result(reader, command="view", path="/memories")
    assert reader.get(URL).status_code == 200
    for fields in (
        {"command": "create", "path": "/memories/b.txt", "file_text": "x"},
        {"command": "str_replace", "path": "/memories/a.txt", "old_str": "x", "new_str": "y"},
        {"command": "insert", "path": "/memories/a.txt", "insert_line": 0, "insert_text": "y"},
        {"command": "delete", "path": "/memories/a.txt"},
        {"command": "remove", "path": "/memories/a.txt"},
        {"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/b.txt"},
    ):
        answer = post(reader, **fields)
        assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    assert [file.path for file in MemoryFile.objects.for_user(alice)] == ["/memories/a.txt"]
    assert client.get(URL).status_code == 401
    assert post(client, command="view", path="/memories").status_code == 401


def test_two_users_share_no_file(alice: User, bob: User, api: Api) -> None:
    result(api(alice), command="create", path="/memories/a.txt", file_text="hers")
    assert "a.txt" not in result(api(bob), command="view", path="/memories")
    answer = post(api(bob), command="delete", path="/memories/a.txt")
    assert answer.status_code == 404
    assert post(api(bob), command="view", path=f"/memories/{uuid7()}").status_code == 404
    assert MemoryFile.objects.for_user(alice).get().content == "hers"


def test_other_methods_are_refused(alice: User, api: Api) -> None:
    for method in ("put", "patch", "delete"):
        assert getattr(api(alice), method)(URL).status_code == 405
