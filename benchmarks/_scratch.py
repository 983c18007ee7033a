"""A database of its own for a benchmark: the user's data is neither read nor changed."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import Client

from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
from apps.core.db.pool import connections_renew
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder
from apps.search.index import cache


@contextmanager
def scratch_database() -> Iterator[Path]:
    """Yields the path of a migrated, empty database that all connections of this process use meanwhile."""
    folder = Path(tempfile.mkdtemp(prefix="izzy-benchmark-"))
    connection = connections["default"]
    kept, throttled = connection.settings_dict["NAME"], settings.IZZY_THROTTLE
    connections.close_all()
    connection.settings_dict["NAME"] = folder / "izzy.sqlite3"
    connections_renew()
    settings.IZZY_THROTTLE = False
    cache.forget()
    try:
        call_command("migrate", verbosity=0)
        yield folder / "izzy.sqlite3"
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = kept
        connections_renew()
        settings.IZZY_THROTTLE = throttled
        cache.forget()
        shutil.rmtree(folder, ignore_errors=True)


def make_user(name: str) -> User:
    """A user with preferences, who cannot sign in."""
    user = User.objects.create_user(name, password=None)
    Preferences.objects.get_or_create(user=user)
    return user


def api_client(user: User) -> Client:
    """A program that sends requests through Izzy's whole REST stack, with a token of the user."""
    _, secret = token_create(user=user, name="benchmark", scopes=("read", "write"))
    return Client(headers={"authorization": f"Bearer {secret}"}, SERVER_NAME="localhost")


WORDS_PER_NOTE = 25
WORDS_PER_QUESTION = 4
COMMON = 2000
"""Questions ask for words among the so many most frequent ones, which is the dear case."""


@dataclass
class Corpus:
    """Endless notes and questions, the same in every run."""

    seed: int = 1
    words: list[str] = field(init=False)

    def __post_init__(self) -> None:
        embedder = embedder_for("static")
        assert isinstance(embedder, StaticEmbedder)
        self.words = embedder.vocabulary_words()
        self._random = np.random.default_rng(self.seed)
        shares = 1 / np.arange(1, len(self.words) + 1) ** 0.9
        self._shares = shares / shares.sum()

    def notes(self, number: int) -> list[str]:
        drawn = self._random.choice(len(self.words), size=(number, WORDS_PER_NOTE), p=self._shares)
        return [" ".join(self.words[word] for word in row) for row in drawn]

    def questions(self, number: int) -> list[str]:
        drawn = self._random.choice(min(COMMON, len(self.words)), size=(number, WORDS_PER_QUESTION))
        return ["what is the " + " ".join(self.words[word] for word in row) for row in drawn]
