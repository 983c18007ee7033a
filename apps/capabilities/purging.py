"""The files of capabilities, which stay as they were approved: changed afterwards they would not run."""

from apps.core.purging.places import PurgePart
from apps.core.purging.trace import Trace

from .files import files_read
from .models import CapabilityVersion


def files_left(trace: Trace) -> int:
    """Versions whose files quote what is purged."""
    paths = CapabilityVersion.objects.for_user(trace.user_id).values_list("path", flat=True)
    return sum(any(map(trace.same.match, files_read(path).values())) for path in paths.iterator())


PURGING = PurgePart(counts={"capabilities.files": files_left})
