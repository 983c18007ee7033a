"""Anything sent to any address gets an answer of 4xx in the one shape, nothing stored, and never a 500.

Addresses come from the URL resolver and fields from the OpenAPI description, so that a new one is tried as well."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from itertools import product, zip_longest
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client
from django.urls import resolve
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from rest_framework.views import APIView

from apps.accounts.models import User
from apps.accounts.services import token_create, token_revoke
from apps.search.index import cache as searched
from tests.site.belongings import Belongings, make_belongings, rows_of
from tests.site.routes import Route, all_routes, groups
from tests.site.test_two_users import parameters

pytestmark = pytest.mark.django_db

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ODD_METHODS = ("HEAD", "OPTIONS", "TRACE", "PROPFIND")
SHAPE = {"code", "message", "extra"}
UNKNOWN = "018f0000-0000-7000-8000-000000000000"
EMOJI = rb'"\ud83e\udd90"'
TALKING = {
    "chat/",
    "conversations/<str:conversation_id>/answer/",
    "conversations/<str:conversation_id>/retry/",
}
"""Under /api/v1/: where a text, or at the last an object, that is taken starts a turn. What turns do is tested elsewhere."""
REST = [route for route in all_routes() if route.path.startswith("api/v1/")]
PAGES = [route for route in all_routes() if not route.path.startswith("api/")]

MALFORMED: dict[str, bytes] = {
    "cut off": b"{",
    "not UTF-8": b"\xff\xfe{}",
    "Latin-1": b'{"content": "\xe4"}',
    "UTF-16": '{"content": "x"}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "NaN": b'{"content": NaN}',
    "infinity": b'{"content": -Infinity}',
    "overflowing number": b'{"content": 1e400}',
    "overflowing integer": b'{"content": ' + b"9" * 400 + b"}",
    "endless integer": b'{"content": ' + b"9" * 5000 + b"}",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "NUL": rb'{"content": "a\u0000b"}',
    "raw NUL": b'{"content": "a\x00b"}',
    "lone surrogate": rb'{"content": "\ud800", "query": "\udfff", "message": "\ud800"}',
    "lone surrogate as a name": rb'{"\ud800": 1}',
    "trailing garbage": b"{} {}",
}
"""Bodies that are no JSON, or JSON that cannot be stored: 400 at every address that reads a body."""

WRONG_TYPE: dict[str, bytes] = {
    "null": b"null",
    "number": b"17",
    "text": b'"text"',
    "true": b"true",
    "nested lists": b"[" * 900 + b"]" * 900,
    "as deep, escaped": b"[" * 600 + EMOJI + b"]" * 600,
    "objects in objects": b'{"content":' * 600 + EMOJI + b"}" * 600,
    "many names": json.dumps({f"name{number}": number for number in range(5000)}).encode(),
}
"""JSON, but nothing that anybody expects: no 500, and in the shape where it is refused."""

VALUES: list[Any] = [
    None, True, 7, -1, 0.5, 10**400, -(10**18), [], {}, [[]], [None], [{}], [{"content": {}}], {"a": {"b": []}}, "",
    "   ", "x" * 200_000, "2026-13-45T99:99:99Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "note-",
    UNKNOWN, "\u202e\uffff\x1b", ["\U0001f990" * 500], list(range(2000)),
]  # fmt: skip
"""Values put into every documented field, one at a time; where it fits it is taken."""

QUERIES = [
    "page=0", "page=-1", "page=x", "page=" + "9" * 40, "page=%D9%A1", "page=%C2%B2", "page=%00", "page=%FF",
    "page_size=-1", "page_size=x", "page_size=" + "9" * 40, "ordering=%00", "ordering=-", "ordering=user__password",
    "q=%FF", "q=%ED%A0%80", "q=%00", "q=" + "x" * 6000, "q=%22", "q=NEAR(", "q=a*", "q=AND+OR+NOT", "q=content:x",
    "q=((((", "q=%25_%27", "q=" + "+".join(f"w{number}" for number in range(1500)), "tag=%00", "tag=%22", "kind=%FF",
    "tag=" + "x" * 999, "status=nonsense", "category=%00", "source=%00", "tier=x", "depth=99", "depth=%D9%A1", "depth=x",
    "since=x", "since=%00", "until=0001-01-01T00:00:00Z", "until=9999-12-31T23:59:59-14:00", "before=x", "channel=%00",
    f"before={UNKNOWN}", "channel=" + "x" * 500, "active=%FF", "next=//evil.example", "=%FF=&&=", "%", "%zz",
]  # fmt: skip

PAGE_QUERIES = [
    "q=%ED%A0%80&page=%FF", "q=%00&tag=%00&kind=%00&status=%00", "q=" + "x" * 6000, "q=%22NEAR(+*", "page=-1&active=%FF",
    "page=" + "9" * 40 + "&next=//evil.example", "page=%C2%B2&next=%00", "status=deleted&ordering=-&q=%25", "=%FF=&&=%zz",
]  # fmt: skip

IDS = [
    "x", "-1", "%00", "%FF", "%ED%A0%80", "note-", UNKNOWN, f"note-{UNKNOWN}", "a" * 3000, "%F0%9F%A6%90", "'%20OR%201=1--",
    "%0d%0aX:%20y",
]  # fmt: skip

FORM_VALUES = [
    "",
    "a\x00b",
    "x" * 100_000,
    "\U0001f990" * 300,
    "\x01\x1b\x7f\u202e\uffff",
    "99999999999999999999",
    "-1",
]


@cache
def described() -> dict[str, Any]:
    """The OpenAPI description, by path and method."""
    generator: Any = SchemaGenerator  # has no types
    description: dict[str, Any] = generator().get_schema(request=None, public=True)
    return description


def operation(route: Route, method: str) -> dict[str, Any]:
    path = str(route).replace("<str:", "{").replace(">", "}")
    found: dict[str, Any] = described()["paths"].get(path, {}).get(method.lower(), {})
    return found


def queries_of(route: Route) -> Iterator[str]:
    """Those of a parameter that the description names, one at a time; of all others a value each at once, as often as one has more."""
    named = {
        each["name"] for each in operation(route, "GET").get("parameters", []) if each["in"] == "query"
    }
    mine = [query for query in QUERIES if query.partition("=")[0] in named]
    yield from mine
    others: dict[str, list[str]] = {}
    for query in QUERIES:
        if query not in mine:
            others.setdefault(query.partition("=")[0], []).append(query)
    for together in zip_longest(*others.values(), fillvalue=""):
        yield "&".join(filter(None, together))


def fields_of(route: Route, method: str) -> list[str]:
    """The names of the fields that the description gives the body of an operation."""
    content = operation(route, method).get("requestBody", {}).get("content", {})
    names: set[str] = set()
    for kind in content.values():
        names |= set(_properties(kind["schema"]))
    return sorted(names)


def _properties(schema: dict[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        schema = described()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    yield from schema.get("properties", {})
    for part in [*schema.get("oneOf", []), *schema.get("allOf", []), *schema.get("anyOf", [])]:
        yield from _properties(part)


@pytest.fixture
def alice(hers: Belongings) -> User:
    return hers.owner


def url_of(route: Route, hers: Belongings) -> str:
    """The address with ids of alice's own things."""
    values = parameters(hers)
    return route.url({name: values[name][0] for name in route.parameters})


