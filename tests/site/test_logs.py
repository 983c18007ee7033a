"""A real server writes into its log what it may, and nothing else."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.site import Site
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.long

WORDS = ("quokka", "heliotrope", "capybara", "key-of-the-model", "evil", "okapi")


def written(folder: Path, *, libraries: str = "") -> str:
    """The log of a server in which a chat message is answered, a note is saved by the model and one by a program, and that
    somebody asks for by another name."""
    folder.mkdir()
    with AnthropicServer.in_thread(turns_only=True) as model:
        model.add(reply(tool("memory_save", {"content": "Likes the heliotrope"})), reply("Noted."))
        site = Site(
            folder,
            IZZY_LOG_LEVEL="DEBUG",
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="key-of-the-model",
            IZZY_LOG_LIBRARIES=libraries,
            ANTHROPIC_LOG="debug",
        )
        try:
            with site.client() as client:
                answer = client.post(
                    "/api/v1/chat/", json={"message": "The quokka likes the heliotrope."}
                )
                assert answer.json()["text"] == "Noted."
                assert (
                    client.post("/api/v1/memories/", json={"content": "A capybara"}).status_code == 201
                )
            foreign = b"GET /?okapi HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
            with closing(
                socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE)
            ) as connection:
                connection.sendall(foreign)
                assert connection.recv(100).startswith(b"HTTP/1.1 400")
            # Written in the background, some time after the first answer.
            eventually(lambda: "warm-up of web" in site.log.read_text(), site.log.read_text)
        finally:
            site.close()
    return site.log.read_text()


def test_at_debug_the_log_holds_no_message_note_key_or_foreign_host_but_where_the_operator_asks_for_the_libraries_too(
    tmp_path: Path,
) -> None:
    ours = written(tmp_path / "ours")
    assert " DEBUG izzysite." in ours
    assert [word for word in WORDS if word in ours] == []
    refused = [line for line in ours.splitlines() if "django.security" in line]
    assert len(refused) == 1
    assert " WARNING " in refused[0]
    assert "IZZY_ALLOWED_HOSTS" in refused[0]
    assert "quokka" in written(tmp_path / "all", libraries="debug")
