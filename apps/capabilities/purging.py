"""Where the catalog keeps words: what a tool is and says of itself stays as it was approved; its runs are cleaned."""

from apps.core.purging.places import Place
from apps.core.purging.trace import Trace
from apps.core.registries import purge_places

from .files import files_read
from .models import CapabilityVersion

_CAPABILITY = ("name", "description", "tags", "input_schema", "output_schema", "path", "status_reason")
_VERSION = (
    *("description", "tags", "input_schema", "output_schema", "examples", "hosts", "secrets"),
    *("path", "checksum", "checksums", "test_failures"),
)


def register_places() -> None:
    """Executions have no place of their own: they are cleaned string by string."""
    purge_places.register(
        "capabilities",
        Place(
            label="Capabilities",
            columns=(
                *(f"capabilities.capability.{name}" for name in _CAPABILITY),
                *(f"capabilities.capabilityversion.{name}" for name in _VERSION),
            ),
            why="A capability says it of itself; change or delete it on its page.",
            keep=True,
            offered=True,
        ),
    )
    purge_places.register(
        "capabilities.files",
        Place(
            label="Files of capabilities",
            why="A version of a capability has it in its code or its description; delete the capability on its page.",
            look=files_left,
        ),
    )


def files_left(trace: Trace) -> int:
    """Versions whose files quote what is purged. They stay: changed after they were approved they would not run."""
    paths = CapabilityVersion.objects.for_user(trace.user_id).values_list("path", flat=True)
    return sum(any(map(trace.says_same, files_read(path).values())) for path in paths.iterator())
