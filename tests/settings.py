"""The settings of the tests: nothing of the developer's environment or `.env` reaches them."""

import atexit
import os
import shutil
import tempfile

for _name in list(os.environ):
    if _name.startswith(("IZZY_", "ANTHROPIC_")) or _name in {"REDIS_URL", "DATABASE_URL", "OLLAMA_URL"}:
        del os.environ[_name]

os.environ["IZZY_ENV_FILE"] = ""
os.environ["IZZY_THROTTLE"] = "off"
os.environ["IZZY_LOG_LEVEL"] = "WARNING"
os.environ["IZZY_DATA_DIR"] = tempfile.mkdtemp(prefix="izzy-test-")
atexit.register(shutil.rmtree, os.environ["IZZY_DATA_DIR"], ignore_errors=True)

# Where the unprivileged user of the sandboxes gets in, too.
os.environ["IZZY_SANDBOX_DIR"] = tempfile.mkdtemp(prefix="izzy-test-sandbox-")
os.chmod(os.environ["IZZY_SANDBOX_DIR"], 0o711)
atexit.register(shutil.rmtree, os.environ["IZZY_SANDBOX_DIR"], ignore_errors=True)

from izzysite.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