def send(
    client: Client, method: str, url: str, body: bytes = b"{}", kind: str = "application/json"
) -> Any:
    if method in {"GET", "HEAD"}:
        return client.generic(method, url)
    return client.generic(method, url, body, content_type=kind)


def refused(response: Any, about: object) -> bool:
    """Whether it was; then the answer has the one shape. Fails for a server error."""
    assert response.status_code < 500, f"{about}: {response.status_code} {response.content[:300]!r}"
    if response.status_code < 400:
        return False
    assert response["content-type"] == "application/json", f"{about}: {response['content-type']}"
    answer = json.loads(response.content)
    assert set(answer) == SHAPE, f"{about}: {answer}"
    assert isinstance(answer["code"], str), f"{about}: {answer}"
    assert isinstance(answer["message"], str), f"{about}: {answer}"
    assert answer["code"], f"{about}: {answer}"
    assert answer["message"], f"{about}: {answer}"
    assert isinstance(answer["extra"], dict), f"{about}: {answer}"
    return True


@contextmanager
def undone() -> Iterator[None]:
    """A row that one address took and changed is not missing when the next one is tried."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    searched.forget()


def view_of(route: Route, hers: Belongings) -> Any:
    return resolve(url_of(route, hers)).func.view_class  # type: ignore[attr-defined]  # every REST view has one


def read_bodies(route: Route, hers: Belongings) -> list[str]:
    """The methods of an address that read a body."""
    view = view_of(route, hers)
    return [method for method in ("POST", "PUT", "PATCH") if hasattr(view, method.lower())]


def reading(routes: list[Route], hers: Belongings) -> Iterator[tuple[Route, str]]:
    """The methods that read a body with fields."""
    for route in routes:
        for method in read_bodies(route, hers):
            if fields_of(route, method):
                yield route, method


@pytest.mark.parametrize("routes", groups(REST))
def test_malformed_bodies_are_400_and_leave_nothing(
    routes: list[Route], alice: User, hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    client, before = sign_in(alice), rows_of(alice)
    for route, method in reading(routes, hers):
        url = url_of(route, hers)
        for name, body in MALFORMED.items():
            response = send(client, method, url, body)
            assert refused(response, (method, url, name))
            assert response.status_code == 400, (method, url, name, response.content)
    assert rows_of(alice) == before


@pytest.mark.parametrize("routes", groups(REST))
def test_odd_json_is_no_server_error_and_what_is_refused_leaves_nothing(
    routes: list[Route], alice: User, hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(alice)
    for route in routes:
        url = url_of(route, hers)
        bodies = {
            name: body
            for name, body in WRONG_TYPE.items()
            if not (talks(route) and body.startswith(b"{"))
        }
        tries = [(method, name) for method in read_bodies(route, hers) for name in bodies]
        tries += [(method, "null") for method in (*METHODS[:-1], *ODD_METHODS)]
        with undone():
            before = rows_of(alice)
            for method, name in tries:
                response = send(client, method, url, WRONG_TYPE[name])
                if not refused_or_bodyless(response, method, (method, url, name)):
                    before = rows_of(alice)
            assert rows_of(alice) == before, url


def talks(route: Route) -> bool:
    return route.path.removeprefix("api/v1/") in TALKING


def refused_or_bodyless(response: Any, method: str, about: object) -> bool:
    if method == "HEAD":
        assert response.status_code < 500, about
        return False
    return refused(response, about)


@pytest.mark.parametrize("routes", groups(REST))
def test_every_field_bears_every_value(
    routes: list[Route], alice: User, hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(alice)
    for route, method in reading(routes, hers):
        url = url_of(route, hers)
        with undone():
            before = rows_of(alice)
            for field, value in product(fields_of(route, method), VALUES):
                if talks(route) and isinstance(value, str) and value.strip():
                    continue
                response = send(client, method, url, json.dumps({field: value}).encode())
                if not refused(response, (method, url, field, str(value)[:60])):
                    before = rows_of(alice)
            assert rows_of(alice) == before, (method, url)


@pytest.mark.parametrize("routes", groups(REST))
def test_other_content_types_are_415(
    routes: list[Route], alice: User, hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(alice)
    for route, method in reading(routes, hers):
        url = url_of(route, hers)
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data",
                     "text/plain", "application/xml", "nonsense", "a/b; charset=nonsense"):  # fmt: skip
            response = send(client, method, url, b"content=x", kind)
            assert refused(response, (method, url, kind))
            if url in {"/api/v1/import/", "/api/v1/attachments/"} and kind.startswith("multipart/"):
                assert response.status_code == 400, (kind, response.content)
                continue
            assert response.status_code == 415, (method, url, kind, response.content)


@pytest.mark.parametrize("routes", groups([route for route in REST if route.parameters]))
def test_malformed_and_unknown_ids_are_404(
    routes: list[Route], alice: User, hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    client, before = sign_in(alice), rows_of(alice)
    own = {name: values[0] for name, values in parameters(hers).items()}
    for url in [
        route.url({**own, wrong: value})
        for route in routes
        for wrong in route.parameters
        for value in IDS
    ]:
        for method in METHODS:
            response = send(client, method, url)
            assert refused(response, (method, url))
            assert response.status_code in {404, 405}, (method, url, response.content)
    assert rows_of(alice) == before


@pytest.mark.parametrize("routes", groups(REST))
def test_odd_query_strings_are_no_server_error(
    routes: list[Route], alice: User, hers: Belongings, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(alice)
    for route in routes:
        url = url_of(route, hers)
        for query in queries_of(route):
            refused(client.get(f"{url}?{query}"), (url, query[:80]))


def wrong_tokens(user: User) -> dict[str, str]:
    """Authorization headers that let nobody in."""
    expired, secret = token_create(user=user, name="old", scopes=["read", "write"])
    expired.expires_at = timezone.now() - timedelta(seconds=1)
    expired.save()
    gone, revoked = token_create(user=user, name="gone", scopes=["read", "write"])
    token_revoke(user_id=user.pk, token_id=gone.pk)
    return {
        "none": "",
        "expired": f"Bearer {secret}",
        "revoked": f"Bearer {revoked}",
        "cut off": f"Bearer {secret[:-1]}",
        "unknown": "Bearer izzy_nonsense",
        "not ASCII": "Bearer izzy_\xff\xe4",
        "long": "Bearer izzy_" + "x" * 10_000,
        "other scheme": "Basic YWxpY2U6eA==",
        "other word": f"Token {secret}",
    }


def let_nobody_in(header: str, urls: list[str], about: str) -> None:
    client = Client(headers={"authorization": header} if header else {})
    for url, method in product(urls, METHODS):
        response = send(client, method, url)
        assert refused(response, (method, url, about))
        assert response.status_code in {401, 405}, (method, url, about, response.content)


@pytest.mark.parametrize("routes", groups(REST))
def test_credentials_that_let_nobody_in_are_401(
    routes: list[Route], alice: User, hers: Belongings
) -> None:
    """All addresses ask the same classes, so that one wrong token at each of them says it for all tokens."""
    expired = wrong_tokens(alice)["expired"]
    before = rows_of(alice)
    for route in routes:
        view = view_of(route, hers)
        assert view.authentication_classes == APIView.authentication_classes, route
        assert view.permission_classes == APIView.permission_classes, route
    let_nobody_in(expired, [url_of(route, hers) for route in routes], "expired")
    assert rows_of(alice) == before


def test_no_wrong_token_lets_anybody_in(alice: User, hers: Belongings) -> None:
    headers, before = wrong_tokens(alice), rows_of(alice)
    for name, header in headers.items():
        let_nobody_in(header, [f"/api/v1/memories/{hers.note}/"], name)
    assert rows_of(alice) == before


@pytest.mark.parametrize("routes", groups(REST))
def test_a_token_that_may_only_read_changes_nothing(
    routes: list[Route], alice: User, hers: Belongings, api: Callable[..., Client]
) -> None:
    client = api(alice, "read")
    client.get("/api/v1/stats/")  # notes that the token was used
    before = rows_of(alice)
    for url, method in product([url_of(route, hers) for route in routes], METHODS[1:]):
        scopes = getattr(resolve(url).func.view_class, "scopes", {})  # type: ignore[attr-defined]  # as above
        response = send(client, method, url)
        assert refused(response, (method, url))
        expected = {400} if scopes.get(method) == "read" else {403, 405}
        assert response.status_code in expected, (method, url, response.content)
    assert rows_of(alice) == before


def bad_forms(page: str) -> Iterator[tuple[str, bytes]]:
    """Form bodies with odd values in every field of a page, and such as are no forms."""
    known = {
        "title",
        "content",
        "new-content",
        "version",
        "active",
        "username",
        "password",
        "token",
        "next",
        "q",
    }
    names = sorted((set(re.findall(r'name="([\w-]+)"', page)) | known) - {"csrfmiddlewaretoken"})
    multipart, plain = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"
    for value in FORM_VALUES:
        part = 'Content-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
        yield (
            multipart,
            "".join(f"--x\r\n{part.format(name, value)}" for name in names).encode() + b"--x--\r\n",
        )
    yield plain, b"&".join(name.encode() + b"=%ed%a0%80%ff" for name in names)
    yield plain, b"a=1&" * 3000
    yield plain + "; charset=nonsense", b"title=x"
    yield multipart, b"no form at all"
    yield "multipart/form-data", b"nor this"
    yield (
        multipart,
        b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\n\xff\xed\xa0\x80\r\n--x--\r\n',
    )
    yield "application/json", b"{"


@pytest.mark.parametrize("routes", groups(PAGES))
def test_pages_bear_odd_queries_forms_and_methods(
    routes: list[Route], admin: User, sign_in: Callable[[User], Client]
) -> None:
    """As the superuser, who reaches every page; what is asked for is signed in anew where the page signed out."""
    hers = make_belongings(admin)
    for url in [url_of(route, hers) for route in routes]:
        with undone():
            client = sign_in(admin)
            page = client.get(url)
            assert page.status_code < 500, url
            for query in PAGE_QUERIES:
                assert client.get(f"{url}?{query}").status_code < 500, (url, query[:80])
            for kind, body in bad_forms(b"".join(page).decode("utf-8", "replace")):
                response = client.generic("POST", url, body, content_type=kind)
                assert response.status_code < 500, (url, kind, body[:80])
                session = client.cookies[settings.SESSION_COOKIE_NAME].value
                if not Session.objects.filter(session_key=session).exists():
                    client.force_login(admin)
            for method in ("PUT", "PATCH", *ODD_METHODS):
                assert client.generic(method, url, b"{}").status_code < 500, (method, url)


@pytest.mark.parametrize("routes", groups([route for route in PAGES if route.parameters]))
def test_pages_of_malformed_and_unknown_ids_are_404(
    routes: list[Route], admin: User, sign_in: Callable[[User], Client]
) -> None:
    own = {name: values[0] for name, values in parameters(make_belongings(admin)).items()}
    client = sign_in(admin)
    for url in [
        route.url({**own, wrong: value})
        for route in routes
        for wrong in route.parameters
        for value in IDS
    ]:
        for method in ("GET", "POST"):
            assert client.generic(method, url).status_code in {404, 405}, (method, url)


@pytest.mark.parametrize(
    "path", ["/", "/settings/", "/memory/", "/sign-in/", "/api/v1/memories/", "/healthz"]
)
def test_garbage_in_headers_and_cookies_is_no_server_error(path: str, alice: User) -> None:
    for headers in (
        {"cookie": "izzy_session=\x01\xff; izzy_csrftoken=;;=; messages=x"},
        {"cookie": "izzy_session=" + "x" * 4000},
        {"x-csrftoken": "\xff\x01"},
        {"referer": "http://["},
        {"origin": "http://["},
        {"host": "evil.example"},
        {"host": "[::1"},
        {
            "accept-language": "*;q=x," * 100,
            "accept": "\xff",
            "range": "bytes=9-1",
            "if-modified-since": "x",
        },
        {"hx-request": "true", "hx-current-url": "http://[\xff", "hx-trigger": "%ff"},
        {"x-forwarded-for": "a,b,,\xff", "x-forwarded-proto": "x", "x-forwarded-host": "evil.example"},
    ):
        for method in ("GET", "POST"):
            for client in (Client(headers=headers), Client(headers=headers, enforce_csrf_checks=True)):
                response = client.generic(method, path, b"{}", content_type="application/json")
                assert response.status_code < 500, (method, path, headers)


def test_what_is_tried_is_everything() -> None:
    """The tests above would pass over an empty list, and over fields that nobody found."""
    assert len(REST) > 20
    assert len(PAGES) > 20
    memories = next(route for route in REST if route.path == "api/v1/memories/")
    assert {"content", "tags", "importance", "valid_from"} <= set(fields_of(memories, "POST"))
    tried = list(queries_of(memories))
    assert {"page=x", "ordering=-"} <= set(tried)  # its own, alone
    assert any("depth=99" in query for query in tried)  # beside those of other names
    undescribed = [
        f"{method} {path}"
        for path, operations in described()["paths"].items()
        for method, operation in operations.items()
        if method in {"post", "patch", "put"} and "requestBody" not in operation
    ]
    assert undescribed == [
        "post /api/v1/builds/{build_id}/cancel/",
        "post /api/v1/builds/{build_id}/retry/",
        "post /api/v1/capabilities/{capability}/disable/",
        "post /api/v1/capabilities/{capability}/enable/",
        "post /api/v1/conversations/{conversation_id}/stop/",
        "post /api/v1/import/{import_id}/cancel/",
        "post /api/v1/memories/{memory_id}/approve/",
    ]
