"""The settings of the tests: nothing of the developer's environment or `.env` reaches them."""

import atexit
import os
import shutil
import sys
import tempfile

for _name in list(os.environ):
    if _name.startswith(("IZZY_", "ANTHROPIC_")) or _name in {"REDIS_URL", "DATABASE_URL", "OLLAMA_URL"}:
        del os.environ[_name]

# Every process of the tests would compile all that it imports, which takes longer than most tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

os.environ["IZZY_ENV_FILE"] = ""
os.environ["IZZY_THROTTLE"] = "off"
os.environ["IZZY_EMBEDDER"] = "static"  # an encoder costs each process a second; tests of one name it
os.environ["IZZY_LOG_LEVEL"] = "WARNING"
os.environ["IZZY_DATA_DIR"] = tempfile.mkdtemp(prefix="izzy-test-")
atexit.register(shutil.rmtree, os.environ["IZZY_DATA_DIR"], ignore_errors=True)

# What is made once for the processes of a test run (tests/peers/prepared.py); the first of them made the folder, and removes it.
if "TEST_RUN_DIR" not in os.environ:
    os.environ["TEST_RUN_DIR"] = tempfile.mkdtemp(prefix="izzy-test-run-")
    atexit.register(shutil.rmtree, os.environ["TEST_RUN_DIR"], ignore_errors=True)

# Where the unprivileged user of the sandboxes gets in, too.
os.environ["IZZY_SANDBOX_DIR"] = tempfile.mkdtemp(prefix="izzy-test-sandbox-")
os.chmod(os.environ["IZZY_SANDBOX_DIR"], 0o711)
atexit.register(shutil.rmtree, os.environ["IZZY_SANDBOX_DIR"], ignore_errors=True)

# `make test DB=postgresql` starts a server and names it here (tests/peers/postgres.py).
if "TEST_DATABASE_URL" in os.environ:
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]

from izzysite.settings import *  # noqa: E402, F403

# A process that a test starts has a database of its own (tests/peers/databases.py).
os.environ.pop("DATABASE_URL", None)

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# The test database of each test process: a file, or a copy of the one that has all tables.
if DATABASES["default"]["ENGINE"] == "apps.core.db.sqlite":  # noqa: F405
    DATABASES["default"]["TEST"] = {"NAME": IZZY_DATA_DIR / "test.sqlite3"}  # noqa: F405
else:
    DATABASES["default"]["TEST"] = {"TEMPLATE": DATABASES["default"]["NAME"]}  # noqa: F405
