"""The disk is cleaned of what was removed since it last was, whatever the clock said then."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core.models import InstanceState
from apps.core.purging import remains
from apps.core.purging.remains import scrub_request, scrubbed_at, sweep

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def cleaned(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """An entry for each time that the disk was cleaned; it is not, as within a test's transaction nobody could."""
    times: list[bool] = []

    def clean(*_: object, anew: bool = True) -> bool:
        times.extend([True] * anew)
        return True

    monkeypatch.setattr(remains, "_write_back", clean)
    monkeypatch.setattr(remains, "_vacuumed", clean)
    monkeypatch.setattr(remains, "purge_parts", {})
    return times


def ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock shows an hour more than it is."""
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + HOUR)


def test_it_is_cleaned_once_for_all_that_asked(cleaned: list[bool]) -> None:
    sweep()
    assert (cleaned, scrubbed_at(timezone.now() - HOUR)) == ([], None)
    removed = timezone.now()
    for _ in range(2):
        scrub_request()
    assert scrubbed_at(removed) is None
    for _ in range(2):
        sweep()
    assert len(cleaned) == 1
    assert scrubbed_at(removed)
    assert scrubbed_at(timezone.now()) is None


def test_what_asks_while_it_is_cleaned_has_it_cleaned_again(
    cleaned: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def clean(*_: object, anew: bool = True) -> bool:
        if anew and not cleaned:
            scrub_request()
        cleaned.extend([True] * anew)
        return True

    monkeypatch.setattr(remains, "_write_back", clean)
    monkeypatch.setattr(remains, "_vacuumed", clean)
    monkeypatch.setattr(remains, "purge_parts", {})
    scrub_request()
    for _ in range(3):
        sweep()
    assert len(cleaned) == 2


def test_a_clock_that_was_ahead_then_keeps_nothing_from_being_cleaned(
    cleaned: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        ahead(then)
        removed_then = timezone.now()
        scrub_request()
        sweep()
        assert scrubbed_at(removed_then)
    assert scrubbed_at(removed_then)
    removed = timezone.now()
    scrub_request()
    assert scrubbed_at(removed) is scrubbed_at(removed_then) is None
    sweep()
    assert len(cleaned) == 2
    assert scrubbed_at(removed)
    assert scrubbed_at(removed_then)


@pytest.mark.parametrize("wanted", [-HOUR, HOUR])
def test_what_an_earlier_version_noted_is_cleaned_once_more(
    cleaned: list[bool], wanted: timedelta
) -> None:
    """It noted times alone, which may be of a clock that was ahead."""
    done = timezone.now()
    times = {"wanted": (done + wanted).isoformat(), "done": done.isoformat()}
    InstanceState.objects.create(key=remains.STATE, value=times)
    assert scrubbed_at(done - HOUR) == done
    for _ in range(2):
        sweep()
    assert len(cleaned) == 1
    removed = timezone.now()
    scrub_request()
    assert scrubbed_at(removed) is None
    sweep()
    assert len(cleaned) == 2
    assert scrubbed_at(removed)
