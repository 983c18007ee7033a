"""Settings from the environment and `.env` (each helper names the variable in what it raises), and this machine's names."""

import base64
import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from dotenv import load_dotenv
from dotenv.parser import parse_stream

from apps.core.db.engines import POSTGRESQL, sqlite_settings
from apps.core.text import strict_loads

BASE_DIR = Path(__file__).resolve().parent.parent

N = TypeVar("N", int, float)
Prices = tuple[float, float, float, float]
MAX_PRICE = 100_000
"""Dollars for a million tokens: more is a slip, and more than the ledger holds."""
MAX_WEIGHT = 1000


def load_env_file() -> None:
    """Read `.env` beside manage.py, or the file IZZY_ENV_FILE names (empty: none); the environment wins."""
    chosen = os.environ.get("IZZY_ENV_FILE")
    file = BASE_DIR / (".env" if chosen is None else chosen)
    if chosen == "" or (chosen is None and not file.exists()):
        return
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise ImproperlyConfigured(f"IZZY_ENV_FILE names {file}, which does not exist") from error
    except (OSError, ValueError) as error:  # ValueError: bytes that are no text
        reason = getattr(error, "strerror", "") or "it is not a text file in UTF-8"
        raise ImproperlyConfigured(f"{file} cannot be read: {reason}") from error
    for line in parse_stream(StringIO(text)):
        if line.error:  # what stands there is not repeated: it may be a key
            raise ImproperlyConfigured(f"{file}, line {line.original.line}: write NAME=value")
    load_dotenv(stream=StringIO(text))


def env_str(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def env_password(name: str) -> str:
    """A secret that somebody chose: "" or at least 16 characters, since it may be tried out from outside."""
    value = env_str(name)
    if value and len(value) < 16:
        raise ImproperlyConfigured(f"{name} must have at least 16 characters")
    return value


def env_bool(name: str, default: bool) -> bool:
    value = env_str(name).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be on or off, not {value!r}")


MAX_NUMBER = 10**12
"""More is a slip, and more than all that counts with it takes."""
MAX_DAYS = 36_500
MAX_SECONDS = 10**7


def env_number(name: str, default: N, *, minimum: float = 0, maximum: int = MAX_NUMBER) -> N:
    """A number of the default's kind."""
    text = env_str(name)
    try:
        value = type(default)(text) if text else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a number, not {text!r}") from error
    if not value >= minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}, not {text!r}")
    if value > maximum:
        raise ImproperlyConfigured(f"{name} must be at most {maximum:,}, not {text!r}")
    return value


def env_choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    value = env_str(name, default).lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def env_list(name: str, default: str = "") -> list[str]:
    """Comma-separated values."""
    return [part.strip() for part in env_str(name, default).split(",") if part.strip()]


HOST_NAME = re.compile(r"\*|\.?\w[\w.-]*|\[[\da-fA-F:.]+\]")


def env_hosts(name: str) -> list[str]:
    """Names of hosts, with commas between them, as the browser says them without a port; `.example.org` is all below it."""
    hosts = env_list(name)
    if not all(map(HOST_NAME.fullmatch, hosts)):
        example = "izzy.example.org or [fd00::1], without https:// and port"
        raise ImproperlyConfigured(f"{name} must hold names of hosts such as {example}")
    return hosts


def _address(name: str, text: str, example: str, fits: Callable[[SplitResult], object]) -> str:
    """Raises ImproperlyConfigured where it does not fit. What is refused is not repeated: it may hold a password."""
    try:
        parts = urlsplit(text)
        good = not text or (fits(parts) and (parts.port or 1) > 0)
    except ValueError:
        good = False
    if not good:
        raise ImproperlyConfigured(f"{name} must look like {example}")
    return text


def env_url(name: str, default: str = "") -> str:
    """An http or https address without a slash at its end."""
    text, example = (
        env_str(name, default).rstrip("/"),
        "https://api.example.org or http://127.0.0.1:11434",
    )
    return _address(
        name,
        text,
        example,
        lambda parts: parts.scheme in {"http", "https"} and re.fullmatch(r"\S+", parts.hostname or ""),
    )


