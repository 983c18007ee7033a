"""Bob asks for any address, with his session or his token: nothing of alice's shows, and nothing of hers changes."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.test import Client
from django.test.client import MULTIPART_CONTENT

from apps.accounts.models import User
from apps.accounts.selectors import tokens_kept
from tests.conftest import make_user
from tests.site import belongings
from tests.site.belongings import (
    FILE,
    HOOK_SESSION,
    MARK,
    SECRET,
    TOOL,
    Belongings,
    make_belongings,
    rows_of,
)
from tests.site.routes import Route, all_routes, groups

pytestmark = pytest.mark.django_db(transaction=True)

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]

PUBLIC = {
    ".well-known/oauth-protected-resource": "says only where /mcp is and what tokens it takes",
    ".well-known/oauth-protected-resource/mcp": "the same",
    "favicon.ico": "leads to the icon, a static file",
    "healthz": "says only that the process answers",
    "manifest.webmanifest": "the name and icons of Izzy",
    "service-worker.js": "a script, the same for everybody",
    "offline/": "a page that is the same for everybody",
    "readyz": "says only which parts work",
    "setup/": "the first account; afterwards it leads to sign-in",
    "sign-in/": "the way in",
    "sign-out/": "the way out; without a session it does nothing",
}
"""Addresses that answer without sign-in, and why they may."""


def bodies(route: Route, hers: Belongings) -> list[dict[str, Any]]:
    """Bob's requests: every place where an address takes an id of somebody's row, filled with one of alice's."""
    note, conversation = str(hers.note), str(hers.conversation)
    question = "What about the shellfish allergy and chess on Sundays?"
    known: dict[str, list[dict[str, Any]]] = {
        "api/v1/search/": [
            {"query": question, "top_k": 50},
            {"query": question, "conversation": conversation},
            {"query": question, "sources": ["memory", "conversation"], "as_of": "2031-01-01"},
        ],
        "api/v1/context/": [
            {"query": question, "budget_tokens": 2000},
            {"query": question, "conversation": conversation},
            {"messages": [{"role": "user", "content": question}]},
        ],
        "api/v1/ingest/": [
            {
                "session": "s1",
                "channel": "mail",
                "messages": [{"role": "user", "content": "Hi", "external_id": "m1"}],
            }
        ],
        "api/v1/hooks/<str:client>/": [
            {"hook_event_name": "UserPromptSubmit", "session_id": HOOK_SESSION, "prompt": question},
            {"hook_event_name": "SessionStart", "session_id": HOOK_SESSION, "source": "resume"},
            {"hook_event_name": "Stop", "session_id": HOOK_SESSION, "last_assistant_message": "Hi"},
            {"hook_event_name": "SessionEnd", "session_id": HOOK_SESSION},
        ],
        "api/v1/chat/": [
            {"message": "Hello", "conversation": conversation, "stream": False},
            {"message": "Hello", "attachments": [str(hers.attachment)], "stream": False},
        ],
        "api/v1/conversations/<str:conversation_id>/answer/": [
            {"id": str(hers.tool_call), "text": "yes"}
        ],
        "api/v1/conversations/<str:conversation_id>/approve/": [
            {"id": str(hers.tool_call), "decision": "allow"}
        ],
        "api/v1/builds/": [
            {"capability": str(hers.capability), "feedback": "bob was here"},
            {"capability": TOOL, "execution": str(hers.execution)},
        ],
        "api/v1/conversations/<str:conversation_id>/": [
            {"title": "bob was here", "folder": str(hers.folder)}
        ],
        "c/<str:conversation_id>/move/": [{"folder": str(hers.folder)}],
        "conversations/bulk/": [
            {"do": what, "conversations": conversation, "folder": str(hers.folder)}
            for what in ("move", "archive", "restore")
        ],
        "api/v1/builds/<str:build_id>/answer/": [
            {"id": str(hers.question), "decision": "allow"},
            {"text": "bob was here"},
        ],
        "builds/new/": [
            {"capability": TOOL, "feedback": "bob was here"},
            {"capability": str(hers.capability), "execution": str(hers.execution)},
        ],
        "api/v1/memory-files/": [
            {"command": "view", "path": FILE},
            {"command": "view", "path": "/memories"},
            {"command": "str_replace", "path": FILE, "old_str": "Prawns", "new_str": "bob was here"},
            {"command": "delete", "path": FILE},
            {"command": "rename", "old_path": FILE, "new_path": "/memories/bob.txt"},
        ],
        "api/v1/memories/<str:memory_id>/purge/": [{}, {"redact": [str(hers.message)], "also": [note]}],
        "api/v1/memories/merge/": [{"notes": [note, str(hers.waiting_note)], "content": "bob was here"}],
        "api/v1/memories/review/": [
            {"decision": "accept", "notes": [str(hers.waiting_note)]},
            {"decision": "reject", "notes": [str(hers.waiting_note)]},
        ],
        "memory/ticked/": [
            {"do": what, "notes": note, "tag": "bobs"}
            for what in ("tag", "archive", "delete", "restore")
        ],
        "memory/<str:memory_id>/act/": [
            {"do": what, "version": "1"} for what in ("archive", "delete", "restore", "undo")
        ],
        "memory/<str:memory_id>/valid/": [{"valid_to": "2020-01-01T10:00"}],
        "memory/<str:memory_id>/save/": [{f"{note}-content": "bob was here"}],
        "memory/take-back/": [
            {"step": f"undo {note} 0 1"},
            {"step": f"delete {hers.deleted_note} 1 1"},
            {"step": f"contradicts {note} {hers.waiting_note} 0"},
        ],
        "calls/<str:call_id>/": [{"decision": what} for what in ("once", "always", "no")],
        "api/v1/memories/<str:memory_id>/merge/": [{"into": note}],
        "api/v1/memories/contradictions/<str:edge_id>/": [{"keep": note}, {"keep": None}],
        "api/v1/memories/<str:memory_id>/links/": [
            {"target": note, "target_id": note, "relation": "related"}
        ],
    }
    default = {
        "content": "bob was here",
        "title": "bob was here",
        "text": "bob",
        "version": 1,
        "name": "bob",
        "username": "bob2",
    }
    return known.get(route.path, [default])


