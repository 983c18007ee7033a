"""Which server, and with which token: IZZY_URL and IZZY_TOKEN, else what `izzy login` saved."""

import json
import os
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from izzy_cli.errors import Exit, Problem

LOOPBACK = ("localhost", "127.0.0.1", "::1")
API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Account:
    """A server's address, without a slash at its end, and a token for it (perhaps "")."""

    url: str
    token: str


def config_file() -> Path:
    """`izzy/config.toml` in XDG_CONFIG_HOME or ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(home) if os.path.isabs(home) else Path.home() / ".config"
    return folder / "izzy" / "config.toml"


def saved() -> Account:
    """The account that `izzy login` saved; empty where nothing was."""
    file = config_file()
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Account("", "")
    except OSError as error:
        raise Problem(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:  # what it says may quote the token
        raise Problem(f"{file} is not valid TOML. Sign in again: izzy login") from None
    url, token = (values.get(name, "") for name in ("url", "token"))
    if not isinstance(url, str) or not isinstance(token, str):
        raise Problem(f"url and token in {file} must be texts. Sign in again: izzy login")
    return Account(url, token)


def present() -> Account:
    """The account that commands use. A saved token is only sent to the server that it was saved for.

    Raises Problem (SIGNED_OUT) where there is no address or no token.
    """
    url, token = os.environ.get("IZZY_URL", "").strip(), os.environ.get("IZZY_TOKEN", "").strip()
    known = Account("", "") if url and token else saved()
    address = clean_url(url or known.url) if url or known.url else ""
    if not address:
        raise Problem("You are not signed in. Sign in with: izzy login", Exit.SIGNED_OUT)
    if not token and known.url and clean_url(known.url) == address:
        token = known.token
    if not token:
        message = f"There is no token for {address}. Sign in with izzy login, or set IZZY_TOKEN."
        raise Problem(message, Exit.SIGNED_OUT)
    return Account(address, clean_token(token))


def save(account: Account) -> Path:
    """Write the account to the configuration file, for its owner's eyes only (mode 600)."""
    file = config_file()
    text = f"url = {json.dumps(account.url)}\ntoken = {json.dumps(account.token)}\n"
    partial = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
        partial.replace(file)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise Problem(f"{file} cannot be written: {error.strerror}.") from None
    return file


def forget() -> bool:
    """Delete the configuration file; whether there was one."""
    file = config_file()
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Problem(f"{file} cannot be deleted: {error.strerror}.") from None
    return True


def clean_url(given: str) -> str:
    """The address of a server as typed: with a scheme, without a slash or `/api/v1` at its end. Raises Problem."""
    text = given.strip()
    if "://" not in text:
        bare = _split(f"//{text}").hostname or ""
        text = f"{'http' if bare in LOOPBACK else 'https'}://{text}"
    parts = _split(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or any(map(str.isspace, text)):
        message = (
            "The server's address must look like http://127.0.0.1:8000 or https://izzy.example.com."
        )
        raise Problem(message, Exit.USAGE)
    if parts.username is not None or parts.password is not None:
        raise Problem("The server's address must not hold a name or password.", Exit.USAGE)
    path = parts.path.rstrip("/").removesuffix(API).rstrip("/")
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path}"


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise Problem("This is not the address of a server.", Exit.USAGE) from None
    return parts


def is_in_the_clear(url: str) -> bool:
    """Whether what is sent to this address can be read on the way."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


def clean_token(given: str) -> str:
    """The token as a header can carry it. Raises Problem, which does not show it."""
    token = given.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        message = (
            "This is not an API token: it must be one word such as izzy_…, from Settings → API tokens."
        )
        raise Problem(message, Exit.SIGNED_OUT)
    return token
