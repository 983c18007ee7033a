"""A data directory with its tables and one user, made once in a test run and copied for every server that needs one."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from tests.peers.databases import Database

PASSWORD = "correct horse battery"
PEOPLE = 16
LET_IN = """
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

def let_in(user):
    session = SessionStore()
    session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return session.session_key
"""
"""For `manage.py shell -c`: `let_in(user)` is the key of a session of the user's, as signing in makes one."""

MAKE = f"""{LET_IN}
import json
from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
WHOLE, KINDS = ["read", "write"], {{
    "reader": dict(scopes=["read"]), "proxy": dict(scopes=["proxy"]), "reaching": dict(reaches_out=True),
    "person": dict(person_answers=True), "other": dict(), "leaving": dict(), "leaver": dict(),
}}
def made(user):
    Preferences.objects.create(user=user)
    token = token_create(user=user, name="test", scopes=WHOLE)[1]
    return [user.username, token, let_in(user)]

def more(user):
    return {{kind: token_create(user=user, name=kind, **{{"scopes": WHOLE}} | how)[1] for kind, how in KINDS.items()}}

user = User.objects.create_superuser("alice", password={PASSWORD!r})
names = [f"person{{number}}" for number in range(@PEOPLE@)]
people = [(*made(each), more(each)) for each in map(User.objects.create_user, names)]
print("MADE", json.dumps([*made(user)[1:], people]))
"""


class Person(NamedTuple):
    """Somebody who owns nothing yet, with a token and a browser's session. Tokens of theirs that may less or more: `reader`,
    `proxy`, `reaching` (what reaches out runs), `person` (one answers there), `other`, `leaving` and `leaver`."""

    name: str
    token: str
    session: str
    tokens: dict[str, str]


@dataclass(frozen=True)
class Prepared:
    """`token` and `session` let alice in, who has set the instance up and owns nothing. `people` are others, for modules that
    share a server."""

    folder: Path
    token: str
    session: str
    people: list[Person]

    def copy(self, folder: Path) -> dict[str, str]:
        """The environment of a process that uses the copy."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        Database(self.folder).copy(folder)
        return Database(folder).environment


@cache
def with_people() -> Prepared:
    """The same with PEOPLE beside alice."""
    return _make(PEOPLE)


@cache
def prepared() -> Prepared:
    """Alice is the only user."""
    return _make(0)


def migrated() -> Path:
    """A data directory with all tables and nothing in them. Making the tables takes longer than starting a server."""
    return _once("migrated", lambda folder: _managed(folder, "migrate", "-v", "0"))


def _make(number: int) -> Prepared:
    folder = _once(f"people-{number}", lambda folder: _people(folder, number))
    token, session, people = json.loads((folder / "made").read_text())
    return Prepared(folder, token, session, [Person(*each) for each in people])


def _people(folder: Path, number: int) -> str:
    empty = migrated()
    shutil.copytree(empty, folder, dirs_exist_ok=True)
    Database(empty).copy(folder)
    said = _managed(folder, "shell", "-v", "0", "-c", MAKE.replace("@PEOPLE@", str(number)))
    return next(line for line in said.splitlines() if line.startswith("MADE ")).removeprefix("MADE ")


def _once(name: str, make: Callable[[Path], str]) -> Path:
    """A folder that the first process of the test run makes and the others wait for; what `make` says is in its file `made`."""
    server = os.environ.get("TEST_DATABASE_URL", "")  # what is made on one is not on another
    where = f"-{hashlib.sha256(server.encode()).hexdigest()[:8]}" if server else ""
    folder = Path(os.environ["TEST_RUN_DIR"]) / f"{name}{where}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            folder.mkdir()
            (folder / "made").write_text(make(folder))
    return folder


def _managed(folder: Path, *arguments: str) -> str:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(folder),
        **Database(folder).environment,
    }
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
