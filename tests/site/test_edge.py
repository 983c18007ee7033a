"""The edge of the site: what Django, the parsers and the layers in front of it answer to what is malformed."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
from asgiref.sync import iscoroutinefunction
from asgiref.testing import ApplicationCommunicator
from django.core.management import call_command
from django.templatetags.static import static
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import User
from izzysite.asgi import application
from izzysite.static_files import StaticFiles, static_version
from tests.site.routes import all_routes
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db

Api = Callable[..., Client]
JSON = (b"content-type", b"application/json")
SHAPE = {"code", "message", "extra"}
MEMORIES = "/api/v1/memories/"


def post(client: Client, body: bytes, content_type: str = "application/json") -> Any:
    return client.post(MEMORIES, body, content_type=content_type)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "malformed_json"),
        (b"\xff\xfe\x00", "malformed_json"),
        (b'{"content": "\xc3\x28"}', "malformed_json"),
        (b"[" * 200_000, "malformed_json"),
        (rb'{"content": "\ud800"}', "invalid_text"),
        (rb'{"content": "a\u0000b"}', "invalid_text"),
    ],
)
def test_malformed_bodies_are_400_in_the_one_shape(
    alice: User, api: Api, body: bytes, code: str
) -> None:
    response = post(api(alice), body)
    assert response.status_code == 400
    assert set(response.json()) == SHAPE
    assert response.json()["code"] == code


@pytest.mark.parametrize(
    "body", [b"[]", b"null", b'"text"', b"17", b"", b"{}", b'{"content": null}', b'{"content": []}']
)
def test_bodies_of_the_wrong_type_are_400(alice: User, api: Api, body: bytes) -> None:
    response = post(api(alice), body)
    assert response.status_code == 400, response.content
    assert set(response.json()) == SHAPE


def test_other_content_types_are_415(alice: User, api: Api) -> None:
    response = post(api(alice), b"content=x", "application/x-www-form-urlencoded")
    assert response.status_code == 415
    assert set(response.json()) == SHAPE


def test_addresses_that_do_not_exist_are_404_as_json_and_as_a_page(client: Client, alice: User) -> None:
    response = client.get("/api/v1/nothing/")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    client.force_login(alice)
    page = client.get("/nothing/here/")
    assert page.status_code == 404
    assert "<html" in page.content.decode()


def test_what_writes_to_an_address_without_its_slash_is_told_so_and_not_redirected(
    alice: User, api: Api
) -> None:
    client = api(alice)
    response = client.post(MEMORIES.rstrip("/"), b'{"content": "x"}', content_type="application/json")
    assert (response.status_code, set(response.json())) == (404, SHAPE)
    assert MEMORIES in response.json()["message"]
    assert client.get(MEMORIES.rstrip("/"))["location"] == MEMORIES
    assert "mean" not in client.get("/api/v1/nonsense").json()["message"]


def test_a_wrong_method_is_405_in_the_one_shape(alice: User, api: Api) -> None:
    response = api(alice).put(MEMORIES, {}, content_type="application/json")
    assert response.status_code == 405
    assert set(response.json()) == SHAPE


@pytest.mark.parametrize(
    "header", ["Bearer izzy_nonsense", "Bearer", "Basic YWxpY2U6eA==", "Bearer \xff", ""]
)
def test_without_valid_credentials_it_is_401(alice: User, header: str) -> None:
    response = Client(headers={"authorization": header}).get(MEMORIES)
    assert response.status_code == 401
    assert response.json()["code"] == "not_authenticated"
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_token_without_the_scope_is_403_and_names_it(alice: User, api: Api) -> None:
    client = api(alice, "read")
    assert client.get(MEMORIES).status_code == 200
    response = client.post(MEMORIES, {"content": "x"}, content_type="application/json")
    assert response.status_code == 403
    assert response.json() == {
        "code": "missing_scope",
        "message": "This API token lacks the scope write.",
        "extra": {"scope": "write"},
    }


def test_searching_is_reading(alice: User, api: Api) -> None:
    for path in ("/api/v1/search/", "/api/v1/context/"):
        response = api(alice, "read").post(path, {"query": "anything"}, content_type="application/json")
        assert response.status_code == 200, response.content


def test_a_browser_needs_its_csrf_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    response = client.post(MEMORIES, {"content": "x"}, content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (403, "csrf_failed")
    page = client.post("/settings/", {})
    assert page.status_code == 403
    assert "Reload it" in page.content.decode()


def test_a_signed_in_browser_with_its_csrf_token_may(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    client.get("/settings/")
    token = client.cookies["izzy_csrftoken"].value
    headers = {"X-CSRFToken": token}
    response = client.post(
        MEMORIES, {"content": "Likes tea"}, content_type="application/json", headers=headers
    )
    assert response.status_code == 201


def test_too_many_requests_are_429_with_the_time_to_wait(
    alice: User, api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_THROTTLE = True
    monkeypatch.setattr("apps.core.http.drf.UserThrottle.get_rate", lambda self: "2/min")
    client = api(alice)
    statuses = [client.get(MEMORIES).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    response = client.get(MEMORIES)
    assert response.json()["code"] == "throttled"
    assert int(response["Retry-After"]) == response.json()["extra"]["retry_after"] > 0


@pytest.mark.parametrize(
    "path",
    [
        "/settings/?x=%00",
        "/c/%00/",
        "/memory/browse/?q=%ED%A0%80",
        "/memory/browse/?q=%FF&page=abc",
        "/%FF/",
        "/memory/browse/?page=99999",
    ],
)
def test_odd_addresses_are_no_server_errors(alice: User, path: str) -> None:
    client = Client()
    client.force_login(alice)
    assert client.get(path).status_code in {200, 400, 404}


def test_a_host_that_is_not_ours_is_refused(client: Client) -> None:
    assert client.get("/sign-in/", headers={"host": "evil.example"}).status_code == 400


def test_the_policy_allows_nothing_inline_but_in_the_admin(alice: User, admin: User) -> None:
    client = Client()
    client.force_login(admin)
    for path in ("/settings/", "/", "/memory/", "/api/docs/", "/nothing/"):
        policy = client.get(path)["Content-Security-Policy"]
        assert "unsafe" not in policy, path
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
    assert "'unsafe-eval'" in client.get("/admin/")["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/settings/",
        "/settings/tokens/",
        "/settings/users/",
        "/settings/instance/",
        "/memory/",
        "/api/docs/",
    ],
)
def test_pages_hold_nothing_that_the_policy_forbids(admin: User, path: str) -> None:
    client = Client()
    client.force_login(admin)
    page = client.get(path).content.decode()
    for forbidden in (" style=", "<style", " onclick=", " onload=", "javascript:", "hx-on"):
        assert forbidden not in page, forbidden
    for script in page.split("<script")[1:]:
        opening = script.split(">")[0]
        assert "src=" in opening or "application/json" in opening, opening
    for attribute in ('src="http', 'href="http', 'src="//', 'href="//'):
        assert attribute not in page


@pytest.mark.parametrize("trusted", ["on", "off"])
def test_behind_tls_cookies_are_secure_browsers_are_told_to_stay_and_plain_http_goes_there(
    trusted: str,
) -> None:
    """In a process of its own: the settings follow from IZZY_PUBLIC_URL when they are read."""
    import os
    import subprocess
    import sys

    program = (
        "import django; django.setup(); from django.test import Client; from django.conf import settings as s\n"
        "print(s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE)\n"
        "def ask(path, host='izzy.example.org', method='get', **headers):\n"
        "  r = getattr(Client(), method)(path, headers={'host': host, **headers})\n"
        "  print(r.status_code, r.headers.get('Strict-Transport-Security') or r.headers.get('Location'))\n"
        "ask('/healthz')\n"
        "ask('/static/?a=b', **{'x-forwarded-proto': 'https'})\n"
        "ask('/static/?a=b', **{'x-forwarded-proto': 'http'})\n"
        "ask('/static/?a=b')\n"
        "ask('/static/', **{'sec-fetch-site': 'none'})\n"
        "ask('/api/v1/search/', method='post')\n"
        "ask('/static/', host='127.0.0.1:8000')\n"
    )
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_PUBLIC_URL": "https://izzy.example.org",
        "IZZY_BEHIND_PROXY": trusted,
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [
        "True True",
        "200 max-age=31536000",
        "404 max-age=31536000",
        "301 https://izzy.example.org/static/?a=b",
        "301 https://izzy.example.org/static/?a=b",
        "404 max-age=31536000",
        "308 https://izzy.example.org/api/v1/search/",
        "404 max-age=31536000",
    ]


@pytest.mark.parametrize(
    ("path", "said", "host", "target"),
    [
        ("/v1/messages", b"http", b"izzy.example.org", "https://izzy.example.org/v1/messages"),
        ("/mcp", b"http", b"izzy.example.org", "https://izzy.example.org/mcp"),
        ("/v1/messages", b"", b"rebound.example", "https://izzy.example.org/v1/messages"),
        ("/v1/messages", b"https", b"izzy.example.org", None),
        ("/v1/messages", b"", b"127.0.0.1:8000", None),
    ],
)
async def test_behind_tls_programs_that_speak_plain_http_are_sent_to_https(
    settings: Settings, path: str, said: bytes, host: bytes, target: str | None
) -> None:
    """In front of Django: /v1/ and /mcp are answered before it."""
    settings.TLS, settings.IZZY_PUBLIC_URL = True, "https://izzy.example.org"
    told = [(b"x-forwarded-proto", said)] if said else []
    status, headers, _ = await http(path, [*told, (b"host", host)], [b"{}"])
    assert headers.get("location") == target
    assert (status == 308) is (target is not None)


def test_the_schema_is_valid_and_made_without_a_warning() -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", os.devnull)


def test_the_schema_describes_every_address_of_the_interface(alice: User, api: Api) -> None:
    from tests.site.routes import all_routes

    response = api(alice).get("/api/schema/?format=json")
    assert response.status_code == 200
    described = set(json.loads(response.content)["paths"])
    wanted = {str(route) for route in all_routes() if route.path.startswith("api/v1/")}
    missing = {path for path in wanted if path.replace("<str:", "{").replace(">", "}") not in described}
    assert not missing


async def http(
    path: str, headers: list[tuple[bytes, bytes]], body: list[bytes], served: Any = application
) -> tuple[int, dict[str, str], bytes]:
    """One request straight to the ASGI application."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST" if body else "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            *([] if any(name == b"host" for name, _ in headers) else [(b"host", b"127.0.0.1:8000")]),
            *headers,
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }
    communicator = cast("Any", ApplicationCommunicator)(served, scope)
    for number, part in enumerate(body or [b""]):
        more = number + 1 < len(body)
        await communicator.send_input({"type": "http.request", "body": part, "more_body": more})
    start = await communicator.receive_output(PATIENCE)
    received, more_body = b"", True
    while more_body:
        message = await communicator.receive_output(PATIENCE)
        received += message.get("body", b"")
        more_body = message.get("more_body", False)
    return (
        start["status"],
        {key.decode().lower(): value.decode() for key, value in start["headers"]},
        received,
    )


