"""Search registers figures, sweeps, health, and the deleter of an account."""

import threading

import pytest
from django.contrib.admin import site
from django.core.management import call_command

from apps.accounts.models import User
from apps.core.health import checks
from apps.core.jobs.worker import sweeps
from apps.core.registries import account_deleters, connection_tests, stats_providers, warmups
from apps.search import filling
from apps.search.filling import filler
from apps.search.models import EmbeddingSpace, IndexOwner, Passage, Tombstone
from apps.search.selectors import user_figures
from tests.peers.ollama_server import OllamaPeer
from tests.waiting import PATIENCE

from .conftest import found, save, say


def test_figures_count_ones_own_passages(alice: User, bob: User) -> None:
    save(alice, "The car is red", "The bicycle is blue")
    say(alice, ("user", "Hello"))
    save(bob, "Not hers")
    assert user_figures(alice.pk) == {
        "passages": {"memory": 2, "conversation": 1},
        "waiting_for_vectors": 0,
        "embedder": "static",
    }


def test_figures_count_what_waits(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    assert user_figures(alice.pk)["waiting_for_vectors"] == 1


def test_upkeep_is_registered() -> None:
    assert {"search: vectors that wait", "search: old deletions"} <= {sweep.name for sweep in sweeps()}
    assert "search" in {check.name for check in checks()}
    assert all("search" in registry for registry in (account_deleters, stats_providers, warmups))
    assert "embedder" in connection_tests


def test_an_encoder_that_takes_long_keeps_no_other_sweep_waiting(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it asked by two threads at once."""
    begun, going_on = threading.Event(), threading.Event()
    asked: list[int] = []

    def work() -> None:
        asked.append(1)
        begun.set()
        going_on.wait(PATIENCE)

    monkeypatch.setattr(filler, "_work", work)
    monkeypatch.setattr(filling, "base_waiting", Passage.objects.all)
    save(alice, "The car is red")
    filling.sweep_vectors()
    assert begun.wait(PATIENCE)
    filling.sweep_vectors()
    assert asked == [1]
    going_on.set()
    assert filler._thread is not None
    filler._thread.join(PATIENCE)


def test_the_purger_of_a_deleted_account_empties_the_index(alice: User) -> None:
    save(alice, "The car is red")
    assert account_deleters["search"](alice.pk) == 1
    assert found(alice, "car") == []


def test_warming_up_needs_nothing() -> None:
    warmups["search"]()


def test_every_row_of_search_is_in_the_admin() -> None:
    assert all(site.is_registered(model) for model in (Passage, EmbeddingSpace, IndexOwner, Tombstone))


def test_migrations_are_complete(db: None) -> None:
    call_command("makemigrations", "search", check=True, dry_run=True, verbosity=0)
