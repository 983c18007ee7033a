"""Izzy's hooks in the settings of coding agents: put in beside what is there, and taken out again."""

import json
import stat
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from izzy_cli.hooks import clients, run
from izzy_cli.hooks.jsontext import JsonText, NotJson
from tests.cli.izzy import Izzy

FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini-cli": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
}
SERVERS = {
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
    "cursor": ".cursor/mcp.json",
}


@pytest.fixture
def izzy(tmp_path: Path) -> Izzy:
    """Installing asks no server."""
    return Izzy(tmp_path, "http://127.0.0.1:8123", "izzy_" + "x" * 43)


def put(izzy: Izzy, name: str, text: str) -> Path:
    file = izzy.home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def entries(file: Path, event: str) -> list[dict[str, Any]]:
    """An event's hooks, out of their groups."""
    listed = json.loads(file.read_text())["hooks"][event]
    return [hook for entry in listed for hook in entry.get("hooks", [entry])]


def test_each_client_that_is_run_is_one_that_can_be_installed() -> None:
    assert set(run.CLIENTS) == set(clients.CLIENTS) == set(FILES)


@pytest.mark.parametrize("client", FILES)
def test_what_is_installed_into_nothing_is_removed_without_a_trace(izzy: Izzy, client: str) -> None:
    done = izzy.run("hook", "install", client, "--yes", "--mcp").ok()
    file = izzy.home / FILES[client]
    assert f"+++ {file}" in done.text
    for event in clients.CLIENTS[client].events:
        assert len(entries(file, event)) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "installed already" in izzy.run("hook", "install", client, "--yes", "--mcp").ok().text
    izzy.run("hook", "remove", client, "--yes").ok()
    assert not file.exists()
    assert not (izzy.home / SERVERS[client]).exists()
    assert "not installed" in izzy.run("hook", "remove", client, "--yes").ok().text


OWN = """{
\t// what I like
\t"theme": "dark",   "unknown": [1, 2,
\t\t3],
\t"hooks": {
\t\t"Stop": [ {"hooks": [ {"type": "command", "command": "say done"} ]} ], /* mine */
\t\t"PreToolUse": []
\t},
\t"mcpServers": {"other": {"command": "x"}},
\t"last": null
}
"""


@pytest.mark.parametrize("client", ["claude-code", "gemini-cli"])
def test_what_was_there_stays_to_the_byte(izzy: Izzy, client: str) -> None:
    for own in (OWN, OWN.replace("\n", "\r\n"), OWN.replace("\t", "    "), "\ufeff" + OWN):
        file = put(izzy, FILES[client], own)
        izzy.run("hook", "install", client, "--yes").ok()
        after = file.read_bytes().decode()
        assert "// what I like" in after
        assert "say done" in after
        assert ("\r\n" in own) == ("\r\n" in after)
        izzy.run("hook", "remove", client, "--yes").ok()
        assert file.read_bytes().decode() == own


EMPTY = [
    ("claude-code", ".claude/settings.json", '// mine\n{\n\t"a": 1,\n\t"hooks": {}, // none yet\n}'),
    ("claude-code", ".claude/settings.json", ""),
    ("claude-code", ".claude/settings.json", "{ }\n"),
    ("gemini-cli", ".gemini/settings.json", '{"hooks": {"BeforeAgent": []}, "mcpServers": { }}'),
    ("cursor", ".cursor/hooks.json", '{"version":2,"hooks":{ "stop" : [ ] }}'),
    ("codex", ".codex/config.toml", 'model = "a"\r\n[tui]\r\nx = 1'),
]


@pytest.mark.parametrize(("client", "name", "text"), EMPTY)
def test_what_was_empty_is_there_again_to_the_byte(
    izzy: Izzy, client: str, name: str, text: str
) -> None:
    file = put(izzy, name, text)
    izzy.run("hook", "install", client, "--yes", "--mcp").ok()
    assert file.read_bytes() != text.encode()
    izzy.run("hook", "remove", client, "--yes").ok()
    assert file.read_bytes() == text.encode()


def test_what_was_changed_since_is_not_put_back(izzy: Izzy) -> None:
    file = put(izzy, FILES["gemini-cli"], '{"hooks": {}, "theme": "dark"}')
    izzy.run("hook", "install", "gemini-cli", "--yes").ok()
    file.write_text(file.read_text().replace("dark", "light"))
    izzy.run("hook", "install", "gemini-cli", "--yes", "--mcp").ok()
    izzy.run("hook", "remove", "gemini-cli", "--yes").ok()
    assert json.loads(file.read_text()) == {"theme": "light"}


