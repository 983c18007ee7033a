"""Servers that refuse, are slow, are something else or are not there: a sentence, an exit code, and never the token."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.izzy import Done, Izzy
from tests.peers.ports import free_port
from tests.peers.prepared import Person

TOKEN = "izzy_" + "s" * 43
PAGE: dict[str, object] = {"count": 0, "next": None, "previous": None, "results": []}


@dataclass
class Answer:
    """The peer's answer: by default an empty list."""

    status: int = 200
    body: bytes = json.dumps(PAGE).encode()
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    cut: bool = False  # the connection ends before the body does


@dataclass
class Peer:
    """A server that gives these answers, the last of them again and again."""

    url: str
    paths: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)


@contextmanager
def peer(*answers: Answer) -> Iterator[Peer]:
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.paths.append(self.path)
            found.tokens.append(self.headers.get("Authorization", ""))
            answer = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body) + answer.cut))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Peer(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


def refusal(status: int, code: str, message: str, **extra: object) -> Answer:
    body = json.dumps({"code": code, "message": message, "extra": extra}).encode()
    return Answer(status, body)


def page(status: int = 200) -> Answer:
    return Answer(status, b"<html>A web page</html>", {"Content-Type": "text/html"})


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Done]:
    """`izzy list` against an address, with a token."""

    def listed(url: str, **environment: str) -> Done:
        done = Izzy(tmp_path, url, TOKEN).run("list", **environment)
        assert done.err.count("\n") <= 4
        return done

    return listed


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (refusal(401, "not_authenticated", "This API token is unknown."), 3, "unknown. Sign in again"),
        (
            refusal(403, "missing_scope", "This API token lacks the scope write."),
            3,
            "lacks the scope write",
        ),
        (refusal(404, "not_found", "There is nothing with this id."), 4, "nothing with this id"),
        (refusal(409, "conflict", "Taken."), 1, "Taken."),
        (refusal(413, "too_large", "At most 5 bytes."), 1, "At most 5 bytes."),
        (refusal(503, "disk_full", "The disk is full."), 1, "The disk is full."),
        (page(), 5, "is not Izzy: it gave a web page"),
        (page(404), 5, "is not Izzy"),
        (page(413), 1, "takes nothing that large"),
        (page(500), 1, "The server failed (500)"),
        (page(502), 5, "does not reach Izzy (502)"),
        (Answer(200, b"{}", {"Content-Type": "text/plain"}), 5, "is not Izzy"),
        (Answer(200, b"{", {"Content-Type": "application/json"}, cut=True), 5, "broke"),
        (
            Answer(302, b"", {"Location": "https://elsewhere.example/?x=1"}),
            5,
            "leads on to https://elsewhere.example/.",
        ),
    ],
)
def test_a_refusal_is_a_sentence_and_an_exit_code(
    run: Callable[..., Done], answer: Answer, code: int, message: str
) -> None:
    with peer(answer) as there:
        done = run(there.url)
    assert (done.code, done.out) == (code, b"")
    assert message in done.err


def test_the_token_does_not_follow_a_redirection(run: Callable[..., Done]) -> None:
    with peer(Answer()) as other, peer(Answer(302, b"", {"Location": other.url})) as there:
        assert run(there.url).code == 5
        assert (there.tokens, other.tokens) == ([f"Bearer {TOKEN}"], [])


def test_a_server_that_asks_to_slow_down_is_asked_again(run: Callable[..., Done]) -> None:
    slow = refusal(429, "throttled", "Too many requests.", retry_after=1)
    slow.headers["Retry-After"] = "1"
    with peer(slow, slow, Answer()) as there:
        done = run(there.url).ok()
    assert len(there.paths) == 3
    assert "going on in 1 s" in done.err


def test_a_server_that_asks_to_come_back_much_later_is_not_waited_for(run: Callable[..., Done]) -> None:
    slow = refusal(429, "throttled", "Too many requests.", retry_after=3600)
    slow.headers["Retry-After"] = "3600"
    with peer(slow) as there:
        done = run(there.url)
    assert done.code == 1
    assert "Try again in 3600 seconds" in done.err


def test_an_address_with_a_path_is_kept(run: Callable[..., Done]) -> None:
    with peer(Answer()) as there:
        run(f"{there.url}/izzy/").ok()
    assert there.paths[0].startswith("/izzy/api/v1/memories/?")


def test_a_proxy_of_the_environment_is_used(run: Callable[..., Done]) -> None:
    with peer(Answer()) as proxy:
        run("http://izzy.example:8000", HTTP_PROXY=proxy.url).ok()
    assert proxy.paths[0].startswith("http://izzy.example:8000/api/v1/memories/")


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("http://127.0.0.1:{port}", 5, "does not answer at http://127.0.0.1"),
        ("https://127.0.0.1:{port}", 5, "does not answer at https://127.0.0.1"),
        ("ftp://example.org", 2, "must look like"),
        ("http://me:secret@example.org", 2, "must not hold a name or password"),
        ("http://[::1", 2, "not the address"),
    ],
)
def test_an_address_that_leads_nowhere_is_named(
    run: Callable[..., Done], url: str, code: int, message: str
) -> None:
    done = run(url.format(port=free_port()))
    assert done.code == code
    assert message in done.err
    assert "secret" not in done.err


def test_a_token_that_may_only_read_is_told_so_when_it_writes(izzy: Izzy, person: Person) -> None:
    reader = Izzy(izzy.home, izzy.url, person.tokens["reader"])
    reader.run("list").ok()
    done = reader.run("save", "Not for me")
    assert done.code == 3
    assert "lacks the scope write" in done.err
