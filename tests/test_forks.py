"""A command of Izzy's that is forked is what it would be if it had been started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests import forks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks need Linux")

MANAGE = [sys.executable, "manage.py"]


def ran(tmp_path: Path, *command: str, **variables: str) -> tuple[int, str, str]:
    environment = {**os.environ, "IZZY_DATA_DIR": str(tmp_path), **variables}
    done = subprocess.run(
        [*MANAGE, *command],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        input="a line\n",
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["no-such-command"],
        [
            "shell",
            "-v",
            "0",
            "-c",
            "import os, sys; print(sys.argv, os.environ['OWN_MARK'], os.getcwd(), sys.path[0])",
        ],
        ["shell", "-v", "0", "-c", "print(open('/proc/self/cmdline').read().rstrip(chr(0)))"],
        ["shell", "-v", "0", "-c", "print(input())"],
        ["shell", "-v", "0", "-c", "import sys; sys.exit(7)"],
        ["shell", "-v", "0", "-c", "import sys; sys.exit('in words')"],
        ["shell", "-v", "0", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"],
        ["shell", "-v", "0", "-c", "import atexit; atexit.register(print, 'at the end')"],
    ],
)
def test_it_ends_as_one_that_was_started(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forked = ran(tmp_path, *command, OWN_MARK="set")
    monkeypatch.setattr(forks, "source", None)
    assert ran(tmp_path, *command, OWN_MARK="set") == forked