@pytest.mark.django_db(transaction=True)
async def test_ten_megabytes_are_413_whether_or_not_they_tell_their_length() -> None:
    length = (b"content-length", b"10000000")
    status, _, body = await http(MEMORIES, [length], [b"x"])
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    chunked = [(b"transfer-encoding", b"chunked"), (b"content-type", b"application/json")]
    status, _, body = await http(MEMORIES, chunked, [b"x" * 1_000_000] * 10)
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    status, _, body = await http(MEMORIES, chunked, [b'{"content"', b': "x"}'])
    assert (status, json.loads(body)["code"]) == (401, "not_authenticated")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("told", [[], [(b"transfer-encoding", b"Chunked")]])
async def test_a_body_that_other_servers_hand_on_without_any_length_is_counted(
    told: list[tuple[bytes, bytes]],
) -> None:
    headers = [*told, (b"content-type", b"application/json")]
    status, _, body = await http(MEMORIES, headers, [b"x" * 1_000_000] * 10)
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    status, _, body = await http(MEMORIES, headers, [b'{"content"', b': "x"}'])
    assert (status, json.loads(body)["code"]) == (401, "not_authenticated")


@pytest.mark.parametrize("length", [b"abc", b"-1", b"9" * 400])
async def test_a_length_that_is_none_is_refused(length: bytes) -> None:
    status, _, _ = await http(MEMORIES, [(b"content-length", length)], [b"x"])
    assert status == 413


