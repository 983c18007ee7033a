"""On a page the reader is not "the user"."""

import json
from pathlib import Path

import pytest

from apps.core.addressing import addressed

CASES = json.loads((Path(__file__).parent / "addressing.json").read_text())


@pytest.mark.parametrize(("stored", "shown"), CASES)
def test_a_note_speaks_to_its_owner(stored: str, shown: str) -> None:
    assert addressed(stored) == shown


def test_long_notes_take_no_time() -> None:
    """A text made to be slow to search through comes back all the same."""
    text = "the user " * 2_000 + "that, " * 2_000
    assert len(addressed(text)) <= len(text)
