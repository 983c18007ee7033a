"""Long work is done in a process of its own, and what it gives or raises comes back."""

import ast
import os
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from apps.accounts.models import User
from apps.capabilities.catalog import drafts
from apps.core.errors import Unavailable
from apps.core.jobs import apart as module
from apps.core.jobs.apart import apart
from apps.search import services
from apps.search.services import documents_prepare


def elsewhere(*_: object) -> NoReturn:
    raise AssertionError("that was worked out here")


def test_it_runs_in_another_process() -> None:
    assert apart(os.getpid) != os.getpid()


def test_what_is_raised_there_is_raised_here() -> None:
    with pytest.raises(ValueError, match="no such word"):
        apart(int, "no such word")


def test_a_process_that_dies_is_said_to_be_unavailable() -> None:
    with pytest.raises(Unavailable):
        apart(os.abort)


def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.001)
    with pytest.raises(Unavailable, match="too long"):
        apart(os.getpid)


def test_where_no_process_can_be_started_it_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise BlockingIOError

    monkeypatch.setattr(subprocess, "run", refused)
    assert apart(os.getpid) == os.getpid()


def test_long_code_is_not_parsed_in_the_servers_process(monkeypatch: pytest.MonkeyPatch) -> None:
    short = 'def run(args):\n    """Adds."""\n'
    long = short + "    x = [1, 2, 3]\n" * 5_000
    assert drafts.source_facts(short).docstring == "Adds."
    monkeypatch.setattr(ast, "parse", elsewhere)
    with pytest.raises(AssertionError, match="worked out here"):
        drafts.source_facts(short)
    assert drafts.source_facts(long).docstring == "Adds."
    assert drafts.source_facts(long + "  )").error


def test_long_texts_are_not_read_in_the_servers_process(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "analysed_text", elsewhere)
    with pytest.raises(AssertionError, match="worked out here"):
        documents_prepare(user_id=alice.pk, texts=["A short one."])
    documents_prepare(user_id=alice.pk, texts=[Path(__file__).read_text() * 100])
