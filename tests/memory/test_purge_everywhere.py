"""After a purge nothing of a note is left: not in a table, not in a process, not in a byte of the data directory."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest

from tests.chat.server import ROOT, Server
from tests.peers.anthropic_server import AnthropicServer, Reply, reply, tool
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.long

WORD = "xylographicwalrus"
FORMER = "quokkamarzipan"
KEPT = "The cat is called Mia."


def forms(word: str) -> list[bytes]:
    """A word as it may lie in a file: UTF-8 and UTF-16, in any case, stemmed, and escaped: all of its letters, or as JSON,
    HTML and addresses have them."""
    stem = word[:-1]
    escaped = {"".join(f"\\u{ord(letter):04x}" for letter in stem), json.dumps(stem)[1:-1], quote(stem)}
    escaped |= {stem.encode("ascii", "xmlcharrefreplace").decode()}
    texts = {stem, stem.upper(), stem.title()} | escaped
    return [text.encode(code) for text in texts for code in ("utf-8", "utf-16-le", "utf-16-be")]


def traces(server: Server, *words: str) -> dict[str, int]:
    """By file of the data directory and table on a server, how often one of the words stands there."""
    files = (file for file in sorted(server.folder.rglob("*")) if file.is_file())
    places = {file.name: file.read_bytes() for file in files}
    places |= {name: text.encode() for name, text in server.database.texts().items()}
    counts = {
        name: sum(data.count(form) for word in words for form in forms(word))
        for name, data in places.items()
    }
    return {name: count for name, count in counts.items() if count}


@pytest.fixture(scope="module")
def peer() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread() as server:
        yield server


SCRIPT: deque[Reply] = deque()
"""Answers to the chat's own calls; titles, gates and summaries must not take it away."""


def answers(request: dict[str, Any]) -> Reply:
    """The script for the chat; what else asks, such as for a title or a summary, hears the word repeated."""
    if SCRIPT and any(item["name"] == "memory_save" for item in request.get("tools", [])):
        return SCRIPT.popleft()
    if request.get("tool_choice"):
        name = request["tools"][0]["name"]
        values: dict[str, Any] = {
            "search_memory": {"searches": [["walrus", WORD], ["print"]]},
        }
        return reply(tool(name, values.get(name, {})))
    return reply(f"About the {WORD}: noted.")


