"""Capabilities over REST."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.models import User
from apps.capabilities.catalog.lifecycle import (
    capability_approve,
    capability_disable,
    capability_enable,
    capability_fail,
)
from apps.capabilities.catalog.versions import capability_begin, version_add
from apps.capabilities.models import Capability, Execution
from tests.capabilities.making import GREETING, NAME_SCHEMA, draft, make

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/api/v1/capabilities/"
BODY: dict[str, Any] = {
    "name": "greeter",
    "description": "Greet somebody by name.",
    "input_schema": NAME_SCHEMA,
    "files": {"main.py": GREETING},
}


@pytest.fixture
def program(alice: User, api: Callable[..., Client]) -> Client:
    return api(alice)


def post(client: Client, url: str, body: Any = None) -> Any:
    return client.post(url, body if body is not None else {}, content_type="application/json")


def test_made_read_listed_and_deleted(program: Client) -> None:
    answer = post(
        program,
        URL,
        BODY | {"tags": ["Social"], "examples": [{"input": {"name": "Ada"}, "expect": "Ada"}]},
    )
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["status"], made["version"], made["approved"]) == (
        "greeter",
        "active",
        1,
        True,
    )
    assert made["files"]["main.py"] == GREETING
    assert made["files"]["RUN.md"].startswith("# greeter")
    assert made["tags"] == ["social"]
    assert program.get(f"{URL}greeter/").json() == made
    assert program.get(f"{URL}{made['id']}/").json()["name"] == "greeter"
    listed = program.get(URL).json()
    assert set(listed) == {"count", "next", "previous", "results"}
    assert [each["name"] for each in listed["results"]] == ["greeter"]
    assert program.get(f"{URL}?q=somebody").json()["count"] == 1
    assert program.get(f"{URL}?q=weather").json()["count"] == 0
    assert program.get(f"{URL}?status=disabled").json()["count"] == 0
    assert program.get(f"{URL}?status=nonsense").status_code == 400
    assert program.delete(f"{URL}greeter/").status_code == 204
    assert program.get(f"{URL}greeter/").status_code == 404


def test_what_asks_for_hosts_waits_for_approval(program: Client) -> None:
    asking = BODY | {"permissions": {"hosts": ["api.example.org"], "secrets": ["WEATHER_KEY"]}}
    made = post(program, URL, asking).json()
    assert (made["needs_approval"], made["approved"]) == (True, False)
    assert made["permissions"] == {"hosts": ["api.example.org"], "secrets": ["WEATHER_KEY"]}
    assert post(program, f"{URL}greeter/approve/", {"version": 2}).status_code == 409
    approved = post(program, f"{URL}greeter/approve/", {"version": 1}).json()
    assert approved["approved"] is True
    changed = program.patch(
        f"{URL}greeter/",
        {"permissions": {"hosts": ["other.example.org"]}},
        content_type="application/json",
    )
    assert (changed.json()["version"], changed.json()["approved"]) == (2, False)
    back = post(program, f"{URL}greeter/rollback/").json()
    assert (back["version"], back["approved"]) == (1, True)


def test_a_change_is_a_new_version(program: Client) -> None:
    post(program, URL, BODY)
    changed = program.patch(
        f"{URL}greeter/", {"description": "Greets."}, content_type="application/json"
    ).json()
    assert (changed["version"], changed["description"]) == (2, "Greets.")
    assert changed["files"]["main.py"] == GREETING
    assert "Greets." in changed["files"]["RUN.md"]
    assert [version["version"] for version in changed["versions"]] == [2, 1]
    assert program.patch(f"{URL}greeter/", {}, content_type="application/json").status_code == 400
    assert (
        program.patch(f"{URL}greeter/", {"name": "other"}, content_type="application/json").status_code
        == 400
    )


def test_switched_off_and_on(program: Client) -> None:
    post(program, URL, BODY)
    assert post(program, f"{URL}greeter/disable/").json()["status"] == "disabled"
    refused = post(program, f"{URL}greeter/run/", {"input": {"name": "Ada"}})
    assert (refused.status_code, refused.json()["code"]) == (409, "disabled")
    assert post(program, f"{URL}greeter/enable/").json()["status"] == "active"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Bad Name"}, {"name": None}, {"description": None}, {"input_schema": {"type": "string"}}, {"input_schema": None},
        {"files": {}}, {"files": None}, {"files": {"main.py": "x = 1"}}, {"files": {"main.py": 7}},
        {"files": {"main.py": GREETING, "../x": "y"}}, {"files": {"main.py": GREETING, "manifest.json": "{}"}},
        {"permissions": []}, {"permissions": {"hosts": "x.org"}}, {"permissions": {"ports": []}}, {"examples": {}}, {"other": 1},
    ],
    ids=str,
)  # fmt: skip
def test_bad_bodies_are_400(program: Client, change: dict[str, Any]) -> None:
    answer = post(program, URL, BODY | change)
    assert answer.status_code == 400, answer.content
    assert set(answer.json()) == {"code", "message", "extra"}
    assert not Capability.everything.exists()


def test_a_name_that_is_taken_is_409_and_too_much_text_413(program: Client) -> None:
    assert post(program, URL, BODY).status_code == 201
    assert post(program, URL, BODY).status_code == 409
    assert (
        post(program, URL, BODY | {"name": "big", "files": {"main.py": "#" * 300_000}}).status_code
        == 413
    )


def refusal(program: Client) -> tuple[int, str]:
    answer = post(program, f"{URL}greeter/run/", {"input": {"name": "Ada"}})
    return answer.status_code, answer.json()["code"]


def test_each_refusal_has_its_own_code_and_message(alice: User, program: Client) -> None:
    messages = set()

    def refused(code: str) -> None:
        answer = post(program, f"{URL}greeter/run/", {"input": {"name": "Ada"}})
        assert (answer.status_code, answer.json()["code"]) == (409, code)
        messages.add(answer.json()["message"])

    begun = capability_begin(
        user_id=alice.pk, name="greeter", description="Greets.", input_schema=NAME_SCHEMA
    )
    refused("building")
    capability_fail(user_id=alice.pk, capability_id=begun.pk, reason="The tests did not pass.")
    refused("failed")
    version_add(
        user_id=alice.pk,
        capability_id=begun.pk,
        draft=draft(hosts=["a.example.org"], secrets=["GREET_KEY"]),
    )
    refused("not_approved")
    capability_approve(user_id=alice.pk, capability_id=begun.pk)
    refused("missing_secret")
    capability_disable(user_id=alice.pk, capability_id=begun.pk)
    refused("disabled")
    capability_enable(user_id=alice.pk, capability_id=begun.pk)
    main = settings.IZZY_DATA_DIR / Capability.objects.for_user(alice).get().path / "main.py"
    main.write_text(main.read_text() + "# changed\n")
    refused("tampered")
    assert program.get(f"{URL}greeter/").json()["tampered"] is True
    assert len(messages) == 6
    assert not Execution.everything.exists()


@pytest.mark.parametrize("file", ["main.py", "requirements.txt", "manifest.json", "RUN.md"])
@pytest.mark.parametrize("harm", ["changed", "removed", "a folder", "huge"])
def test_any_file_that_is_not_as_it_was_saved_is_not_run(
    alice: User, program: Client, file: str, harm: str
) -> None:
    make(alice)
    path = settings.IZZY_DATA_DIR / Capability.objects.for_user(alice).get().path / file
    if harm == "changed":
        path.write_bytes(path.read_bytes() + b" ")
    elif harm == "huge":
        path.write_bytes(b" " * 2_000_000)
    else:
        path.unlink()
        if harm == "a folder":
            path.mkdir()
    assert refusal(program) == (409, "tampered")
    assert program.get(f"{URL}greeter/").status_code == 200


@pytest.mark.parametrize("given", [{}, {"name": 7}, {"name": "x", "more": 1}, [], "text", None, 7])
def test_input_that_does_not_fit_is_400(alice: User, program: Client, given: Any) -> None:
    make(alice)
    answer = post(program, f"{URL}greeter/run/", {"input": given})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_input")
    assert not Execution.everything.exists()


def test_without_a_sandbox_a_run_is_503_and_says_what_to_do(
    alice: User, program: Client, settings: Any
) -> None:
    settings.IZZY_SANDBOX = "none"
    make(alice)
    answer = post(program, f"{URL}greeter/run/", {"input": {"name": "Ada"}})
    assert answer.status_code == 503
    assert answer.json()["code"] == "sandbox_unavailable"
    assert "IZZY_SANDBOX" in answer.json()["message"] + str(answer.json()["extra"])
    assert not Execution.everything.exists()


def test_an_archive_goes_out_and_comes_in_disabled(
    alice: User, bob: User, program: Client, api: Callable[..., Client]
) -> None:
    make(
        alice, requirements="requests", hosts=["api.example.org"], examples=[{"input": {"name": "Ada"}}]
    )
    archive = program.get(f"{URL}greeter/zip/")
    assert archive["content-type"] == "application/zip"
    other = api(bob)
    answer = other.post(URL, archive.content, content_type="application/zip")
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["status"], made["approved"], made["permissions"]["hosts"]) == (
        "disabled",
        False,
        ["api.example.org"],
    )
    assert made["files"]["main.py"] == GREETING
    assert made["examples"] == [{"input": {"name": "Ada"}}]
    enabled = post(other, f"{URL}greeter/enable/")
    assert (enabled.status_code, enabled.json()["code"]) == (409, "not_approved")
    assert post(other, f"{URL}greeter/approve/").json()["status"] == "active"


def archive_with(
    *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, 0o120777 << 16
    return entry


MANIFEST = b'{"name": "greeter", "description": "Greets.", "input_schema": {"type": "object"}}'
MAIN = GREETING.encode()
GOOD = (("g/main.py", MAIN), ("g/manifest.json", MANIFEST))
BAD_ARCHIVES: dict[str, bytes] = {
    "no zip": b"PK nonsense",
    "nothing": b"",
    "an empty one": archive_with(),
    "cut off": archive_with(*GOOD)[:-30],
    "no manifest": archive_with(("main.py", MAIN)),
    "two capabilities": archive_with(*GOOD, ("h/main.py", MAIN)),
    "a path upwards": archive_with(*GOOD, ("../../etc/passwd", b"x")),
    "an absolute path": archive_with(*GOOD, ("/etc/passwd", b"x")),
    "a drive": archive_with(*GOOD, ("C:evil", b"x")),
    "backslashes": archive_with(*GOOD, ("..\\evil", b"x")),
    "a link": archive_with(*GOOD, (link("g/RUN.md"), b"/etc/passwd")),
    "a file without a name": archive_with(*GOOD, ("QQQ", b"x")).replace(b"QQQ", b"\0QQ"),
    "binary": archive_with(("main.py", b"\xff\xfe\x00"), ("manifest.json", MANIFEST)),
    "a manifest that is no JSON": archive_with(("main.py", MAIN), ("manifest.json", b"{")),
    "a manifest that is a list": archive_with(("main.py", MAIN), ("manifest.json", b"[]")),
    "a deep manifest": archive_with(("main.py", MAIN), ("manifest.json", b"[" * 100_000)),
    "a bad schema": archive_with(
        ("main.py", MAIN), ("manifest.json", MANIFEST.replace(b'"object"', b'"array"'))
    ),
    "a manifest with a number that is none": archive_with(
        ("main.py", MAIN),
        ("manifest.json", MANIFEST[:-1] + b', "examples": [{"input": {"name": NaN}}]}'),
    ),
    "a manifest with a number beyond all": archive_with(
        ("main.py", MAIN),
        ("manifest.json", MANIFEST.replace(b'"object"', b'"object", "maxProperties": 1e999')),
    ),
    "a manifest with half a character": archive_with(
        ("main.py", MAIN),
        ("manifest.json", MANIFEST[:-1] + b', "examples": [{"input": {"name": "\\ud800"}}]}'),
    ),
    "an unusual method": archive_with(*GOOD, method=zipfile.ZIP_LZMA),
    "many files": archive_with(*GOOD, *((f"g/x{n}", b"") for n in range(60))),
}
BIG_ARCHIVES = {
    "a bomb": archive_with(("main.py", b"#" * 100_000_000), ("manifest.json", MANIFEST)),
    "large": archive_with(*GOOD, ("g/x", bytes(range(256)) * 1000)) + b"\0" * 2_100_000,
}  # fmt: skip


@pytest.mark.parametrize("name", [*BAD_ARCHIVES, *BIG_ARCHIVES])
def test_archives_that_are_not_what_they_should_be(program: Client, name: str) -> None:
    data = BAD_ARCHIVES.get(name) if name in BAD_ARCHIVES else BIG_ARCHIVES[name]
    answer = program.post(URL, data, content_type="application/zip")
    assert answer.status_code == (400 if name in BAD_ARCHIVES else 413), (name, answer.content)
    assert set(answer.json()) == {"code", "message", "extra"}
    assert not Capability.everything.exists()


def test_others_reach_nothing_of_it(alice: User, bob: User, api: Callable[..., Client]) -> None:
    made = make(alice)
    other = api(bob)
    for name in ("greeter", str(made.pk)):
        assert other.get(f"{URL}{name}/").status_code == 404
        for action in ("run", "enable", "disable", "approve", "rollback"):
            assert post(other, f"{URL}{name}/{action}/").status_code == 404
        assert other.delete(f"{URL}{name}/").status_code == 404
    assert other.get(URL).json()["count"] == 0
    assert Capability.everything.count() == 1


def test_a_token_that_may_only_read_runs_nothing(alice: User, api: Callable[..., Client]) -> None:
    make(alice)
    reader = api(alice, "read")
    assert reader.get(f"{URL}greeter/").status_code == 200
    assert post(reader, f"{URL}greeter/run/", {"input": {"name": "Ada"}}).status_code == 403
    assert post(reader, f"{URL}greeter/approve/").status_code == 403


def test_capabilities_are_found_by_words_and_tags_in_whatever_case_beyond_ascii(
    alice: User, program: Any
) -> None:
    make(alice, tags=["größe", 'a "b"'], description="Rechnet Zölle aus.")
    make(alice, "other", tags=["x", "y"])

    def found(**query: str) -> list[str]:
        return [row["name"] for row in program.get(URL, query).json()["results"]]

    for query in (
        {"tag": "Größe"},
        {"tag": 'a "b"'},
        {"q": "GRÖSSE"},
        {"q": "zölle GRÖ"},
        {"q": "ZÖLLE"},
    ):
        assert found(**query) == ["greeter"], query
    for query in ({"tag": "gr"}, {"q": '","'}, {"q": "u00f6"}, {"q": '", "'}):
        assert found(**query) == [], query