def parameters(hers: Belongings) -> dict[str, list[str]]:
    """The ids that bob puts into an address, by the name of its parameter."""
    return {
        "memory_id": [
            str(hers.note),
            f"note-{hers.note}",
            str(hers.deleted_note),
            str(hers.waiting_note),
        ],
        "edge_id": [str(hers.edge)],
        "import_id": [str(hers.imported)],
        "attachment_id": [str(hers.attachment)],
        "conversation_id": [str(hers.conversation)],
        "message_id": [str(hers.message)],
        "folder_id": [str(hers.folder)],
        "pk": [str(hers.token), str(hers.owner.pk)],
        "name": ["model"],
        "receipt_id": [str(hers.receipt)],
        "file_id": [str(hers.file), str(hers.deleted_file)],
        "capability": [TOOL, str(hers.capability)],
        "execution_id": [str(hers.execution)],
        "build_id": [str(hers.build)],
        "secret": [SECRET],
        "signed": [hers.signed_link],
        "grant_id": [str(hers.grant)],
        "call_id": [str(hers.waiting_call)],
        "client": ["claude-code"],
    }


def urls(route: Route, hers: Belongings) -> list[str]:
    values = parameters(hers)
    unknown = set(route.parameters) - set(values)
    assert not unknown, f"{route}: tell `parameters` what bob puts in for {unknown}"
    most = max((len(values[name]) for name in route.parameters), default=1)
    chosen = [
        {name: values[name][number % len(values[name])] for name in route.parameters}
        for number in range(most)
    ]
    return [route.url(each) for each in chosen]


def send(client: Client, method: str, url: str, body: dict[str, Any]) -> Any:
    if method == "GET":
        return client.get(url + "?q=shellfish&page_size=200")
    if url.startswith("/api/"):
        return client.generic(method, url, json.dumps(body), content_type="application/json")
    return client.generic(method, url, *form_of(body))