@pytest.fixture(scope="module")
def server(peer: AnthropicServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two web processes and a worker over one data directory."""
    peer.fallback = answers
    server = Server(tmp_path_factory.mktemp("purge") / "data", peer.url)
    server.environment |= {"IZZY_HISTORY_TOKENS": "1000"}
    with working(server):
        try:
            server.start()
            server.start()
            yield server
        finally:
            server.kill()


@contextmanager
def working(server: Server) -> Iterator[None]:
    """A worker process, which runs every sweep once when it starts."""
    command = [sys.executable, "manage.py", "worker"]
    with (server.folder / "worker.log").open("ab") as log:
        worker = subprocess.Popen(command, cwd=ROOT, env=server.environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(PATIENCE)


def post(server: Server, path: str, body: dict[str, Any]) -> Any:
    with server.http as client:
        answer = client.post(f"/api/v1/{path}", json=body, timeout=PATIENCE)
        assert answer.status_code < 300, answer.text
        return answer.json()


def say(server: Server, text: str, *script: Reply, **values: Any) -> dict[str, Any]:
    SCRIPT.extend(script)
    with server.chat(text, **values) as stream:
        return list(stream)[-1]


def everywhere(server: Server) -> Iterator[int]:
    """Every web process in turn, as the one that is spoken to."""
    newest = server.port
    for port in server.ports:
        server.port = port
        yield port
    server.port = newest


def attach(server: Server, name: str, text: str) -> str:
    """The id of a file that was brought for the next message."""
    with server.http as client:
        answer = client.post(
            "/api/v1/attachments/", files={"file": (name, text.encode())}, timeout=PATIENCE
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


def test_nothing_is_left_of_a_note(server: Server, peer: AnthropicServer) -> None:
    beside = attach(server, "eats.txt", f"The user's {WORD} eats prints.")
    first = say(
        server, f"Remember that my {WORD} eats prints.",
        reply("I will.", tool("memory_save", {"content": f"The user's {WORD} eats prints.", "tags": [WORD]})),
        reply(f"Saved: your {WORD} eats prints."), attachments=[beside],
    )  # fmt: skip
    kept = post(server, "memories/", {"content": KEPT})
    (note,) = [row for row in server.get("memories/")["results"] if WORD in row["content"]]
    with server.http as client:
        changed = f"The user's {WORD} is a {FORMER} and eats prints."
        assert (
            client.patch(f"/api/v1/memories/{note['id']}/", json={"content": changed}).status_code == 200
        )
        changed = f"The user's {WORD} eats woodcuts."
        assert (
            client.patch(f"/api/v1/memories/{note['id']}/", json={"content": changed}).status_code == 200
        )
    post(server, f"memories/{note['id']}/links/", {"target": kept["id"], "relation": f"pet of {WORD}"})
    second = say(
        server,
        "What does my walrus eat, the one I told you about?",
        reply(f"Your {WORD} eats woodcuts."),
    )
    say(
        server, "Search your memory.",
        reply(tool("memory_search", {"query": f"{WORD} food"}), tool("deep_memory", {"query": f"all about the {WORD}"})),
        reply("I looked."), conversation=second["conversation"],
    )  # fmt: skip
    for number in range(4):
        say(server, f"Tell me a long story, part {number}." + " And then they went on." * 150,
            reply("Once upon a time. " * 150), conversation=first["conversation"])  # fmt: skip
    eventually(
        lambda: server.rows("select count(*) from chat_conversation where summary like '%xylographic%'")[
            0
        ][0],
        lambda: server.rows("select id, length(summary), summary_until from chat_conversation"),
    )
    assert server.rows(
        "select count(*) from chat_turn where cast(memories as text) like '%xylographic%'"
    )[0][0]
    for _ in everywhere(server):
        assert [
            hit for hit in post(server, "search/", {"query": WORD})["results"] if WORD in hit["text"]
        ]
    before = traces(server, WORD, FORMER)
    assert before

    preview = server.get(f"memories/{note['id']}/purge/")
    assert len(preview["source_messages"]) >= 3
    receipt = post(server, f"memories/{note['id']}/purge/", {"redact": True})

    assert WORD not in str(receipt)
    assert receipt["left"] == [], receipt["left"]
    assert {place["place"]: place["found"] > 0 for place in receipt["places"]}["chat.blocks"]
    for _ in everywhere(server):
        assert not [
            hit for hit in post(server, "search/", {"query": WORD})["results"] if WORD in hit["text"]
        ]
        assert post(server, "context/", {"query": f"the {WORD} eats"})["text"].count(WORD) == 0
    scrubbed(server, receipt)
    assert traces(server, WORD, FORMER) == {}
    assert [row["content"] for row in server.get("memories/")["results"]] == [KEPT]
    assert server.get("attachments/")["count"] == 0

    peer.fallback = lambda request: reply("Fine.")
    for conversation in (first["conversation"], second["conversation"]):
        assert say(server, "And now?", conversation=conversation)["type"] == "response"
    assert WORD not in str(peer.messages[-1]["messages"])


def scrubbed(server: Server, receipt: dict[str, Any]) -> None:
    path = f"memory-purges/{receipt['id']}/"
    eventually(lambda: server.get(path)["disk"]["state"] == "done", lambda: server.get(path))


COPIES = """
import json
from html import escape
from urllib.parse import quote
from apps.builder.models import Build, BuilderMessage, DialogueMessage
from apps.capabilities.models import Capability, Execution
from apps.chat.models import Conversation
from apps.memory.models import CaptureWindow, Memory

conversation, text, paraphrase = json.loads({given!r})
note = Memory.objects.unscoped().get(content=text)
user = note.user
made = Capability.objects.create(user=user, name="finder", description="Find things.")
html, url, inner = escape(text), quote(text), json.dumps({{"said": text}})
Execution.objects.create(
    user=user, capability=made, version=1, state="ok", input={{"what": text}}, result=inner,
    stdout=f"<p>{{html}}</p> https://example.org/?q={{url}}", stderr=json.dumps(inner), error_message=text.upper(),
)
build = Build.objects.create(user=user, capability=made, name="finder", request=f"Find this: {{text}}", feedback=html)
BuilderMessage.objects.create(user=user, build=build, number=1, direction="to_user", type="progress", payload={{"text": text}})
DialogueMessage.objects.create(user=user, build=build, position=1, role="user",
    blocks=json.dumps([{{"type": "text", "text": f"The user said {{inner}}."}}]))
Conversation.objects.unscoped().filter(pk=conversation).update(
    summary=f"It is about a {{paraphrase}}.", summary_until=1, title=f"A {{paraphrase}}")
CaptureWindow.objects.create(user=user, conversation_id=conversation, state="done", memory_ids=[str(note.pk)],
    gate_reason=f"tells of a {{paraphrase}}", dropped=[{{"text": paraphrase, "reason": "known"}}])
"""


@pytest.mark.parametrize(
    ("text", "words", "paraphrase"),
    [
        ("Wolpertingers Gugelhupfrezept", ["wolpertingers", "gugelhupfrezept"], "hasenkuchenblatt"),
        (
            'Großmutters "Königskuchenförmchen" gehört den „Äpfelschmugglern“ & Söhnen.',
            ["großmutters", "königskuchenförmchen", "äpfelschmugglern"],
            "backwerkschale",
        ),
        ("The narwhalbicycle stands in the boathouse.", ["narwhalbicycle"], "unicornvelocipede"),
    ],
    ids=["two words", "quotes and umlauts", "paraphrased"],
)
def test_nothing_is_left_in_builds_and_runs_nor_of_what_was_made_of_it(
    server: Server, peer: AnthropicServer, text: str, words: list[str], paraphrase: str
) -> None:
    """A note of two words, one with quotes and umlauts, and one that summary, title and window say in other words."""
    peer.fallback = answers
    told = say(server, f"Please remember: {text}",
               reply(tool("memory_save", {"content": text})), reply(f"Saved: {text}"))  # fmt: skip
    (note,) = [row for row in server.get("memories/")["results"] if row["content"] == text]
    given = json.dumps([told["conversation"], text, paraphrase])
    server.manage("shell", "-v0", "-c", COPIES.format(given=given))
    assert traces(server, *words)
    assert traces(server, paraphrase)
    receipt = post(server, f"memories/{note['id']}/purge/", {"redact": True})
    assert receipt["left"] == [], receipt["left"]
    scrubbed(server, receipt)
    assert traces(server, *words, paraphrase) == {}
    with server.http as client:
        assert client.delete("/api/v1/capabilities/finder/").status_code == 204


def test_nothing_is_left_of_a_file(server: Server, peer: AnthropicServer) -> None:
    word, path = "quetzalparaffin", "/memories/wicks.txt"
    peer.fallback = answers
    written = {"command": "create", "path": path, "file_text": f"Wicks are made of {word}.\n"}
    changed = {"command": "str_replace", "path": path, "old_str": word, "new_str": f"{word} and beeswax"}
    say(server, "Please write that down.", reply(tool("memory", written)), reply(tool("memory", changed)),
        reply(tool("memory", {"command": "view", "path": path})), reply("Done."))  # fmt: skip
    (file,) = server.get("memory-files/")["results"]
    assert traces(server, word)
    receipt = post(server, f"memory-files/{file['id']}/purge/", {})
    assert receipt["left"] == [], receipt["left"]
    scrubbed(server, receipt)
    assert traces(server, word) == {}
    for _ in everywhere(server):
        assert not [
            hit for hit in post(server, "search/", {"query": word})["results"] if word in hit["text"]
        ]


def test_the_sweep_of_deleted_notes_leaves_as_little(server: Server, peer: AnthropicServer) -> None:
    word = "vermilionhedgesaw"
    peer.fallback = answers
    made = post(
        server,
        "memories/",
        {"content": f"The {word} hangs in the shed beside the roses.", "importance": 5},
    )
    say(server, "What have I got beside my roses, in the shed?",
        reply(tool("memory_search", {"query": "shed roses"})), reply("I see."))  # fmt: skip
    with server.http as client:
        assert client.delete(f"/api/v1/memories/{made['id']}/").status_code == 204
    server.database.execute(
        "update memory_memory set deleted_at = '2020-01-01' where deleted_at is not null"
    )
    assert traces(server, word)
    with working(server):
        swept = eventually(
            lambda: [
                row
                for row in server.get("memory-purges/")["results"]
                if row["by_sweep"] and row["purged_at"]
            ],
            lambda: server.get("memory-purges/"),
        )
        assert made["id"] in swept[0]["ids"]
        assert swept[0]["left"] == []
        scrubbed(server, swept[0])
    assert traces(server, word) == {}


def test_nothing_is_left_of_a_deleted_account(server: Server) -> None:
    """The last test of the module: the user is gone afterwards."""
    word = "cinnabarlapwing"
    post(server, "memories/", {"content": f"The {word} sings at dawn.", "tags": [word]})
    say(
        server,
        f"What does the {word} do?",
        reply(tool("memory_search", {"query": word})),
        reply(f"The {word} sings."),
    )
    command = {"command": "create", "path": "/memories/birds.txt", "file_text": f"{word}\n"}
    post(server, "memory-files/", command)
    assert traces(server, word)
    script = (
        "from apps.accounts.models import User\nfrom apps.accounts.services import user_delete\n"
        "user_delete(user=User.objects.get())"
    )
    server.manage("shell", "-v0", "-c", script)
    eventually(lambda: traces(server, word) == {}, lambda: traces(server, word))