def test_no_view_is_a_coroutine_which_would_hold_its_thread() -> None:
    assert [str(route) for route in all_routes() if iscoroutinefunction(route.view)] == []


@pytest.mark.django_db(transaction=True)
async def test_a_request_goes_to_its_thread_once_for_all_its_work() -> None:
    """Beside it there are the signals of its begin and its end."""
    hops: list[str] = []
    submit = ThreadPoolExecutor.submit

    def counted(self: ThreadPoolExecutor, function: Any, *arguments: Any, **named: Any) -> Any:
        hops.append(str(function))
        return submit(self, function, *arguments, **named)

    with patch.object(ThreadPoolExecutor, "submit", counted):
        status, _, _ = await http(MEMORIES, [(b"content-length", b"2"), JSON], [b"{}"])
    assert status == 401
    assert 1 <= len(hops) <= 4, hops


async def test_static_files_come_from_before_django_and_nothing_beside_them() -> None:
    status, headers, body = await http("/static/css/base.css", [], [])
    assert (status, headers["x-content-type-options"]) == (200, "nosniff")
    assert headers["content-type"].startswith("text/css")
    assert body
    again = (
        [(b"if-none-match", headers["etag"].encode())]
        if "etag" in headers
        else [(b"if-modified-since", headers["last-modified"].encode())]
    )
    assert (await http("/static/css/base.css", again, []))[0] == 304
    status, _, _ = await http("/static/django_htmx/htmx-4.min.js", [], [])
    assert status == 200


