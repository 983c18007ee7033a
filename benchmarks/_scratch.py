"""A database of its own for a benchmark, with users and made-up notes: the user's data is neither read nor changed.

It is known by the path of SQLite's file; with DATABASE_URL it is one beside the user's on the server, named after that path.
"""

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np
from django.core.management import call_command
from django.db import connections
from django.test import Client, override_settings

from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
from apps.core.db.pool import connections_renew, database_file
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder
from apps.search.index import cache
from apps.search.text.analysis import document_terms

WORDS_PER_NOTE = 25
WORDS_PER_QUESTION = 4
COMMON = 2000
"""Questions ask for words among the so many most frequent ones, which is the dear case."""
BATCH = 1000


@contextmanager
def scratch_database() -> Iterator[Path]:
    """Yields the path of a migrated, empty database that all connections of this process use meanwhile."""
    with tempfile.TemporaryDirectory(prefix="izzy-benchmark-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "izzy.sqlite3"
        _on_server(f"CREATE DATABASE {_name(path)}")
        _open.append(path)
        try:
            with database_at(path), override_settings(IZZY_THROTTLE=False):
                call_command("migrate", verbosity=0)
                yield path
        finally:
            for each in [path, *_copies.pop(path, ())]:
                _on_server(f"DROP DATABASE {_name(each)} WITH (FORCE)")
            _open.remove(path)


@contextmanager
def database_at(path: Path) -> Iterator[None]:
    """All work of this process inside goes to this database."""
    kept = connections["default"].settings_dict["NAME"]
    _switch(path)
    try:
        yield
    finally:
        _switch(kept)


def _switch(path: Path | str) -> None:
    connections.close_all()
    if database_file() is None:
        connections["default"].close_pool()  # type: ignore[attr-defined]
        path = _name(path) if isinstance(path, Path) else path
    connections["default"].settings_dict["NAME"] = path
    connections_renew()
    cache.forget()


_open: list[Path] = []
_copies: dict[Path, list[Path]] = {}


def database_copy(path: Path, copy: Path) -> None:
    """A copy of the scratch database at `path`, which ends with it."""
    if database_file() is None:
        _switch(path)  # nobody may be connected to what is copied
        _on_server(f"CREATE DATABASE {_name(copy)} TEMPLATE {_name(path)}")
        _copies.setdefault(path, []).append(copy)
        return
    with closing(sqlite3.connect(path)) as now, closing(sqlite3.connect(copy)) as other:
        now.backup(other)


def database_environment(folder: Path) -> dict[str, str]:
    """The environment that another process with this data directory needs beside it to find the scratch database there."""
    path = folder / "izzy.sqlite3"
    if database_file() is not None or path not in _open:
        return {}
    own = connections["default"].settings_dict
    who = quote(own["USER"], safe="") + (
        ":" + quote(own["PASSWORD"], safe="") if own["PASSWORD"] else ""
    )
    options = {name: value for name, value in own["OPTIONS"].items() if isinstance(value, str)}
    more = urlencode(options | {"host": own["HOST"]})
    return {"DATABASE_URL": f"postgresql://{who}@:{own['PORT'] or 5432}/{_name(path)}?{more}"}


def _name(path: Path) -> str:
    return "izzy_benchmark_" + hashlib.sha256(str(path).encode()).hexdigest()[:16]


def _on_server(statement: str) -> None:
    if database_file() is None:
        with connections["default"]._nodb_cursor() as cursor:
            cursor.execute(statement)


def make_user(name: str) -> User:
    """A user with preferences, who cannot sign in."""
    user = User.objects.create_user(name, password=None)
    Preferences.objects.get_or_create(user=user)
    return user


def make_token(user: User) -> str:
    return token_create(user=user, name="benchmark", scopes=("read", "write"))[1]


def api_client(user: User) -> Client:
    """A program that sends requests through Izzy's whole REST stack, with a token of the user."""
    return Client(headers={"authorization": f"Bearer {make_token(user)}"}, SERVER_NAME="localhost")


class Corpus:
    """Endless notes and questions, the same in every run: drawn as in real text (Zipf) from the bundled vocabulary."""

    def __init__(self, seed: int = 1) -> None:
        embedder = embedder_for(StaticEmbedder.name)
        assert isinstance(embedder, StaticEmbedder)
        self.words = embedder.vocabulary_words()
        self._random = np.random.default_rng(seed)
        shares = 1 / np.arange(1, len(self.words) + 1) ** 0.9
        self._shares = shares / shares.sum()

    def notes(self, number: int) -> list[str]:
        drawn = self._random.choice(len(self.words), size=(number, WORDS_PER_NOTE), p=self._shares)
        return [" ".join(self.words[word] for word in row) for row in drawn]

    def batches(self, number: int) -> Iterator[list[str]]:
        """Makes that many notes, at most BATCH at a time."""
        for start in range(0, number, BATCH):
            yield self.notes(min(BATCH, number - start))

    def questions(self, number: int) -> list[str]:
        drawn = self._random.choice(min(COMMON, len(self.words)), size=(number, WORDS_PER_QUESTION))
        return ["what is the " + " ".join(self.words[word] for word in row) for row in drawn]

    def new_questions(self, number: int) -> list[str]:
        """Questions of which no two have a stem in common, nor one a stem twice."""
        words, known = [], set()
        for place in self._random.permutation(min(COMMON, len(self.words))).tolist():
            (stem,) = document_terms(self.words[place])[1][:1] or ("",)
            if stem and stem not in known:
                known.add(stem)
                words.append(self.words[place])
        starts = range(0, min(number * WORDS_PER_QUESTION, len(words)), WORDS_PER_QUESTION)
        return ["what is the " + " ".join(words[start : start + WORDS_PER_QUESTION]) for start in starts]
