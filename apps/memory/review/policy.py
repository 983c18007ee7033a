"""Which notes wait for the user's review."""

from uuid import UUID

from apps.accounts.models import Review
from apps.accounts.selectors import preferences_for
from apps.memory.models import ReviewReason, Status, Trust


def status_for(*, user_id: UUID, trust: Trust, sensitive: bool = False) -> tuple[Status, str]:
    """The status that a note gets which the user did not write by hand, and the `ReviewReason` ("": none).

    What repeats untrusted words waits whatever the user prefers.
    """
    if trust == Trust.UNTRUSTED:
        return Status.PENDING, str(ReviewReason.UNTRUSTED)
    wanted = preferences_for(user_id).review
    if sensitive and wanted != Review.NOTHING:
        return Status.PENDING, str(ReviewReason.SENSITIVE)
    if wanted == Review.EVERYTHING:
        return Status.PENDING, str(ReviewReason.EVERYTHING)
    return Status.ACTIVE, ""
