"""The events of one conversation on their way to those who watch it, whatever order they come in."""

import pytest

from apps.chat.stream import hub
from apps.chat.stream.events import LoggedEvent
from apps.chat.stream.hub import Feed
from apps.chat.stream.snapshot import Start
from apps.chat.stream.subscription import Subscription
from apps.core.ids import uuid7

PLACE, TURN = uuid7(), uuid7()


def events(*numbers: int) -> list[LoggedEvent]:
    return [LoggedEvent(number, TURN, "tool_start", {}) for number in numbers]


def watched(*, after: int) -> tuple[Feed, Subscription]:
    """A feed with one watcher, both of whom know everything up to `after`."""
    feed = Feed(PLACE, lambda: None)
    return feed, joined(feed, after=after)


def joined(feed: Feed, *, after: int) -> Subscription:
    watcher = Subscription(PLACE, html=False)
    feed.watchers.add(watcher)
    feed.prime(None, after)
    watcher.begin([], after)
    return watcher


async def seen(watcher: Subscription, count: int) -> list[int]:
    found = [(await watcher.next())["seq"] for _ in range(count)]
    assert not watcher._queue
    return found


async def test_what_comes_after_a_gap_waits_for_what_is_missing() -> None:
    feed, watcher = watched(after=3)
    assert not feed.publish(events(4), previous=3)
    assert feed.publish(events(6, 7), previous=5), "from here on something is missing"
    assert not feed.publish(events(8), previous=7), "that is known"
    assert feed.ahead
    assert await seen(watcher, 1) == [4]
    feed.publish(events(4, 5))  # from the rows
    assert not feed.ahead
    assert await seen(watcher, 4) == [5, 6, 7, 8]


async def test_rows_that_go_further_than_what_was_kept_count_once() -> None:
    feed, watcher = watched(after=3)
    feed.publish(events(5), previous=4)
    feed.publish(events(4, 5, 6))
    assert not feed.publish(events(6), previous=5)
    assert await seen(watcher, 3) == [4, 5, 6]


async def test_numbers_that_a_crash_left_out_are_not_missed() -> None:
    feed, watcher = watched(after=3)
    assert not feed.publish(events(1001), previous=3)
    assert await seen(watcher, 1) == [1001]


async def test_events_before_anybody_knows_where_to_begin_are_kept() -> None:
    feed = Feed(PLACE, lambda: None)
    feed.publish(events(2), previous=1)
    feed.publish(events(3), previous=2)
    watcher = joined(feed, after=2)
    assert await seen(watcher, 1) == [3]


async def test_a_second_watcher_who_knows_more_takes_nothing_from_the_first() -> None:
    feed, first = watched(after=3)
    second = joined(feed, after=5)
    feed.publish(events(4, 5, 6))
    assert await seen(first, 3) == [4, 5, 6]
    assert await seen(second, 1) == [6]


async def test_what_is_kept_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "AHEAD", 3)
    feed, watcher = watched(after=1)
    for number in range(3, 8):
        feed.publish(events(number), previous=number - 1)
    assert len(feed.ahead) <= 3
    feed.publish(events(*range(2, 9)))
    assert await seen(watcher, 7) == list(range(2, 9))


async def test_who_read_the_rows_before_the_first_to_begin_did_reads_them_again() -> None:
    feed = Feed(PLACE, lambda: None)
    slow = Subscription(PLACE, html=False)
    feed.join(slow)
    joined(feed, after=5)
    feed.publish(events(6))
    assert feed.missed(slow, Start([], 3, 3, None)) is None
    assert feed.missed(slow, Start([], 5, 5, None)) == []
    slow.begin([], 5)
    assert await seen(slow, 1) == [6]


async def test_what_may_not_be_stored_yet_is_kept_for_who_joins_within_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "KEPT", 3)
    feed, _ = watched(after=3)
    feed.publish(events(4, 5, 6), previous=3)
    late, later, last = (Subscription(PLACE, html=False) for _ in range(3))
    feed.join(late)
    feed.publish(events(7, 8), previous=6)
    feed.join(later)
    assert feed.missed(late, Start([], 4, 4, None)) == events(5, 6)
    assert feed.missed(later, Start([], 4, 4, None)) is None, "5 is not kept any more"
    assert feed.missed(later, Start([], 7, 6, None)) == events(8), "it knows 7"
    feed.stored(7)
    feed.join(last)
    assert feed.missed(last, Start([], 7, 7, None)) == events(8)
