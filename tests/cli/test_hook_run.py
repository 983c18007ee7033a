"""An installed hook runs the command line: an event on standard input, the server's answer on standard output, and never in the way."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from izzy_cli.hooks import doctor
from tests.cli.izzy import Izzy
from tests.waiting import PATIENCE

RULE = "The user wants answers in British English."


def event(name: str, **fields: object) -> str:
    return json.dumps({"hook_event_name": name, "session_id": "s1", **fields})


@pytest.fixture(autouse=True)
def _patient_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, no hook is called slow for it."""
    monkeypatch.setattr(doctor, "SECONDS", PATIENCE)
    monkeypatch.setattr(doctor, "SLOW_SECONDS", PATIENCE)


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening.getsockname()[1]


class Leading(ThreadingHTTPServer):
    """A server that leads every request on to another address of its own."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), LeadingOn)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class LeadingOn(BaseHTTPRequestHandler):
    server: Leading

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(302)
        self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()

    do_GET = do_POST  # noqa: N815  the library's name

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def leading() -> Iterator[Leading]:
    with Leading() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_session_is_held_with_a_server(izzy: Izzy) -> None:
    izzy.run("save", RULE, "--category", "standing").ok()
    started = json.loads(
        izzy.run("hook", "claude-code", given=event("SessionStart", source="startup")).out
    )
    assert RULE in started["hookSpecificOutput"]["additionalContext"]
    said = "I moved to Lisbon in May."
    for name, fields in {
        "UserPromptSubmit": {"prompt": said, "prompt_id": "p1"},
        "Stop": {"last_assistant_message": "How nice!", "prompt_id": "p1"},
    }.items():
        done = izzy.run("hook", "claude-code", given=event(name, **fields))
        assert (done.code, done.text, done.err) == (0, "{}", "")
    found = json.loads(izzy.run("search", "Lisbon", "--source", "conversation", "--json").ok().out)
    assert said in found["results"][0]["text"]


def test_the_plugin_of_claude_code_gives_its_own_server_and_token(izzy: Izzy) -> None:
    own = {"CLAUDE_PLUGIN_OPTION_URL": izzy.url, "CLAUDE_PLUGIN_OPTION_TOKEN": izzy.token}
    without = {"IZZY_URL": "", "IZZY_TOKEN": ""}
    assert izzy.run("hook", "claude-code", given=event("Notification"), **without, **own).text == "{}"


@pytest.mark.parametrize(
    ("given", "environment", "sentence"),
    [
        (event("Stop"), {"IZZY_TOKEN": "izzy_wrong"}, "401"),
        (event("Stop"), {"IZZY_URL": "http://127.0.0.1:1"}, "does not answer"),
        (event("Stop"), {"IZZY_URL": "", "IZZY_TOKEN": ""}, "not signed in"),
        (event("Stop"), {"IZZY_URL": "ftp://x"}, "must look like"),
        ("no json", {}, "400"),
        ("", {}, "400"),
    ],
)
def test_whatever_goes_wrong_the_client_goes_on(
    izzy: Izzy, given: str, environment: dict[str, str], sentence: str
) -> None:
    done = izzy.run("hook", "codex", given=given, **environment)
    assert (done.code, done.out) == (0, b"")
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1


def test_a_server_that_hangs_is_not_waited_for(izzy: Izzy, silent: int) -> None:
    started = time.monotonic()
    done = izzy.run("hook", "cursor", given=event("stop"), IZZY_URL=f"http://127.0.0.1:{silent}")
    assert (done.code, done.out) == (0, b"")
    assert "within 3 seconds" in done.err
    assert time.monotonic() - started < PATIENCE


def test_an_event_whose_end_never_comes_is_not_waited_for(izzy: Izzy) -> None:
    command = [izzy.command, "-m", "izzy_cli", "hook", "claude-code"]
    hook = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=izzy.variables())
    with hook:
        assert hook.wait(PATIENCE) == 0
        assert hook.stderr is not None
        assert hook.stderr.read() == b"izzy hook claude-code: Izzy did not answer within 3 seconds.\n"


def test_the_token_goes_to_no_address_that_a_server_leads_on_to(izzy: Izzy, leading: Leading) -> None:
    done = izzy.run("hook", "cursor", given=event("stop"), IZZY_URL=leading.url)
    assert (done.code, done.out) == (0, b"")
    assert "302" in done.err
    assert leading.asked == ["/api/v1/hooks/cursor/"]


def test_somebody_who_types_it_is_told_what_it_is_for(izzy: Izzy) -> None:
    with izzy.terminal("hook", "claude-code") as terminal:
        terminal.expect("This is for Claude Code")
        assert terminal.end() == 2


def findings(izzy: Izzy, **environment: str) -> dict[str, dict[str, object]]:
    """Returns what the doctor says of hooks, by the check's name."""
    checks = json.loads(izzy.run("doctor", "--json", **environment).out)["checks"]
    return {check["name"]: check for check in checks if "(user)" in check["name"]}


def test_the_doctor_runs_each_hook_and_says_what_came_back(izzy: Izzy) -> None:
    izzy.run("save", RULE, "--category", "standing").ok()
    izzy.run("hook", "install", "claude-code", "--http", "--yes").ok()
    izzy.run("hook", "install", "cursor", "--yes").ok()
    found = findings(izzy)
    assert all(check["ok"] for check in found.values()), found
    assert "standing note" in str(found["Claude Code SessionStart (user)"]["message"])
    assert "nothing to say, in" in str(found["Claude Code Stop (user)"]["message"])
    assert " ms." in str(found["Cursor beforeSubmitPrompt (user)"]["message"])
    kept = json.loads(izzy.run("conversations", "--json").ok().out)["results"]
    assert "izzy doctor" not in {row["session"] for row in kept}


def test_the_doctor_finds_hooks_that_fail_without_a_word(izzy: Izzy) -> None:
    izzy.run("hook", "install", "claude-code", "--command", "--yes").ok()
    izzy.run("hook", "install", "gemini-cli", "--yes").ok()
    claude, gemini = (izzy.home / name / "settings.json" for name in (".claude", ".gemini"))
    claude.write_text(
        re.sub(r'"[^"]*hook claude-code"', '"/nowhere/izzy hook claude-code"', claude.read_text())
    )
    settings = json.loads(gemini.read_text())
    del settings["hooks"]["AfterAgent"]
    gemini.write_text(json.dumps(settings))
    found = findings(izzy)
    broken = found["Claude Code Stop (user)"]
    assert not broken["ok"]
    assert "exit code 127" in str(broken["message"])
    assert found["Gemini CLI SessionEnd (user)"]["ok"]
    assert "AfterAgent" in str(found["Gemini CLI hooks (user)"]["message"])


def test_the_doctor_misses_the_token_that_claude_code_is_to_send(izzy: Izzy) -> None:
    izzy.run("hook", "install", "claude-code", "--http", "--yes").ok()
    config = izzy.home / ".config" / "izzy" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'url = "{izzy.url}"\ntoken = "{izzy.token}"\n')
    found = findings(izzy, IZZY_TOKEN="", IZZY_URL="")
    assert "IZZY_TOKEN is not set" in str(found["Claude Code UserPromptSubmit (user)"]["message"])