def form_of(body: dict[str, Any]) -> tuple[bytes, str]:
    from django.test.client import BOUNDARY, encode_multipart

    return encode_multipart(
        BOUNDARY, {key: str(value) for key, value in body.items()}
    ), MULTIPART_CONTENT


def content_of(response: Any) -> str:
    parts = b"".join(response.streaming_content) if response.streaming else response.content
    return str(parts.decode("utf-8", "replace"))


def still_in(client: Client, user: User) -> bool:
    """Whether no request has ended the session or token of the client."""
    if "HTTP_AUTHORIZATION" in client.defaults:
        return tokens_kept(user.pk).exists()
    request = HttpRequest()
    request.session = client.session
    return get_user(request).is_authenticated


@pytest.mark.parametrize("routes", groups(all_routes()))
def test_bob_sees_and_changes_nothing_of_alices(
    routes: list[Route], alice: User, sign_in: Callable[[User], Client], api: Callable[[User], Client]
) -> None:
    """A new bob for every address, since some let him end his account."""
    hers = make_belongings(alice)
    before = rows_of(alice)
    for number, route in enumerate(routes):
        bob = make_user(f"bob{number}")
        enter = api if route.path.startswith("api/") else sign_in
        client = enter(bob)
        for url, method, body in product(urls(route, hers), METHODS, bodies(route, hers)):
            if not still_in(client, bob):
                client = enter(bob)
            response = send(client, method, url, body)
            answer = content_of(response)
            about = f"{method} {url} {body} → {response.status_code} {answer[:500]}"
            assert response.status_code < 500, about
            assert MARK not in answer, about
            sent = url + json.dumps(body)
            assert not [value for value in hers.ids() if value in answer and value not in sent], about
            if route.parameters and route.parameters not in {("name",), ("client",)}:
                assert response.status_code in {400, 403, 404, 405, 415}, about
        assert rows_of(alice) == before, f"bob changed something of hers at {route}"


def crossings(his: Belongings, hers: Belongings) -> list[tuple[str, str, dict[str, Any]]]:
    """Addresses of bob's own things that take the id of a second thing, which is alice's."""
    note, edge, run = hers.note, hers.edge, hers.execution
    message, call = str(hers.message), {"id": str(hers.tool_call), "text": "yes", "decision": "allow"}
    memories, conversation = "/api/v1/memories/", f"/api/v1/conversations/{his.conversation}/"
    link = {"target": str(note), "target_id": str(note), "relation": "related"}
    replaces = {"message": "Hi", "conversation": str(his.conversation), "replaces": message}
    question = {"id": str(hers.question), "text": "yes"}
    return [
        ("POST", f"{memories}merge/", {"notes": [str(his.note), str(note)], "content": "x"}),
        ("POST", f"{memories}{his.waiting_note}/merge/", {"into": str(note)}),
        ("POST", f"{memories}{his.note}/links/", link),
        ("POST", f"{memories}{his.note}/links/", {"target": str(note), "relation": "related"}),
        ("DELETE", f"{memories}{his.note}/links/{edge}/", {}),
        ("POST", f"{memories}{his.note}/purge/", {"redact": [message]}),
        ("POST", f"{memories}{his.note}/purge/", {"also": [str(note)]}),
        ("POST", f"{memories}contradictions/{his.edge}/", {"keep": str(note)}),
        ("POST", f"/api/v1/memory-files/{his.file}/purge/", {"redact": [message]}),
        ("GET", f"{conversation}messages/?before={message}", {}),
        ("POST", f"{conversation}answer/", {"id": call["id"], "text": "yes"}),
        ("POST", f"{conversation}approve/", {"id": call["id"], "decision": "allow"}),
        ("POST", "/api/v1/chat/", replaces),
        ("POST", f"/api/v1/builds/{his.build}/answer/", question),
        ("GET", f"/capabilities/{TOOL}/runs/{run}/", {}),
        ("GET", f"/builds/new/?capability={TOOL}&execution={run}", {}),
        ("GET", f"/memory/graph/?note={note}", {}),
        ("GET", f"/memory/merge/?notes={his.note}&notes={note}", {}),
        ("GET", f"/memory/files/?file={hers.file}", {}),
        ("GET", f"/settings/data/export/?note={note}", {}),
        ("GET", f"/settings/data/export/?note={note}&format=markdown", {}),
        ("GET", f"/api/v1/export/?note={note}", {}),
        ("POST", f"/memory/graph/{his.note}/link/", link),
        ("POST", f"/memory/graph/{his.note}/unlink/{edge}/", {}),
        ("POST", f"/memory/{his.waiting_note}/merge/", {"into": str(note), "content": "x"}),
        ("POST", f"/memory/contradictions/{his.edge}/", {"keep": str(note)}),
        ("POST", f"/memory/{his.note}/purge/", {"redact": message, "also": str(note)}),
        ("POST", f"/memory/files/{his.file}/purge/", {"redact": message}),
        ("GET", f"/c/{his.conversation}/link/{hers.signed_link}/", {}),
    ]


