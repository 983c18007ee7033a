"""Settings from the environment: what they take, what they refuse, and what they make."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http.request import validate_host

import manage
from apps.search.embedders.own import MINILM, OWN
from izzysite import env
from izzysite.env import allowed_hosts, public_host


@pytest.mark.parametrize(
    ("text", "value"),
    [("on", True), ("YES", True), ("1", True), ("off", False), ("0", False), ("", True)],
)
def test_a_switch_is_on_or_off(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv("IZZY_X", text)
    assert env.env_bool("IZZY_X", True) is value


def test_what_does_not_fit_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IZZY_X", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="IZZY_X"):
        env.env_bool("IZZY_X", True)
    for default in (1, 1.0):
        with pytest.raises(ImproperlyConfigured, match="IZZY_X"):
            env.env_number("IZZY_X", default)
    monkeypatch.setenv("IZZY_X", "3")
    with pytest.raises(ImproperlyConfigured, match="at least 5"):
        env.env_number("IZZY_X", 10, minimum=5)
    for many in ("1e400", "inf", "7"):
        monkeypatch.setenv("IZZY_X", many)
        with pytest.raises(ImproperlyConfigured, match="at most 6"):
            env.env_number("IZZY_X", 1.0, maximum=6)
    monkeypatch.setenv("IZZY_X", "nan")
    with pytest.raises(ImproperlyConfigured, match="IZZY_X"):
        env.env_number("IZZY_X", 1.0)


TABLE = {"claude": (3.0, 15.0, 0.3, 3.75)}


def test_prices_are_added_to_those_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.env_prices("IZZY_X", TABLE) == TABLE
    monkeypatch.setenv("IZZY_X", '{"qwen": [0, 0.5], "claude": [1, 2, 3, 4]}')
    assert env.env_prices("IZZY_X", TABLE) == {
        "qwen": (0.0, 0.5, 0.0, 0.0),
        "claude": (1.0, 2.0, 3.0, 4.0),
    }


@pytest.mark.parametrize(
    "text",
    [
        "3, 15",
        "[]",
        "7",
        '{"a": 3}',
        '{"a": [3]}',
        '{"a": [3, 15, 1]}',
        '{"a": ["3", "15"]}',
        '{"a": [true, 1]}',
        '{"a": [-1, 1]}',
        '{"a": [NaN, 1]}',
        '{"a": [1e999, 1]}',
        '{"a": [1000000, 1]}',
        '{"a": "ab"}',
        "[" * 100_000,
    ],
)
def test_prices_that_are_none_are_told_at_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("IZZY_X", text)
    with pytest.raises(ImproperlyConfigured, match="IZZY_X must be JSON such as"):
        env.env_prices("IZZY_X", TABLE)


def test_hosts_are_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IZZY_X", "izzy.example.org, .home, *, [fd00::1], nas_2")
    assert env.env_hosts("IZZY_X") == ["izzy.example.org", ".home", "*", "[fd00::1]", "nas_2"]
    for wrong in ("https://izzy.example.org", "izzy.example.org:8443", "a b", "izzy.example.org/"):
        monkeypatch.setenv("IZZY_X", f"ok,{wrong}")
        with pytest.raises(ImproperlyConfigured, match="without https://"):
            env.env_hosts("IZZY_X")


def test_a_time_that_no_date_holds_is_told_at_the_start() -> None:
    """The worker would fail at it again and again."""
    environment = os.environ | {"IZZY_EXECUTION_DAYS": "999999", "IZZY_ENV_FILE": ""}
    command = [sys.executable, "-c", "import izzysite.settings"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "IZZY_EXECUTION_DAYS must be at most 36,500" in done.stderr


def test_a_command_prints_also_where_the_locale_lacks_signs(tmp_path: Path) -> None:
    code = "import sys, manage; sys.argv = ['manage.py', 'version']; manage.main(); print('a – b')"
    environment = os.environ | {"PYTHONIOENCODING": "latin-1", "IZZY_DATA_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("a ? b\n"), done.stderr


def test_control_c_ends_a_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: object, *args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("apps.memory.management.commands.reindex.Command.handle", interrupted)
    monkeypatch.setattr("sys.argv", ["manage.py", "reindex", "--skip-checks"])
    with pytest.raises(SystemExit) as end:
        manage.main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_lists_and_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IZZY_X", " a, ,b ,")
    assert env.env_list("IZZY_X") == ["a", "b"]
    monkeypatch.setenv("IZZY_X", str(tmp_path))
    assert env.env_path("IZZY_X", "data") == tmp_path
    monkeypatch.setenv("IZZY_X", "elsewhere")
    assert env.env_path("IZZY_X", "data") == Path(settings.BASE_DIR) / "elsewhere"


def test_a_key_is_made_once_also_by_many_at_a_time_and_for_its_owners_eyes_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "key"
    numbers = iter(range(1000))
    with ThreadPoolExecutor(20) as pool:
        made = list(
            pool.map(lambda _: env.env_secret("IZZY_X", file, lambda: f"key{next(numbers)}"), range(20))
        )
    assert len(set(made)) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in file.parent.iterdir()] == ["key"]


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IZZY_X", "from outside")
    assert env.env_secret("IZZY_X", tmp_path / "key", lambda: "made") == "from outside"
    assert not (tmp_path / "key").exists()


def test_a_folder_that_cannot_be_made_is_told_with_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="IZZY_DATA_DIR"):
        env.env_secret("IZZY_X", tmp_path / "file" / "key", lambda: "made")


def test_the_env_file_counts_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("IZZY_CHAT_MODEL=from-file\nIZZY_FAST_MODEL=from-file\n")
    program = "from django.conf import settings as s; print(s.IZZY_CHAT_MODEL, s.IZZY_FAST_MODEL)"
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_ENV_FILE": str(tmp_path / "env"),
        "IZZY_FAST_MODEL": "from-environment",
    }
    assert printed(program, environment) == ["from-file", "from-environment"]


def printed(program: str, environment: Mapping[str, str]) -> list[str]:
    """The words that a program prints in a process of its own."""
    command, folder = [sys.executable, "-c", program], settings.BASE_DIR
    return subprocess.check_output(command, env=environment, cwd=folder, text=True).split()


def test_on_ones_own_machine_only_its_own_names_are_answered() -> None:
    allowed = allowed_hosts("127.0.0.1", "", [])
    assert allowed == ["127.0.0.1", "localhost", "[::1]"]
    assert allowed_hosts("::1", "", []) == allowed


def test_in_a_network_the_machines_name_and_address_are_answered_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        env, "_own_address", lambda family: "192.168.1.5" if family == socket.AF_INET else "fd00::5"
    )
    allowed = allowed_hosts("0.0.0.0", "https://izzy.example.org", ["izzy.lan"])
    name = socket.gethostname()
    for host in (
        name.lower(),
        f"{name}.local".lower(),
        "192.168.1.5",
        "[fd00::5]",
        "izzy.example.org",
        "izzy.lan",
    ):
        assert validate_host(host, [entry.lower() for entry in allowed]), host
    for host in ("evil.example", "192.168.1.6", ""):
        assert not validate_host(host, allowed), host


def test_finding_the_own_address_fails_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "OUTSIDE", {socket.AF_INET: "not an address"})
    assert env.own_names() == [socket.gethostname(), f"{socket.gethostname()}.local"]


@pytest.mark.parametrize(
    "url",
    [
        "izzy.example.org",
        "ftp://x",
        "https://",
        "https://x/path",
        "https://x?y",
        "https://x#y",
        "javascript:1",
        "https://[x",
        "https://x:99999",
        "https://me:hunter2@x",
    ],
)
def test_a_public_address_is_scheme_and_host(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="IZZY_PUBLIC_URL"):
        public_host(url)


@pytest.mark.parametrize(
    "address",
    [
        "http://[",
        "http://a b",
        "ftp://example.org",
        "http://a:99999",
        "example.org",
        "http://me:hunter2@[",
    ],
)
def test_a_malformed_address_of_a_server_is_told_at_the_start_without_its_password(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("IZZY_X", address)
    with pytest.raises(ImproperlyConfigured, match="IZZY_X") as told:
        env.env_url("IZZY_X")
    assert "hunter2" not in str(told.value)


def test_an_address_of_a_server_loses_the_slash_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IZZY_X", "http://127.0.0.1:11434/")
    assert env.env_url("IZZY_X") == "http://127.0.0.1:11434"
    monkeypatch.setenv("IZZY_X", "")
    assert env.env_url("IZZY_X") == ""


@pytest.mark.parametrize(
    "address",
    ["redis://127.0.0.1:6379/0", "rediss://:hunter2@redis.example.org", "unix:///run/redis.sock", ""],
)
def test_the_address_of_a_redis(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("IZZY_X", address)
    assert env.env_redis_url("IZZY_X") == address


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "127.0.0.1:6379",
        "http://:hunter2@127.0.0.1",
        "redis://",
        "redis://a:b:c",
        "redis://a:99999",
        "unix:",
    ],
)
def test_what_is_no_address_of_a_redis_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("IZZY_X", address)
    with pytest.raises(ImproperlyConfigured, match="IZZY_X must look like redis://") as told:
        env.env_redis_url("IZZY_X")
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(("found", "named"), [("True", "minilm"), ("None", "static")])
def test_the_encoder_that_comes_along_is_in_use_where_its_weights_are(found: str, named: str) -> None:
    (file,) = OWN[MINILM].parts
    code = (
        f"import importlib.util as util; util.find_spec = lambda name: {found} if name == {file.split('/')[0]!r} else 0 / 0;"
        "from izzysite import settings; print(settings.IZZY_EMBEDDER)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "IZZY_EMBEDDER"}
    assert printed(code, environment) == [named]