def env_database(name: str, file: Path, connections: int) -> dict[str, Any]:
    """DATABASES' entry for the server's database that the variable names, for SQLite's `file` without one."""
    if address := env_str(name):
        return database_settings(address, connections, name)
    return sqlite_settings(file)


def database_settings(address: str, connections: int, name: str) -> dict[str, Any]:
    """DATABASES' entry for a database on a server; a process keeps at most so many connections to it open. Parameters of the
    address (`?sslmode=require`) are libpq's; `?prepare_threshold=off` keeps search from preparing its statements, for
    a proxy that does not know those. Raises ImproperlyConfigured, which calls the address `name`."""
    parts = urlsplit(
        _address(
            name,
            address,
            "postgresql://izzy:password@127.0.0.1:5432/izzy",
            lambda parts: parts.scheme in {"postgres", "postgresql"} and len(parts.path) > 1,
        )
    )
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    # Of server-side cursors alone: the ORM's put parameters into the text.
    options["prepare_threshold"] = None if options.get("prepare_threshold") == "off" else 5
    options["pool"] = {"min_size": 1, "max_size": connections, "timeout": 10}
    return {
        "ENGINE": POSTGRESQL,
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
        "CONN_HEALTH_CHECKS": True,
    }


def env_redis_url(name: str) -> str:
    """The address of a Redis."""
    return _address(
        name,
        env_str(name),
        "redis://127.0.0.1:6379/0",
        lambda parts: (
            parts.path
            if parts.scheme == "unix"
            else parts.scheme in {"redis", "rediss"} and parts.hostname
        ),
    )


def env_prices(name: str, default: Mapping[str, Prices]) -> dict[str, Prices]:
    """Prices of models by the beginning of their names: dollars per million tokens of input, output, input read from the
    cache and input written to it. JSON such as `{"my-model": [0.5, 1.5]}`, with two numbers (then cached input costs as
    much as other input) or all four; what it does not name costs as in `default`."""
    text = env_str(name)
    try:
        given = strict_loads(text) if text else {}
        found = {model: _prices(numbers) for model, numbers in given.items()}
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        example = '{"my-model": [0.5, 1.5]} or {"my-model": [3, 15, 0.3, 3.75]}'
        raise ImproperlyConfigured(f"{name} must be JSON such as {example}") from error
    return {**default, **found}


def _prices(numbers: list[float]) -> Prices:
    if len(numbers) not in {2, 4} or not all(
        type(number) in {int, float} and 0 <= number <= MAX_PRICE for number in numbers
    ):
        raise ValueError("two or four prices")
    sent, received, read, written = [*numbers, numbers[0], numbers[0]][:4]
    return float(sent), float(received), float(read), float(written)


def env_weights(name: str) -> dict[str, float]:
    """Numbers from 0 to 1,000 by name: JSON such as `{"date": 1.0}`."""
    text = env_str(name)
    try:
        given = strict_loads(text) if text else {}
        good = all(
            type(number) in {int, float} and 0 <= number <= MAX_WEIGHT for number in given.values()
        )
    except (AttributeError, ValueError, RecursionError):
        good = False
    if not good:
        raise ImproperlyConfigured(
            f'{name} must be JSON such as {{"date": 1.0}}, with numbers from 0 on'
        )
    return {key: float(number) for key, number in given.items()}


def env_path(name: str, default: str) -> Path:
    """An absolute path; a relative one counts from the folder of manage.py."""
    return (BASE_DIR / Path(env_str(name, default)).expanduser()).resolve()


STORE_OPTIONS = {"endpoint_url", "region_name", "addressing_style"}


