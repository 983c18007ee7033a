"""Where the catalog keeps words: what a tool is and says of itself stays as it was approved; its runs are cleaned."""

from apps.core.purging.places import Place
from apps.core.registries import purge_places

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