async def test_a_page_names_files_by_a_version_and_a_browser_keeps_those_alone() -> None:
    named = static("css/base.css")
    assert named == f"/static/{static_version()}/css/base.css"
    status, headers, body = await http(named, [], [])
    assert (status, headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    for other in ("/static/css/base.css", "/static/00000000/css/base.css"):
        status, headers, same = await http(other, [], [])
        assert (status, headers["cache-control"], same) == (200, "no-cache", body)


@pytest.mark.django_db(transaction=True)
async def test_a_missing_file_is_not_kept_and_no_version_leads_outside() -> None:
    begin = f"/static/{static_version()}"
    for path in (
        "/none.css",
        "/",
        "",
        "/../../manage.py",
        "/%2e%2e/manage.py",
        f"/{static_version()}/css/base.css",
    ):
        status, headers, body = await http(begin + path, [], [])
        assert status in {400, 404}, path
        assert "immutable" not in headers.get("cache-control", "")
        assert b"DJANGO" not in body


def test_the_version_is_of_names_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("izzysite.static_files._roots", lambda: [str(tmp_path)])
    version = static_version.__wrapped__
    seen = [version()]
    (tmp_path / "a.css").write_text("a {}")
    seen.append(version())
    (tmp_path / "a.css").write_text("b {}")
    seen.append(version())
    (tmp_path / "a.css").rename(tmp_path / "b.css")
    seen.append(version())
    assert len(set(seen)) == 4


def test_while_files_change_under_the_process_names_carry_no_version(settings: Settings) -> None:
    settings.DEBUG = True
    assert static("css/base.css") == "/static/css/base.css"


async def test_a_file_that_is_edited_under_a_running_server_is_served_whole(tmp_path: Path) -> None:
    files, sheet = StaticFiles(application), tmp_path / "a.css"
    sheet.write_text("a {}")
    files.add_files(tmp_path, prefix="/static/")
    assert (await http("/static/a.css", [], [], files))[2] == b"a {}"
    sheet.write_text("a { color: green }")
    status, headers, body = await http(f"/static/{static_version()}/a.css", [], [], files)
    assert (status, body, headers["content-length"]) == (200, b"a { color: green }", "18")
    assert headers["cache-control"] == "no-cache"  # not what the version was made of
    sheet.unlink()
    assert (await http("/static/a.css", [], [], files))[0] == 404
    sheet.write_text("b {}")
    assert (await http("/static/a.css", [], [], files))[2] == b"b {}"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path",
    [
        "/static/../manage.py",
        "/static/css/../../izzysite/settings.py",
        "/static/%2e%2e/manage.py",
        "/static/",
    ],
)
async def test_no_file_outside_is_served(path: str) -> None:
    status, _, body = await http(path, [], [])
    assert status in {400, 404}
    assert b"DJANGO" not in body


def test_a_form_address_opened_by_hand_has_a_page_that_leads_back(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    response = browser.get("/memory/passages/retry/", headers={"Accept": "text/html"})
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert "Back to Izzy" in response.content.decode()


def test_a_name_that_is_not_allowed_is_told_with_what_to_set(client: Client) -> None:
    headers = {"host": "izzy.lan"}
    page = client.get("/", headers=headers)
    assert page.status_code == 400
    assert "IZZY_ALLOWED_HOSTS" in page.content.decode()
    answer = client.get(MEMORIES, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_host")
