"""All pairs of documents that say the same, however many there are, the most alike first."""

import pytest

from apps.accounts.models import User
from apps.search import selectors
from apps.search.documents import Source
from apps.search.selectors import alike_pairs

from .conftest import save


def test_the_most_alike_are_kept_wherever_they_stand(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "BLOCK", 2)
    monkeypatch.setattr(selectors, "MAX_PAIRS", 1)
    things = ("car", "bus", "train", "bicycle", "boat", "plane", "tram", "lorry", "scooter")
    others = save(alice, *(f"She bought a {thing} in May" for thing in things))
    twins = save(alice, "The boiler needs 1.5 bar", "The boiler needs 1.5 bar")
    pairs = alike_pairs(alice.pk, source=Source.MEMORY, among=[*others, *twins], at_least=0.01)
    assert [set(pair[:2]) for pair in pairs] == [set(twins)]


def test_of_many_that_say_the_same_only_the_first_pairs_are_kept(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "BLOCK", 4)
    monkeypatch.setattr(selectors, "MAX_PAIRS", 3)
    same = save(alice, *["The boiler needs 1.5 bar"] * 9)
    pairs = alike_pairs(alice.pk, source=Source.MEMORY, among=same, at_least=0.85)
    assert [pair[:2] for pair in pairs] == [(same[0], one) for one in same[1:4]]