def env_files(name: str, folder: Path) -> dict[str, Any]:
    """Django's storage for the files that all hosts need: `folder` itself, a folder that they share (`file:///srv/izzy`), or a
    bucket, or a part of one (`s3://bucket/part?endpoint_url=https://…&region_name=…`), whose keys come from AWS' variables."""
    text = env_str(name)
    example = "file:///srv/izzy or s3://bucket/folder?endpoint_url=https://s3.example.org"
    try:
        parts = urlsplit(text)
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must look like {example}") from error
    if (
        parts.scheme == "s3"
        and parts.netloc
        and "@" not in parts.netloc
        and set(options) <= STORE_OPTIONS
    ):
        place = {"bucket_name": parts.netloc, "location": parts.path.strip("/")}
        fixed = {"default_acl": None, "file_overwrite": False}
        return {"BACKEND": "apps.core.files.S3Files", "OPTIONS": {**place, **fixed, **options}}
    if parts.scheme == "file" and not parts.netloc and parts.path.strip("/") and not options:
        folder = Path(unquote(parts.path))
    elif text:  # it is not repeated: somebody may have put a key into it
        raise ImproperlyConfigured(f"{name} must look like {example}")
    # Only the user the server runs as reads them: sandboxes get copies of what they need.
    modes = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    backend = "django.core.files.storage.FileSystemStorage"
    return {"BACKEND": backend, "OPTIONS": {"location": folder, **modes}}


def env_secret(name: str, file: Path, make: Callable[[], str]) -> str:
    """The variable, else the content of `file`, which is made with a new key, readable by its owner only."""
    value = env_str(name)
    if value:
        return value
    try:
        kept = file.read_text().strip()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or "it is no text"
        raise ImproperlyConfigured(
            f"{file} cannot be read ({reason}); set {name} or IZZY_DATA_DIR"
        ) from error
    else:
        if kept:
            return kept
        hint = f"restore it from the backup, or delete it to have a new one made, or set {name}"
        raise ImproperlyConfigured(f"{file} is empty: {hint}")
    try:
        return _new_secret(file, make())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ImproperlyConfigured(
            f"{file} cannot be written ({reason}); set {name} or IZZY_DATA_DIR"
        ) from error


def fernet_key() -> str:
    """A new key of the form `cryptography.fernet` takes: 32 random bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _new_secret(file: Path, value: str) -> str:
    """Returns what the file then holds: another process may be first. It never shows half a key."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    part.touch(mode=0o600)
    try:
        part.write_text(value)
        try:
            os.link(part, file)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file.read_text().strip()


EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104  recognised here, not listened on
LOCAL = ["127.0.0.1", "localhost", "[::1]"]
OUTSIDE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of no machine (RFC 5737, RFC 3849): the way to them starts at this machine's main address."""


def allowed_hosts(listening: str, public_url: str, further: list[str]) -> list[str]:
    """This machine's own names, the public one, and what the operator adds."""
    own = own_names() if listening in EVERYWHERE else [_bracketed(listening)]
    public = public_host(public_url)
    return list(dict.fromkeys([*LOCAL, *own, *([public] if public else []), *further]))


def own_names() -> list[str]:
    """Name and addresses of this machine in its network."""
    name = socket.gethostname()
    return [name, f"{name}.local", *(_bracketed(found) for found in map(_own_address, OUTSIDE) if found)]


def public_host(url: str) -> str:
    """The host of IZZY_PUBLIC_URL, or "" without one. Raises ImproperlyConfigured for anything but scheme and host."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        beyond = parts.path or parts.query or parts.fragment or "@" in parts.netloc or parts.port == 0
    except ValueError:
        beyond, parts = "malformed", urlsplit("")
    named = re.fullmatch(r"\S+", parts.hostname or "")
    if beyond or parts.scheme not in {"http", "https"} or not (parts.hostname and named):
        raise ImproperlyConfigured("IZZY_PUBLIC_URL must look like https://izzy.example.org")
    return _bracketed(parts.hostname)


def _own_address(family: socket.AddressFamily) -> str:
    """Asks the routing table; a datagram socket that connects sends nothing."""
    try:
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe:
            probe.connect((OUTSIDE[family], 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
