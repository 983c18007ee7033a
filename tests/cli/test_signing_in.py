"""Signing in: what is checked, what is kept, what is never shown."""

import stat
from pathlib import Path

import pytest

from izzy_cli.commands import account
from tests.chat.server import Server
from tests.cli.izzy import Izzy
from tests.peers.prepared import Person


@pytest.fixture
def stranger(tmp_path: Path) -> Izzy:
    return Izzy(tmp_path)


@pytest.fixture
def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


def test_a_token_that_is_piped_in_is_checked_and_kept_for_its_owner_alone(
    stranger: Izzy, server: Server, person: Person, url: str
) -> None:
    done = stranger.run("login", url, "--token-stdin", given=server.token + "\n").ok()
    assert f"as {person.name}" in done.text
    assert server.token not in done.text + done.err
    file = stranger.home / ".config" / "izzy" / "config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert person.name in stranger.run("status").ok().text


def test_a_token_that_is_typed_is_not_shown(
    stranger: Izzy, server: Server, person: Person, url: str
) -> None:
    with stranger.terminal("login") as terminal:
        terminal.expect("Server")
        terminal.line(url)
        terminal.expect("API token")
        terminal.line(server.token)
        terminal.expect(f"as {person.name}")
        assert terminal.end() == 0
    assert server.token not in terminal.text


def test_a_token_that_is_not_accepted_is_not_kept(stranger: Izzy, url: str) -> None:
    done = stranger.run("login", url, "--token-stdin", given="izzy_" + "x" * 43)
    assert done.code == 3
    assert "unknown, expired or revoked" in done.err
    assert not (stranger.home / ".config").exists()


@pytest.mark.parametrize("given", ["", "two words", "izzy_\x1b[31m", "izzy_é"])
def test_what_is_no_token_is_not_sent(stranger: Izzy, given: str) -> None:
    done = stranger.run("login", "http://127.0.0.1:1", "--token-stdin", given=given)
    assert done.code == 3
    assert "This is not an API token" in done.err


def test_without_a_terminal_nobody_is_asked(stranger: Izzy, url: str) -> None:
    done = stranger.run("login", url)
    assert done.code == 2
    assert "--token-stdin" in done.err


def test_a_saved_token_is_sent_to_no_other_server(stranger: Izzy, server: Server, url: str) -> None:
    stranger.run("login", url, "--token-stdin", given=server.token).ok()
    done = stranger.run("list", IZZY_URL=f"http://localhost:{server.port}")
    assert done.code == 3
    assert "There is no token for http://localhost" in done.err


def test_the_environment_comes_before_what_was_saved(stranger: Izzy, server: Server, url: str) -> None:
    stranger.run("login", url, "--token-stdin", given=server.token).ok()
    assert stranger.run("status", IZZY_TOKEN="izzy_wrong").code == 3
    assert stranger.run("status", IZZY_URL=f"{url}/api/v1/").ok()


def test_signing_out_deletes_the_token(stranger: Izzy, server: Server, url: str) -> None:
    stranger.run("login", url, "--token-stdin", given=server.token).ok()
    stranger.run("logout").ok()
    assert stranger.run("status").code == 3
    assert "not signed in" in stranger.run("logout").ok().text


def test_a_configuration_that_is_broken_is_not_quoted(stranger: Izzy) -> None:
    file = stranger.home / ".config" / "izzy" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('url = "http://127.0.0.1:1"\ntoken = izzy_secret\n')
    done = stranger.run("status")
    assert done.code == 1
    assert "izzy_secret" not in done.err


def test_the_status_says_what_the_token_may_do(izzy: Izzy, person: Person) -> None:
    lines = izzy.run("status").ok().text
    assert person.name in lines
    assert "test (read, write)" in lines


def test_signing_in_repairs_a_configuration_that_is_broken(
    stranger: Izzy, server: Server, person: Person, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "DEFAULT_URL", url)
    file = stranger.home / ".config" / "izzy" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("url = http")
    stranger.run("login", "--token-stdin", given=server.token).ok()
    assert person.name in stranger.run("status").ok().text
