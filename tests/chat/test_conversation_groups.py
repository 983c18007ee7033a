"""The sidebar's headings: days as the reader's calendar has them."""

from datetime import UTC, date, datetime, timedelta
from unittest.mock import patch

import pytest

from apps.chat.models import Conversation
from apps.chat.templatetags.conversation_groups import conversation_groups, date_label

TODAY = date(2026, 3, 10)


@pytest.mark.parametrize(
    ("day", "label"),
    [
        (date(2026, 3, 11), "Today"),
        (TODAY, "Today"),
        (date(2026, 3, 9), "Yesterday"),
        (date(2026, 3, 4), "Last 7 days"),
        (date(2026, 3, 3), "Last 30 days"),
        (date(2026, 2, 8), "February"),
        (date(2025, 12, 31), "December 2025"),
    ],
)
def test_a_day_has_its_heading(day: date, label: str) -> None:
    assert date_label(day, TODAY) == label


def used(hours_ago: int) -> Conversation:
    return Conversation(
        title=str(hours_ago),
        updated_at=datetime(2026, 3, 10, 1, tzinfo=UTC) - timedelta(hours=hours_ago),
    )


@pytest.mark.parametrize(
    ("zone", "labels"),
    [
        ("UTC", ["Today", "Yesterday"]),
        ("America/New_York", ["Today"]),
        ("no/such", ["Today", "Yesterday"]),
    ],
)
def test_the_readers_time_zone_decides_which_day_it_was(zone: str, labels: list[str]) -> None:
    now = datetime(2026, 3, 10, 1, tzinfo=UTC)
    with patch("apps.chat.templatetags.conversation_groups.timezone.now", return_value=now):
        groups = conversation_groups([used(0), used(2)], zone)
    assert [group["label"] for group in groups] == labels


def test_nothing_to_show_makes_no_groups() -> None:
    assert conversation_groups(None) == []
    assert conversation_groups([], None) == []