def test_in_the_home_folder_there_is_no_project_beside_the_user(
    izzy: Izzy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(izzy.home)
    shown = json.loads(izzy.run("hook", "status", "--json").ok().text)
    assert [row["level"] for row in shown["clients"]] == ["user"] * len(FILES)


def test_a_hook_that_was_put_into_a_group_of_others_is_taken_out_alone(izzy: Izzy) -> None:
    mine = {"type": "command", "command": "say done"}
    ours = {"type": "command", "command": "izzy hook claude-code"}
    file = put(izzy, FILES["claude-code"], json.dumps({"hooks": {"Stop": [{"hooks": [mine, ours]}]}}))
    izzy.run("hook", "remove", "claude-code", "--yes").ok()
    assert entries(file, "Stop") == [mine]


def test_hooks_that_were_changed_by_hand_are_brought_up_to_date(izzy: Izzy) -> None:
    izzy.run("hook", "install", "claude-code", "--command", "--yes").ok()
    file = izzy.home / FILES["claude-code"]
    izzy.run("hook", "install", "claude-code", "--http", "--yes").ok()
    [prompt] = entries(file, "UserPromptSubmit")
    assert prompt["type"] == "http"
    assert prompt["url"] == "http://127.0.0.1:8123/api/v1/hooks/claude-code/"
    assert prompt["headers"] == {"Authorization": "Bearer $IZZY_TOKEN"}
    assert prompt["allowedEnvVars"] == ["IZZY_TOKEN"]
    [start] = entries(file, "SessionStart")
    assert (start["type"], start["command"].endswith("hook claude-code")) == ("command", True)
    file.write_text(file.read_text().replace("8123", "9999"))
    izzy.run("hook", "install", "claude-code", "--http", "--yes").ok()
    assert [hook["url"] for hook in entries(file, "Stop")] == [prompt["url"]]


def test_a_stop_that_runs_a_command_does_not_keep_claude_code_waiting(izzy: Izzy) -> None:
    izzy.run("hook", "install", "claude-code", "--command", "--yes").ok()
    [stop] = entries(izzy.home / FILES["claude-code"], "Stop")
    assert stop["async"] is True


def test_without_a_token_in_the_environment_claude_code_runs_commands(izzy: Izzy) -> None:
    put(izzy, ".config/izzy/config.toml", f'url = "{izzy.url}"\ntoken = "{izzy.token}"\n')
    izzy.run("hook", "install", "claude-code", "--yes", IZZY_TOKEN="", IZZY_URL="").ok()
    file = izzy.home / FILES["claude-code"]
    assert {hook["type"] for hook in entries(file, "UserPromptSubmit")} == {"command"}
    assert izzy.token not in file.read_text()


@pytest.mark.parametrize("client", FILES)
def test_no_file_holds_the_token(izzy: Izzy, client: str) -> None:
    izzy.run("hook", "install", client, "--yes", "--mcp").ok()
    for file in izzy.home.rglob("*"):
        assert not file.is_file() or izzy.token not in file.read_text()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"hooks": ', "line 1 is not valid JSON"),
        ('{\n"hooks": {,}}', "line 2 is not valid JSON"),
        ("[]", "must hold a JSON object"),
        ('{"hooks": []}', "must be an object"),
        ('{"hooks": {"Stop": {}}}', "must be a list"),
        ('{"a": 1} {"b": 2}', "not valid JSON"),
    ],
)
def test_settings_that_are_broken_get_a_sentence_and_stay(izzy: Izzy, text: str, sentence: str) -> None:
    file = put(izzy, FILES["claude-code"], text)
    done = izzy.run("hook", "install", "claude-code", "--yes")
    assert done.code == 1
    assert sentence in done.err
    assert file.read_text() == text
    assert list(file.parent.iterdir()) == [file]


def test_settings_that_are_no_utf8_stay(izzy: Izzy) -> None:
    file = put(izzy, FILES["cursor"], "{}")
    file.write_bytes(b"\xff\xfe{}")
    done = izzy.run("hook", "install", "cursor", "--yes")
    assert (done.code, file.read_bytes()) == (1, b"\xff\xfe{}")
    assert "not UTF-8" in done.err


def test_nobody_is_asked_without_a_terminal_and_nothing_written(izzy: Izzy) -> None:
    done = izzy.run("hook", "install", "cursor")
    assert done.code == 2
    assert "--yes" in done.err
    assert "+++" in done.text
    assert not (izzy.home / FILES["cursor"]).exists()
    assert izzy.run("hook", "install", "cursor", "--dry-run").code == 0
    assert not (izzy.home / FILES["cursor"]).exists()


def test_on_a_terminal_the_changes_are_shown_before_a_yes(izzy: Izzy) -> None:
    file = izzy.home / FILES["cursor"]
    for answer, code in (("n", 1), ("y", 0)):
        with izzy.terminal("hook", "install", "cursor") as terminal:
            terminal.expect("hook cursor")
            terminal.expect("Write this?")
            assert not file.exists()
            terminal.line(answer)
            assert terminal.end() == code
    assert file.exists()


