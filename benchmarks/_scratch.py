"""A database of its own for a benchmark, with users and made-up notes: the user's data is neither read nor changed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from django.core.management import call_command
from django.db import connections
from django.test import Client, override_settings

from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
from apps.core.db.pool import connections_renew
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder
from apps.search.index import cache

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
        with database_at(path), override_settings(IZZY_THROTTLE=False):
            call_command("migrate", verbosity=0)
            yield path


@contextmanager
def database_at(path: Path) -> Iterator[None]:
    """All work of this process inside goes to this database."""
    kept = connections["default"].settings_dict["NAME"]
    _switch(path)
    try:
        yield
    finally:
        _switch(kept)


def _switch(path: Path) -> None:
    connections.close_all()
    connections["default"].settings_dict["NAME"] = path
    connections_renew()
    cache.forget()


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
