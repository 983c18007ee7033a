"""Prints how long requests take to this checkout and to another, asked by turns of both over the same notes.

    python scripts/compare_http.py OLD [--rounds 300]

OLD is a checkout whose `.venv` is set up, of whatever age: each is started over data of its own with the web server that it comes
with, the bundled vectors alone and no limits, and gets the same 1,000 made-up notes over REST. Milliseconds at the client.
"""

import json
import os
import random
import socket
import subprocess
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
NOTES, START_SECONDS = 1_000, 60
PREPARE = """
from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
user = User.objects.create_user("compared", password=None)
Preferences.objects.create(user=user)
print("token", token_create(user=user, name="compared", scopes=["read", "write"])[1])
"""
PARTS = (
    "likes bought lost wants repaired painted sold forgot remembers prefers",
    "bread car garden piano doctor dog holiday train coffee office school cat guitar river sister uncle phone soup",
    "Lisbon Graz Oslo Turin Ghent Riga Cork Basel Porto Lyon",
)


class Web:
    """A web process of a checkout, over data of its own in `folder`."""

    def __init__(self, checkout: Path, folder: str) -> None:
        python = str(checkout / ".venv" / "bin" / "python")
        own = {name: value for name, value in os.environ.items() if not name.startswith("IZZY_")}
        own |= {"IZZY_DATA_DIR": folder, "IZZY_THROTTLE": "off", "IZZY_EMBEDDER": "static"}
        own |= {"IZZY_ENV_FILE": "", "DJANGO_SETTINGS_MODULE": "izzysite.settings"}
        for arguments in (("migrate", "-v0"), ("shell", "-v0", "-c", PREPARE)):
            done = subprocess.run(
                [python, "manage.py", *arguments],
                cwd=checkout,
                env=own,
                check=True,
                capture_output=True,
                text=True,
            )
        self._token = next(
            line.split()[1] for line in done.stdout.splitlines() if line.startswith("token ")
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        server = ["uvicorn", "--log-level=warning", f"--port={port}"]
        if (checkout / ".venv" / "bin" / "daphne").exists():
            server = ["daphne", "-v0", "-b", "127.0.0.1", "-p", str(port)]
        self.process = subprocess.Popen(
            [python, "-m", *server, "izzysite.asgi:application"],
            cwd=checkout,
            env=own,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < until:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            time.sleep(0.1)
        self._connection = HTTPConnection("127.0.0.1", port)

    def ask(self, path: str, body: dict[str, Any] | None = None) -> float:
        """The milliseconds of a request. Raises RuntimeError for a refused one."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        begun = time.perf_counter()
        self._connection.request("GET" if body is None else "POST", f"/api/v1{path}", sent, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {text[:300]!r}")
        return (time.perf_counter() - begun) * 1000

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("old", type=Path)
    parser.add_argument("--rounds", type=int, default=300)
    given = parser.parse_args()
    pick = random.Random(4)
    words = [each.split() for each in PARTS]
    with ExitStack() as stack:
        webs = []
        for checkout in (given.old.resolve(), HERE):
            web = Web(checkout, stack.enter_context(tempfile.TemporaryDirectory()))
            stack.callback(web.stop)
            webs.append(web)
        for number in range(NOTES):
            verb, thing, place = map(pick.choice, words)
            text = f"The user {verb} the {thing} in {place}, as number {number}."
            for web in webs:
                web.ask("/memories/", {"content": text, "tags": ["made up"]})
        questions = [" ".join(map(pick.choice, words)) for _ in range(given.rounds)]
        requests: dict[str, Callable[[Web, int], float]] = {
            "search, 10 hits": lambda web, at: web.ask(
                "/search/", {"query": questions[at], "top_k": 10}
            ),
            "search, 50 hits": lambda web, at: web.ask(
                "/search/", {"query": questions[at], "top_k": 50}
            ),
            "a page of 10 notes": lambda web, _: web.ask("/memories/?page_size=10"),
            "a page of 50 notes": lambda web, _: web.ask("/memories/?page_size=50"),
        }
        for name, ask in requests.items():
            took: dict[Web, list[float]] = {web: [] for web in webs}
            for at in range(given.rounds):
                for web in webs if at % 2 else reversed(webs):
                    took[web].append(ask(web, at))
            old, new = (sorted(took[web]) for web in webs)
            for title, share in (("p50", 0.5), ("p95", 0.95)):
                before, after = (times[int(len(times) * share)] for times in (old, new))
                print(f"{name:20} {title}  {before:8.2f} {after:8.2f}  {after / before:.2f}", flush=True)


if __name__ == "__main__":
    main()