def test_a_copy_of_what_was_there_is_kept_and_the_mode_stays(izzy: Izzy) -> None:
    file = put(izzy, FILES["gemini-cli"], '{"theme": "dark"}\n')
    file.chmod(0o640)
    izzy.run("hook", "install", "gemini-cli", "--yes").ok()
    assert file.with_name("settings.json.izzy-backup").read_text() == '{"theme": "dark"}\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_settings_behind_a_link_stay_behind_it(izzy: Izzy) -> None:
    target = put(izzy, "dotfiles/hooks.json", '{"version": 1}\n')
    link = izzy.home / FILES["cursor"]
    link.parent.mkdir()
    link.symlink_to(target)
    izzy.run("hook", "install", "cursor", "--yes").ok()
    assert link.is_symlink()
    assert "sessionStart" in target.read_text()


def test_a_project_has_settings_of_its_own(
    izzy: Izzy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    izzy.run("hook", "install", "claude-code", "--project", "--mcp", "--yes").ok()
    assert (project / ".claude" / "settings.json").exists()
    assert json.loads((project / ".mcp.json").read_text())["mcpServers"]["izzy"]["type"] == "http"
    assert not (izzy.home / ".claude").exists()
    shown = json.loads(izzy.run("hook", "status", "claude-code", "--json").ok().text)["clients"]
    assert [(row["level"], bool(row["hooks"]), row["mcp"]) for row in shown] == [
        ("user", False, False),
        ("project", True, True),
    ]


CONFIG = """# mine
model = "gpt-6"

[[hooks.Stop]]
[[hooks.Stop.hooks]]
type = "command"
command = "say done"
"""


def test_codex_keeps_its_hooks_in_the_one_file_that_it_has_them_in(izzy: Izzy) -> None:
    file = put(izzy, ".codex/config.toml", CONFIG)
    izzy.run("hook", "install", "codex", "--mcp", "--yes").ok()
    settings = tomllib.loads(file.read_text())
    assert settings["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
    assert len(settings["hooks"]["Stop"]) == 2
    assert settings["mcp_servers"]["izzy"]["bearer_token_env_var"] == "IZZY_TOKEN"
    assert not (izzy.home / ".codex" / "hooks.json").exists()
    assert "installed already" in izzy.run("hook", "install", "codex", "--mcp", "--yes").text
    assert "hooks for SessionStart" in izzy.run("hook", "status", "codex").ok().text
    izzy.run("hook", "remove", "codex", "--yes").ok()
    assert file.read_text() == CONFIG


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model = \n", "not valid TOML"),
        ('[mcp_servers.izzy]\nurl = "http://elsewhere"\n', "already"),
        ("mcp_servers = {}\n", "cannot be added to"),
    ],
)
def test_a_config_of_codex_that_cannot_be_added_to_stays(izzy: Izzy, text: str, sentence: str) -> None:
    file = put(izzy, ".codex/config.toml", text)
    done = izzy.run("hook", "install", "codex", "--mcp", "--yes")
    assert done.code == 1
    assert sentence in done.err
    assert file.read_text() == text
    assert not (izzy.home / ".codex" / "hooks.json").exists()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=4),
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.lists(JSON_VALUES, max_size=3),
    st.booleans(),
)
def test_what_is_added_to_any_json_is_there_and_can_be_taken_out_again(
    own: dict[str, Any], indent: int | str | None, listed: list[Any], windows: bool
) -> None:
    text = json.dumps({**own, "hooks": {"Stop": listed}}, indent=indent)
    text = text.replace("\n", "\r\n") if windows else text
    document = JsonText(text)
    document.add(["hooks", "Stop"], {"new": [1]})
    document.add(["hooks", "Start"], [{"new": {}}])
    assert json.loads(document.text) == {
        **own,
        "hooks": {"Stop": [*listed, {"new": [1]}], "Start": [{"new": {}}]},
    }
    document.remove(["hooks", "Start"])
    document.remove(["hooks", "Stop", len(listed)])
    assert document.text == text


@given(st.text(alphabet='{}[]",:/* \n1a\\', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """JSON is read as it is; beyond that only comments and commas at an end are taken."""
    try:
        known = json.loads(text)
    except ValueError:
        with suppress(NotJson):
            JsonText(text)
            assert not text.strip() or any(sign in text for sign in ("//", "/*", ","))
        return
    assert JsonText(text).plain() == known


def test_deep_json_is_refused_and_not_followed_to_the_end() -> None:
    with pytest.raises(NotJson):
        JsonText("[" * sys.getrecursionlimit() * 10)
