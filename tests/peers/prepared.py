"""A data directory with its tables and one user, made once in a test run and copied for every server that needs one."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings

from tests.peers.databases import Database

PASSWORD = "correct horse battery"
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
from django.core.management import call_command
from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
call_command("migrate", verbosity=0)
user = User.objects.create_superuser("alice", password={PASSWORD!r})
Preferences.objects.create(user=user)
token = token_create(user=user, name="test", scopes=["read", "write"])[1]
print("MADE", json.dumps([token, let_in(user)]))
"""


@dataclass(frozen=True)
class Prepared:
    """`token` and `session` let alice in, who has set the instance up and owns nothing."""

    folder: Path
    token: str
    session: str

    def copy(self, folder: Path) -> dict[str, str]:
        """The environment of a process that uses the copy."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        Database(self.folder).copy(folder)
        return Database(folder).environment


@cache
def prepared() -> Prepared:
    folder = Path(tempfile.mkdtemp(prefix="izzy-prepared-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(folder),
        **Database(folder).environment,
    }
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", MAKE]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = next(line for line in done.stdout.splitlines() if line.startswith("MADE "))
    return Prepared(folder, *json.loads(made.removeprefix("MADE ")))
