"""The weights of search that an operator may set."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.accounts.models import User
from apps.search.health import known_weights
from apps.search.selectors import search
from izzysite.env import env_weights

from .conftest import save


def test_a_weight_that_is_set_replaces_the_measured_one(alice: User, settings: Any) -> None:
    save(alice, "The red car is in the garage.", "Bread is baked on Fridays.")
    assert search(alice.pk, "red car")[0].parts["keywords"] > 0
    settings.IZZY_SEARCH_WEIGHTS = {"keywords": 0.0}
    hit = search(alice.pk, "red car")[0]
    assert hit.parts.get("keywords", 0) == 0
    assert hit.parts["meaning"] > 0


def test_weights_are_read_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env_weights("IZZY_X") == {}
    monkeypatch.setenv("IZZY_X", '{"date": 1, "meaning": 0.6}')
    assert env_weights("IZZY_X") == {"date": 1.0, "meaning": 0.6}


@pytest.mark.parametrize(
    "text",
    [
        "date=1",
        "[1]",
        "3",
        '{"date": "1"}',
        '{"date": true}',
        '{"date": -1}',
        '{"date": 1e9}',
        "[" * 9999,
    ],
)
def test_what_are_no_weights_is_told(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("IZZY_X", text)
    with pytest.raises(ImproperlyConfigured, match="IZZY_X must be JSON such as"):
        env_weights("IZZY_X")


def test_a_signal_that_search_does_not_have_is_told(settings: Any) -> None:
    settings.IZZY_SEARCH_WEIGHTS = {"date": 1.0}
    assert known_weights(None) == []
    settings.IZZY_SEARCH_WEIGHTS = {"recency": 1.0}
    (error,) = known_weights(None)
    assert "'recency'" in error.msg
    assert "keywords" in str(error.hint)