def test_her_ids_beside_his_own_lead_nowhere(
    alice: User,
    bob: User,
    sign_in: Callable[[User], Client],
    api: Callable[[User], Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that a check of the first id alone would let through."""
    hers = make_belongings(alice)
    before = rows_of(alice)
    monkeypatch.setattr(belongings, "MARK", "bobsword")
    his = make_belongings(bob)
    for method, url, body in crossings(his, hers):
        if url.startswith("/api/"):
            response = api(bob).generic(method, url, json.dumps(body), content_type="application/json")
        else:
            response = sign_in(bob).generic(method, url, *form_of(body))
        answer = content_of(response)
        about = f"{method} {url} {body} → {response.status_code} {answer[:300]}"
        assert response.status_code < 500, about
        assert MARK not in answer, about
        if url.startswith("/api/") and "purge" not in url:
            assert response.status_code in {400, 404, 409}, about
        assert rows_of(alice) == before, about
    refers = {form for value in hers.ids() for form in (value, value.replace("-", ""))} - {TOOL, SECRET}
    cells = [cell for rows in rows_of(bob).values() for row in rows for cell in row.values()]
    assert not refers & {cell for cell in cells if isinstance(cell, str)}


@pytest.mark.parametrize("routes", groups(all_routes()))
def test_nobody_gets_in_without_signing_in(routes: list[Route], alice: User) -> None:
    hers = make_belongings(alice)
    before = rows_of(alice)
    places = [(route, url) for route in routes for url in urls(route, hers)]
    for (route, url), method in product(places, METHODS):
        response = send(Client(), method, url, bodies(route, hers)[0])
        about = f"{method} {url} → {response.status_code}"
        assert MARK not in content_of(response), about
        if route.path in PUBLIC:
            continue
        if url.startswith(("/api/", "/metrics")):  # what programs ask
            assert response.status_code in {401, 405}, about
        else:
            assert response.status_code in {302, 405}, about
            assert response.status_code == 405 or response["Location"].startswith("/sign-in/"), about
    assert rows_of(alice) == before


def test_alice_herself_finds_what_is_hers(alice: User, api: Callable[[User], Client]) -> None:
    """The other tests would pass if nothing ever showed anything."""
    hers = make_belongings(alice)
    client = api(alice)
    for url in (
        "/api/v1/memories/",
        f"/api/v1/memories/note-{hers.note}/",
        f"/api/v1/memories/{hers.note}/history/",
        "/api/v1/conversations/",
        f"/api/v1/conversations/{hers.conversation}/messages/",
    ):
        assert MARK in content_of(client.get(url)), url
    found = client.post(
        "/api/v1/search/", {"query": "shellfish allergy"}, content_type="application/json"
    )
    assert MARK in content_of(found)
    view = {"command": "view", "path": FILE}
    shown = client.post("/api/v1/memory-files/", view, content_type="application/json")
    assert MARK in content_of(shown)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_address_exists(name: str) -> None:
    assert name in {route.path for route in all_routes()}
